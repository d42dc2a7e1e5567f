"""`jobtui [THING]`: the dashboard, at THING when given. Without a terminal it is printed instead."""

import asyncio
import sys

from jobtui.backends.registry import build
from jobtui.commands import jobs, show
from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.exits import Exit
from jobtui.commands.reading import Reader, configured, no_source, warn
from jobtui.commands.resolve import resolve
from jobtui.model.ids import JobId
from jobtui.session import Session


def run(context: Context) -> Exit:
    """Open the dashboard until it is left, or print."""
    if context.format is not OutputFormat.TABLE or not has_terminal():
        return show.run(context) if context.words else jobs.run(context)
    warn(context)
    specs = configured(context)
    if not specs:
        return no_source()
    open_at: JobId | None = None
    if context.words:
        open_at, code = asyncio.run(_resolve(context))
        if open_at is None:
            return code
    session = Session([build(spec) for spec in specs], context.clock)
    context.open_dashboard(session, open_at, context.config.profile or "")
    return Exit.FINE


def has_terminal() -> bool:
    """Whether a dashboard can be shown and used."""
    return sys.stdout.isatty() and sys.stdin is not None and sys.stdin.isatty()


async def _resolve(context: Context) -> tuple[JobId | None, Exit]:
    async with Session((), context.clock) as session:
        reader = Reader(context, session, configured(context))
        found = await resolve(reader, context.words[0])
        code = Exit.FINE if found.job else reader.settle(found.code)
    return (found.job.id if found.job else None), code
