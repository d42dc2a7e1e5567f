"""`demo`: the dashboard on a simulated job system in a temporary directory, or a command on it.

The simulator writes what the real systems write, and it is read from there like theirs.
"""

import os
import tempfile
import threading
from contextlib import nullcontext
from pathlib import Path

from jobtui.backends.balsam.login import PATH_VARIABLE
from jobtui.commands import runner
from jobtui.commands.context import Context, make_context, of_specs
from jobtui.commands.open import has_terminal
from jobtui.commands.printing import print_lines
from jobtui.commands.reader import session_to_watch
from jobtui.commands.record import REPLAYED
from jobtui.commands.remember import REMEMBERED, with_memory
from jobtui.commands.streams import Exit, complain
from jobtui.config import load
from jobtui.demo.balsam import serving
from jobtui.demo.incidents import INCIDENTS
from jobtui.demo.live import TICK_S, LiveDemo
from jobtui.grammar import COMMAND_BY_NAME, Invocation, nearest
from jobtui.model.clock import SystemClock
from jobtui.model.numbers import whole
from jobtui.model.specs import SourceSpec
from jobtui.render.spans import Piece
from jobtui.render.table import Head, table_lines


def run(context: Context) -> Exit:
    incident = context.flag("incident")
    if incident == "list":
        rows = [[Piece(name), Piece(known.text)] for name, known in INCIDENTS.items()]
        print_lines(
            table_lines((Head("INCIDENT"), Head("WHAT HAPPENS")), rows, context.width, context.colour)
        )
        return Exit.FINE
    if incident is not None and incident not in INCIDENTS:
        hint = nearest(incident, INCIDENTS) or "; `jobtui demo --incident list` lists them"
        return complain(f"no incident {incident!r}{hint}", Exit.USAGE)
    inner = context.invocation.inner
    if inner is not None and inner.command.name not in REPLAYED | REMEMBERED:
        return complain(f"the demo cannot answer {inner.command.name}", Exit.USAGE)
    seed = whole(context.flag("seed"), 1)
    with tempfile.TemporaryDirectory(prefix="jobtui-demo-") as directory:
        demo = LiveDemo(Path(directory), seed=seed, incident=incident)
        if inner is None and has_terminal():
            complain("simulating some hours of a job system ...")
        demo.prepare()
        with serving(Path(directory), seed, SystemClock()) as (url, login):
            os.environ[PATH_VARIABLE] = str(login)  # nobody's own login is for this server
            return _show(context, demo, (*demo.specs, SourceSpec("balsam", url)))


def _show(context: Context, demo: LiveDemo, specs: tuple[SourceSpec, ...]) -> Exit:
    """Run the command on it; without one open the dashboard while the site runs."""
    inner = context.invocation.inner
    if inner is not None or not has_terminal():
        inner = inner or Invocation(COMMAND_BY_NAME["jobs"], (), {}, {})
        flags = (f"--{name}={value}" for name, value in context.invocation.flags.items())
        config = load({**context.invocation.settings, **inner.settings}, os.environ)
        made = config._replace(sources=specs, begins=("demo", *flags))
        inside = make_context(inner, made, context.open_dashboard)._replace(remembers=False)
        with with_memory(inside) if inner.command.name in REMEMBERED else nullcontext(inside) as asked:
            return Exit(runner(inner.command.name)(asked))
    stopped = threading.Event()

    def live() -> None:
        while not stopped.wait(TICK_S):
            demo.step()

    thread = threading.Thread(target=live, name="demo", daemon=True)
    thread.start()
    try:
        with with_memory(context._replace(config=context.config._replace(sources=specs))) as asked:
            context.open_dashboard(session_to_watch(asked, specs), None, "jobtui demo", of_specs(specs))
    finally:
        stopped.set()
        thread.join()
    return Exit.FINE
