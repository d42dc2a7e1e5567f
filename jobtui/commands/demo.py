"""`demo`: the dashboard on a simulated job system in a temporary directory, or a command on it.

The simulator writes what the real systems write, and jobtui reads it as it reads theirs.
"""

import os
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path

from jobtui.backends.balsam.login import PATH_VARIABLE
from jobtui.commands import runner
from jobtui.commands.context import Context, make_context, of_specs
from jobtui.commands.open import has_terminal
from jobtui.commands.printing import coloured, print_lines
from jobtui.commands.record import REPLAYED
from jobtui.commands.remember import REMEMBERED, with_memory
from jobtui.commands.streams import Exit, complain
from jobtui.config import load
from jobtui.demo.balsam import serving
from jobtui.demo.incidents import INCIDENTS
from jobtui.demo.live import TICK_S, LiveDemo
from jobtui.grammar import DASHBOARD, Invocation, nearest
from jobtui.model.clock import SystemClock
from jobtui.model.numbers import whole
from jobtui.model.settings import Alarms
from jobtui.model.specs import SourceSpec
from jobtui.render.columns import head, table_lines
from jobtui.render.spans import Piece


def run(context: Context) -> Exit:
    incident = context.flag("incident")
    if incident == "list":
        rows = [[Piece(name), Piece(known.text)] for name, known in INCIDENTS.items()]
        heads = head("INCIDENT"), head("WHAT HAPPENS")
        print_lines(coloured(table_lines(heads, rows, context.width), context))
        return Exit.FINE
    if incident is not None and incident not in INCIDENTS:
        hint = nearest(incident, INCIDENTS) or "; `jobtui demo --incident list` lists them"
        return complain(f"unknown incident {incident!r}{hint}", Exit.USAGE)
    inner = context.invocation.inner
    if inner is not None and inner.command.name not in REPLAYED | REMEMBERED | {"wait", "bundle"}:
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
    """Run the command on it, or open the dashboard. The site goes on while it is watched."""
    inner = context.invocation.inner or Invocation(DASHBOARD, (), {}, {})
    opens = inner.command is DASHBOARD and has_terminal()
    flags = (f"--{name}={value}" for name, value in context.invocation.flags.items())
    config = load({**context.invocation.settings, **inner.settings}, os.environ)
    # What the dashboard copies is of this demo. No program of the user is for the failures of a demo.
    begins = of_specs(specs) if opens else ("demo", *flags)
    config = config._replace(sources=specs, begins=begins, alarms=Alarms())
    made = make_context(inner, config._replace(profile="demo") if opens else config, context.open_dashboard)
    asked = made._replace(remembers=False)
    with ExitStack() as stack:
        if opens or inner.command.name == "wait" or "follow" in inner.flags:
            stopped = threading.Event()
            thread = threading.Thread(target=_go_on, args=(demo, stopped), name="demo", daemon=True)
            thread.start()
            stack.callback(thread.join)
            stack.callback(stopped.set)
        if opens or inner.command.name in REMEMBERED:
            asked = stack.enter_context(with_memory(asked))
        return Exit(runner(inner.command.name)(asked))


def _go_on(demo: LiveDemo, stopped: threading.Event) -> None:
    while not stopped.wait(TICK_S):
        demo.step()
