"""`jobtui [THING]`: the dashboard, at THING when given. Without a terminal it is printed instead."""

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jobtui.backends.registry import gives_spans
from jobtui.commands.clusters import watch_clusters
from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.exits import Exit
from jobtui.commands.reading import Reader, configured, no_source, sources_to_watch, warn
from jobtui.commands.sites import watch_sites
from jobtui.commands.spelled import spelled
from jobtui.model.specs import SourceSpec
from jobtui.model.trace_ids import TraceRef, find_trace
from jobtui.session import Session
from jobtui.web import DRIVER

if TYPE_CHECKING:
    from jobtui.commands.resolve import Found

WEIGHT_OF_BARE = 0.5
"""How surely a bare id refers to a trace (`analysis.references`)."""


def run(context: Context) -> Exit:
    """Open the dashboard until it is left, or print."""
    if context.format is OutputFormat.PLAIN and has_terminal() and not context.words:
        from jobtui.commands import watch

        return watch.run(context)
    if context.format is not OutputFormat.TABLE or not has_terminal():
        return _print(context)
    warn(context)
    specs = configured(context)
    if not specs:
        return no_source()
    found: Found | None = None
    trace = trace_meant(context, specs)
    if context.words and trace is None:
        found, code = asyncio.run(_resolve(context, specs))
        if found.job is None:
            return code
    announced = sources_to_watch(context, specs, found.detail if found else None)
    session = Session(announced, context.clock, stage=context.stage)
    session.hosts, session.mounts = context.config.hosts, context.config.mounts
    session.job_attributes = context.config.job_attributes
    if not is_served():  # whoever opens a page must not start programs
        session.alarms = context.config.alarms
    watch_sites(session, specs)
    watch_clusters(session, [spec.target for spec in specs if spec.setting == "srdb"])
    open_at = trace or (found.job.id if found and found.job else None)
    title = " ".join(filter(None, ("jobtui", context.config.profile)))
    context.open_dashboard(session, open_at, title, spelled(context.config, specs))
    return Exit.FINE


def is_served() -> bool:
    """Whether this is the dashboard of somebody's browser."""
    return os.environ.get("TEXTUAL_DRIVER") == DRIVER


def trace_meant(context: Context, specs: Sequence[SourceSpec]) -> TraceRef | None:
    """The trace that is named, and no job. A bare id is one only where traces are read: ops have such ids."""
    if not context.words:
        return None
    from jobtui.analysis.references import Target, references  # who names nothing does not need it

    text = context.words[0]
    referred = {one.target: one.weight for one in references(text)}
    if Target.TRACE not in referred or referred.keys() & {Target.JOB, Target.CONDOR}:
        return None
    is_sure = referred[Target.TRACE] > WEIGHT_OF_BARE or any(map(gives_spans, specs))
    return find_trace(text) if is_sure else None


def _print(context: Context) -> Exit:
    # Imported here, as the dashboard does not need it; so is what finds out which job is meant
    from jobtui.commands import jobs, show, trace

    if trace_meant(context, configured(context)) is not None:
        return trace.run(context)
    return show.run(context) if context.words else jobs.run(context)


def has_terminal() -> bool:
    """Whether a dashboard can be shown and used, here or in a browser."""
    return is_served() or (sys.stdout.isatty() and sys.stdin is not None and sys.stdin.isatty())


async def _resolve(context: Context, specs: Sequence[SourceSpec]) -> "tuple[Found, Exit]":
    from jobtui.commands.resolve import resolve

    async with Session((), context.clock, stage=context.stage) as session:
        reader = Reader(context, session, specs)
        found = await resolve(reader, context.words[0])
        return found, Exit.FINE if found.job else reader.settle(found.code)
