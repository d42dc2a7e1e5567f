"""`demo`: the dashboard on a simulated job system in a temporary directory; off a terminal, one-shot views.

The simulator writes what the real systems write, and it is read from there like theirs.
"""

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jobtui.backends.balsam.login import PATH_VARIABLE
from jobtui.backends.registry import SIREPO_DB, announce
from jobtui.commands import jobs, runner
from jobtui.commands.context import Context
from jobtui.commands.open import has_terminal, of_specs
from jobtui.commands.printing import print_lines
from jobtui.commands.reader import Reader, in_session, watch_clusters
from jobtui.commands.streams import Exit, complain
from jobtui.demo.balsam import serving
from jobtui.demo.incidents import INCIDENTS
from jobtui.demo.live import TICK_S, LiveDemo
from jobtui.grammar import nearest
from jobtui.model.clock import SystemClock
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobStatus
from jobtui.model.numbers import whole
from jobtui.model.specs import LogRole, SourceSpec
from jobtui.render.table import Cell, Head, table_lines
from jobtui.session import Session

LIST = "list"
DEFAULT_SEED = 1
TELLING = (JobStatus.FAILED, JobStatus.RUNNING, JobStatus.COMPLETED)
"""Of which status a job is chosen to print its timeline, the first that there is."""


def run(context: Context) -> Exit:
    incident = context.flag("incident")
    if incident == LIST:
        rows = [[Cell(name), Cell(known.text)] for name, known in INCIDENTS.items()]
        print_lines(
            table_lines((Head("INCIDENT"), Head("WHAT HAPPENS")), rows, context.width, context.colour)
        )
        return Exit.FINE
    if incident is not None and incident not in INCIDENTS:
        hint = nearest(incident, INCIDENTS) or "; `jobtui demo --incident list` names them"
        complain(f"no incident {incident!r}{hint}")
        return Exit.USAGE
    seed = whole(context.flag("seed"), DEFAULT_SEED)
    with tempfile.TemporaryDirectory(prefix="jobtui-demo-") as place:
        demo = LiveDemo(Path(place), seed=seed, incident=incident)
        demo.prepare()
        with serving(Path(place), seed, SystemClock()) as (url, login):
            os.environ[PATH_VARIABLE] = str(login)  # nobody's own login is for this server
            return _show(context, demo, (*_specs(demo), SourceSpec("balsam", url)))


def _show(context: Context, demo: LiveDemo, specs: tuple[SourceSpec, ...]) -> Exit:
    if not has_terminal():
        return _print_views(context, specs)
    with _living(demo):
        session = Session([announce(spec) for spec in specs], context.clock)
        watch_clusters(session, [spec.target for spec in specs if SIREPO_DB.names(spec)])
        context.open_dashboard(session, None, "jobtui demo", of_specs(specs))
    return Exit.FINE


def _specs(demo: LiveDemo) -> tuple[SourceSpec, ...]:
    logs = (SourceSpec("log", str(path), LogRole(role)) for role, path in demo.sources.logs)
    archive = SourceSpec("archive", str(demo.sources.archive))
    spans = SourceSpec("trace_file", str(demo.sources.spans))
    return (SourceSpec("srdb", str(demo.sources.srdb)), *logs, archive, spans)


@contextmanager
def _living(demo: LiveDemo) -> Iterator[None]:
    stopped = threading.Event()

    def live() -> None:
        while not stopped.wait(TICK_S):
            demo.step()

    thread = threading.Thread(target=live, name="demo", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def _print_views(context: Context, specs: tuple[SourceSpec, ...]) -> Exit:
    plain = context._replace(config=context.config._replace(sources=specs))
    jobs.run(plain)
    chosen: list[JobId] = []

    async def choose(reader: Reader) -> Exit:
        await reader.read_jobs()
        known = reader.session.store.jobs.values()
        of_status = (
            job.id for status in TELLING for job in known if job.status is status and not job.is_quasi
        )
        chosen.extend([*of_status][:1])
        return Exit.FINE

    in_session(plain, choose)
    for job_id in chosen:
        print_lines([""])
        runner("timeline")(plain._replace(invocation=context.invocation._replace(words=(job_id,))))
    return Exit.FINE
