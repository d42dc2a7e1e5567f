"""Whose entries a journal holds: what all entries of one host have in common, so that it can be read apart.

That is the machine they name; where they name none, their boot, which is one host's too.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence

from jobtui.model.journal import JournalEntry, Match, Matches

MACHINE, BOOT = "_MACHINE_ID", "_BOOT_ID"

Values = Callable[[str], Awaitable[tuple[str, ...]]]
"""The values of a field in the journal."""

OneOfEach = Callable[[Sequence[Matches]], Awaitable[list[JournalEntry | None]]]
"""Some entry of each of these, None where there is none."""


class Hosts:
    """The hosts of one journal. Each boot is looked at once."""

    def __init__(self, values: Values, one_of_each: OneOfEach) -> None:
        self._values = values
        self._one_of_each = one_of_each
        self._named: dict[str, bool] = {}

    async def known(self) -> tuple[Match, ...]:
        """What the entries of each host have in common. Raises SourceError."""
        machines, boots = await self._values(MACHINE), await self._values(BOOT)
        if not machines or len(boots) > 1:
            await self._look_at(boots)
        nameless = [boot for boot in boots if not self._named.get(boot, True)]
        return (*((MACHINE, machine) for machine in machines), *((BOOT, boot) for boot in nameless))

    async def _look_at(self, boots: Sequence[str]) -> None:
        """Find out of which boots the entries name a machine."""
        self._named = {boot: self._named[boot] for boot in boots if boot in self._named}
        fresh = [boot for boot in boots if boot not in self._named]
        found = await self._one_of_each([(((BOOT, boot),),) for boot in fresh]) if fresh else ()
        for boot, entry in zip(fresh, found, strict=True):
            if entry is not None:
                self._named[boot] = bool(entry.machine)


def host_of(entry: JournalEntry) -> Match:
    """What an entry has in common with all others of its host."""
    return (MACHINE, entry.machine) if entry.machine else (BOOT, entry.boot)


def of_hosts(hosts: Iterable[Match]) -> Matches:
    """Every entry of these hosts."""
    return tuple((host,) for host in hosts)


def within(matches: Matches, scope: Matches) -> Matches:
    """The entries that both want."""
    if not scope or not matches:
        return scope or matches
    return tuple((*group, *more) for more in scope for group in matches)
