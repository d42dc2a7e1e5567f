"""Following the hosts of a journal apart over connections: one for each, once there is a second."""

from collections.abc import AsyncGenerator, Callable

from jobtui.backends.journal.apart import ApartFollowing
from jobtui.backends.journal.contract import Following, JournalReader
from jobtui.backends.journal.following import ConnectedFollowing
from jobtui.backends.journal.hosts import Hosts, OneOfEach, within
from jobtui.model.journal import Beside, Match, Matches, Slice, Start, Tail

LOOK_EVERY_S = 10.0
"""What a host that is new sends late is found within this time."""

LANES_MOST = 32
"""Hosts that are followed apart; each costs a connection."""

ListenTo = Callable[[Start, Matches, Matches], AsyncGenerator[Slice, None]]
"""One connection: from where on, what is wanted, and the hosts whose entries these are; () for all."""


class ConnectedLanes:
    """`Lanes` over connections that `listen` makes."""

    most = LANES_MOST
    look_every_s = LOOK_EVERY_S

    def __init__(self, reader: JournalReader, one_of_each: OneOfEach, listen: ListenTo) -> None:
        self._reader = reader
        self._listen = listen
        self._hosts = Hosts(reader.values, one_of_each)

    @property
    def name(self) -> str:
        """The journal, as it was configured."""
        return self._reader.name

    async def hosts(self) -> tuple[Match, ...]:
        """What the entries of each host have in common."""
        return await self._hosts.known()

    async def last_before(self, start: Tail | Beside, scope: Matches) -> Slice:
        """The last entry of `scope` before a place."""
        return await self._reader.backward(start, scope, 1)

    def lane(self, start: Start, matches: Matches, scope: Matches) -> Following:
        """Following `matches` among the entries of `scope`."""
        wanted = within(matches, scope)
        return ConnectedFollowing(self.name, lambda place: self._listen(place, wanted, scope), start)

    async def aclose(self) -> None:
        """Nothing is held besides the lanes."""


def follow_apart(
    reader: JournalReader, one_of_each: OneOfEach, listen: ListenTo, start: Start, wanted: Matches
) -> ApartFollowing:
    """What is written from `start` on."""
    return ApartFollowing(ConnectedLanes(reader, one_of_each, listen), start, wanted)
