"""Walks through screens by keys, as `tests/fixtures/walks.toml` has them: what is shown after each step."""

import shlex
import tomllib
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from jobtui.app import JobtuiApp
from jobtui.backends.logfile import LogFile
from jobtui.backends.sirepo.source import SirepoDb
from jobtui.model.clock import FixedClock
from jobtui.session import Session
from tests.builders import a_cluster
from tests.conftest import NOW
from tests.excerpts import FIXTURES
from tests.screens.captured import CAPTURE, CAPTURED, FILES, JOB, an_app, app_on
from tests.screens.scene import FAILED, THREE, Scene, agents, with_runs
from tests.tracing import capture_file
from tests.widgets.widget_app import press, text

WALKS = tomllib.loads((FIXTURES / "walks.toml").read_text())
TRACES = ("jobsub-ok", "jobsub-fail-klist", "job-fail", "job-good")
SITES: dict[str, Callable[[], JobtuiApp]] = {
    "logs": lambda: app_on(CAPTURED[:1]),
    "traces": lambda: an_app(*(capture_file(name, "otlp.pb") for name in TRACES)),
    "trace": lambda: an_app(*FILES),
    "nothing": an_app,
    "captured": lambda: JobtuiApp(
        Session((SirepoDb(CAPTURE), *map(LogFile, CAPTURED)), FixedClock(NOW)), JOB
    ),
    "job": lambda: Scene(open_at=FAILED).app,
    "runs": lambda: with_runs(Scene(open_at=FAILED), *THREE).app,
    "jobs": lambda: Scene(agents=agents(), clusters=(a_cluster(),)).app,
}


def typed(keys: str) -> Iterator[str]:
    for word in shlex.split(keys):
        yield from word[1:] if word.startswith("=") else [word]


@pytest.mark.parametrize("site", WALKS)
async def test_every_step_shows_what_it_leads_to(site: str) -> None:
    app = SITES[site]()

    def is_there(words: list[str]) -> bool:
        seen = "\n".join((text(app), *(toast.message for toast in app._notifications)))
        return all((one.lstrip("!") in seen) is not one.startswith("!") for one in words)

    async with app.run_test(size=(120, 40)) as pilot:
        for keys, *words in WALKS[site]:
            try:
                await press(pilot, *typed(keys), until=partial(is_there, words))
            except AssertionError as error:
                raise AssertionError(f"{keys}: {words}\n{text(app)}") from error
