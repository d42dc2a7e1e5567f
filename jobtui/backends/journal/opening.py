"""Readers and sources out of what names a journal. Each way to one is imported where it is used."""

from functools import partial

from jobtui.backends.journal.contract import JournalReader
from jobtui.backends.journal.source import Journal, MakeReader
from jobtui.backends.journal.streams import Wanted
from jobtui.model.clock import Nanos
from jobtui.model.specs import SourceSpec


def reader_of(target: str) -> JournalReader:
    """A reader of the journal at `target`, as `parse_journal` gives it. Opens nothing yet."""
    scheme = target.partition("://")[0] if "://" in target else ""
    if scheme == "ssh":
        from jobtui.backends.journal.ssh import SshJournal

        return SshJournal(target)
    if scheme in ("http", "https"):
        from jobtui.backends.journal.gatewayd import GatewayJournal

        return GatewayJournal(target)
    from jobtui.backends.journal.local import local_journal

    return local_journal(target)


def maker_of(target: str) -> MakeReader:
    """What makes readers of the journal at `target`."""
    return partial(reader_of, target)


def open_journal(spec: SourceSpec, since: Nanos | None) -> Journal:
    """The source that reads a journal from `since` on; None for two hours ago, 0 for all of it."""
    return Journal(spec.target, maker_of(spec.target), wanted=wanted_of(spec), since=since)


def wanted_of(spec: SourceSpec) -> Wanted:
    """Which streams of a journal are wanted: Sirepo's, or those of the units that were named."""
    if not spec.units:
        return Wanted()
    return Wanted(spec.units, [unit.removesuffix(".service") for unit in spec.units])
