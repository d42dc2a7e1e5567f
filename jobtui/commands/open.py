"""`jobtui [THING]` and `serve`: the dashboard, here or in a browser; printed without a terminal."""

import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jobtui.backends.registry import Gives, gives
from jobtui.commands import runner
from jobtui.commands.context import Context, OutputFormat, spelled
from jobtui.commands.reader import Reader, configured, no_source, session_to_watch, warn, within
from jobtui.commands.streams import Exit, complain
from jobtui.grammar import COMMAND_BY_NAME
from jobtui.model.ids import JobFilter, JobId, TraceRef, find_trace
from jobtui.model.specs import LOOPBACK, SourceSpec, is_loopback, listen_host
from jobtui.web import DRIVER

if TYPE_CHECKING:
    from jobtui.commands.find import FoundJob


def run(context: Context) -> Exit:
    in_lines = context.format is OutputFormat.PLAIN and not context.words
    if not has_terminal() or not (in_lines or context.format is OutputFormat.TABLE):
        is_trace = trace_meant(context, configured(context)) is not None
        return Exit(runner("trace" if is_trace else "show" if context.words else "jobs")(context))
    warn(context)
    specs = configured(context)
    if not specs:
        return no_source()
    if in_lines:
        from jobtui.commands.watch import watch

        asyncio.run(watch(context, specs))
        return Exit.FINE
    found: FoundJob | None = None
    trace = trace_meant(context, specs)
    if context.words and trace is None:
        found, code = asyncio.run(within(context, specs, _resolve))
        if found.job is None and len(found.traces) != 1 and not found.jobs:
            return code
        trace = TraceRef(found.traces[0]) if found.job is None and len(found.traces) == 1 else None
    session = session_to_watch(context, specs, found.detail if found else None)
    if not is_served():  # a viewer of the page must not start programs
        session.alarms = context.config.alarms
    open_at: JobId | TraceRef | JobFilter | None = trace
    if found is not None and trace is None:
        open_at = found.job.id if found.job is not None else JobFilter(found.filter)
    title = " ".join(filter(None, ("jobtui", context.config.profile)))
    context.open_dashboard(session, open_at, title, spelled(context.config, specs))
    return Exit.FINE


def is_served() -> bool:
    return os.environ.get("TEXTUAL_DRIVER") == DRIVER


def trace_meant(context: Context, specs: Sequence[SourceSpec]) -> TraceRef | None:
    """The trace that is named, and no job. A bare id is one only if traces are read: ops have such ids."""
    if not context.words:
        return None
    from jobtui.analysis.find import Target, references  # nothing was named, so it is not needed

    text = context.words[0]
    referred = {one.target: one.weight for one in references(text)}
    if Target.TRACE not in referred or referred.keys() & {Target.JOB, Target.CONDOR}:
        return None
    is_bare = referred[Target.TRACE] <= 0.5  # as surely `analysis.references` takes a mere id for a trace's
    is_sure = not is_bare or any(gives(spec, Gives.SPANS) for spec in specs)
    return find_trace(text) if is_sure else None


def has_terminal() -> bool:
    return is_served() or (sys.stdout.isatty() and sys.stdin is not None and sys.stdin.isatty())


async def _resolve(reader: Reader) -> "tuple[FoundJob, Exit]":
    from jobtui.commands.find import resolve

    found = await resolve(reader, reader.context.words[0])
    return found, Exit.FINE if found.job or found.jobs else reader.settle(found.code)


DEFAULT_ADDRESS = f"{LOOPBACK}:8417"
DASHBOARDS = frozenset({"demo", "replay"})


def run_serve(context: Context) -> Exit:
    """Serve until interrupted; USAGE for what cannot be served, or an address that cannot be used."""
    first = context.words[0] if context.words else ""
    if first in COMMAND_BY_NAME and first not in DASHBOARDS:
        return complain(f"{first} is not a dashboard; serve shows THING, demo or replay", Exit.USAGE)
    warn(context)
    if first not in DASHBOARDS and not configured(context):
        return no_source()
    try:
        from jobtui.web.server import DashboardServer
    except ImportError:
        return complain("serve needs textual-serve: pip install 'jobtui[serve]'", Exit.USAGE)
    listener = _listener(context.flag("listen") or DEFAULT_ADDRESS)
    if listener is None:
        return Exit.USAGE
    kept, apart = (context.words, ()) if first in DASHBOARDS else ((), ("--",))
    # This program with its own settings; -P, so that nothing is imported from this directory
    starts = (sys.executable, "-P", "-m", "jobtui", *spelled(context.config, None, looks=True), *apart)

    def words_at(job: str | None) -> Sequence[str]:
        if job is None:
            return (*starts, *context.words)
        is_more = job.startswith("-") or job in COMMAND_BY_NAME  # it would read or do something else
        return () if is_more else (*starts, *kept, job)

    server = DashboardServer(words_at, listener)
    sys.stdout.write(f"The dashboard is at {server.address}\n")
    sys.stdout.flush()
    server.run()
    return Exit.FINE


def _listener(text: str) -> socket.socket | None:
    try:
        host, port = listen_host(text if ":" in text else f":{text}")
    except ValueError:
        complain(f"--listen {text}: expected HOST:PORT, such as {DEFAULT_ADDRESS}, or only a port")
        return None
    host = host or LOOPBACK
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family)
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        complain(f"cannot listen at {host}:{port}: {why}; choose another with --listen HOST:PORT")
        return None
    if not is_loopback(host):
        complain(f"{host} can be reached from other machines: who has the address can look, unencrypted")
    return listener
