"""`demo`: the dashboard on a simulated job system in a temporary directory; off a terminal, one-shot views.

The simulator writes what the real systems write, and it is read from there like theirs.
"""

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jobtui.backends.balsam.credentials import PATH_VARIABLE
from jobtui.backends.registry import announce
from jobtui.commands import jobs, timeline
from jobtui.commands.clusters import watch_clusters
from jobtui.commands.context import Context
from jobtui.commands.exits import Exit
from jobtui.commands.open import has_terminal
from jobtui.commands.printing import print_lines
from jobtui.commands.reading import Reader, in_session
from jobtui.commands.spelled import of_specs
from jobtui.commands.streams import complain
from jobtui.demo.balsam_server import serving
from jobtui.demo.incidents import INCIDENTS
from jobtui.demo.live import TICK_S, LiveDemo
from jobtui.grammar import nearest
from jobtui.model.clock import SystemClock
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobStatus
from jobtui.model.specs import LogRole, SourceSpec
from jobtui.render.table import Cell, Head, table_lines
from jobtui.session import Session

LIST = "list"
DEFAULT_SEED = 1
TELLING = (JobStatus.FAILED, JobStatus.RUNNING, JobStatus.COMPLETED)
"""Of which status a job is chosen to print its timeline, the first that there is."""


def run(context: Context) -> Exit:
    """Open the dashboard on the demo until it is left, or print what it would show."""
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
    seed = int(context.flag("seed") or DEFAULT_SEED)
    with tempfile.TemporaryDirectory(prefix="jobtui-demo-") as place:
        demo = LiveDemo(Path(place), seed=seed, incident=incident)
        demo.prepare()
        with serving(Path(place), seed, SystemClock()) as (url, login):
            os.environ[PATH_VARIABLE] = str(login)  # nobody's own login is for this server
            return _show(context, demo, (*_specs(demo), SourceSpec("balsam", url)))


def _show(context: Context, demo: LiveDemo, specs: tuple[SourceSpec, ...]) -> Exit:
    """Open the dashboard on the demo until it is left, or print what it would show."""
    if not has_terminal():
        return _print_views(context, specs)
    with _living(demo):
        session = Session([announce(spec) for spec in specs], context.clock)
        watch_clusters(session, [spec.target for spec in specs if spec.setting == "srdb"])
        context.open_dashboard(session, None, "jobtui demo", of_specs(specs))
    return Exit.FINE


def _specs(demo: LiveDemo) -> tuple[SourceSpec, ...]:
    """The demo as one would name it on the command line."""
    logs = (SourceSpec("log", str(path), LogRole(role)) for role, path in demo.sources.logs)
    archive = SourceSpec("archive", str(demo.sources.archive))
    spans = SourceSpec("trace_file", str(demo.sources.spans))
    return (SourceSpec("srdb", str(demo.sources.srdb)), *logs, archive, spans)


@contextmanager
def _living(demo: LiveDemo) -> Iterator[None]:
    """Let the simulated time go on as long as this lasts."""
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
    """The job table, and the timeline of a job that has something to tell."""
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
        timeline.run(plain._replace(invocation=context.invocation._replace(words=(job_id,))))
    return Exit.FINE
