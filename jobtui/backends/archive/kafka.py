"""Scripts that SArchive sent to Kafka. A topic cannot be asked for a job, so that it is found in three ways.

While it is followed, an index of bounded size keeps where the script of each job is. What is not in it is
sought from the time of its submission on, in a window; without such a time the last messages are gone
through. What the topic no longer keeps is told apart from what was never there.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import NamedTuple

import msgspec

from jobtui.backends.archive.kafka_topic import Bounds, Message, Topic
from jobtui.backends.archive.keeper import Keeper
from jobtui.backends.archive.matching import best, missed
from jobtui.backends.base import Batch, SourceError
from jobtui.backends.worker import Worker
from jobtui.formats.sarchive_document import parse_script
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.health import Skip
from jobtui.model.scripts import Answer, ArchivedScript, Outcome, Span, Tried, Walked, Wanted

MOST_INDEXED = 100_000
"""Jobs whose place is remembered, the newest; of others it is sought in the topic."""
PLACES_OF_JOB = 4
LONGEST_NUMBER = 100
"""Characters of what may be the number of a job."""
TAIL_MESSAGES = 1_000
"""How many messages of each partition are read when following begins."""
SCANNED_MESSAGES = 20_000
"""How many of each partition are gone through, from the last back, without a time."""
POLL_S = 0.5
SCAN_S = 15.0
EARLY_S, LATE_S = 120, 3_600
"""From how long before the submission to how long after it a script is sought."""
AT_ONCE = 32


class Place(NamedTuple):
    """Where a message is."""

    partition: int
    offset: int


class Window(NamedTuple):
    """A part of a topic: offsets of each partition, and which messages these are."""

    begin: Mapping[int, int]
    end: Mapping[int, int]
    words: str


class _Head(msgspec.Struct):
    """What the index needs of a message."""

    id: str | int


class KafkaArchive(Keeper):
    """One topic, as both a source and a place of scripts. Reads in one thread of its own."""

    kind = "kafka"

    def __init__(self, topic: Topic) -> None:
        super().__init__(topic.name)
        self._topic = topic
        self._worker = Worker(f"topic {topic.name}")
        self._index: OrderedDict[str, tuple[Place, ...]] = OrderedDict()
        self._next: dict[int, int] = {}

    async def poll(self, cursor: str | None) -> Batch:
        """Index what came since. Raises SourceError."""
        self._check_open()
        return await self._worker.run(self._follow)

    async def find(self, wanted: Wanted) -> Answer:
        """The script of a job. Raises SourceError."""
        return await self._worker.run(partial(self._find, wanted))

    async def walk(self, span: Span, told: Callable[[str], None]) -> AsyncIterator[Walked]:
        """Every script that the topic keeps, the oldest first. Raises SourceError."""
        walking = self._walk(span, told)
        try:
            while some := await self._worker.run(lambda: list(islice(walking, AT_ONCE))):
                for walked in some:
                    yield walked
        finally:
            self._worker.soon(walking.close)

    async def aclose(self) -> None:
        """Leave the brokers alone. May be called twice."""
        if not self._closing.is_set():
            self._closing.set()
            await self._worker.finish(self._topic.close)

    def _follow(self) -> Batch:
        bounds = self._topic.bounds()
        begin = {n: self._next.get(n, max(b.low, b.high - TAIL_MESSAGES)) for n, b in bounds.items()}
        # A partition that was made anew or has let go of what came next
        begin = {n: at if bounds[n].low <= at <= bounds[n].high else bounds[n].low for n, at in begin.items()}
        self._next = dict(begin)
        count, skips = 0, []
        for message in self._topic.read(begin, {n: b.high for n, b in bounds.items()}, POLL_S):
            self._next[message.partition] = message.offset + 1
            count += 1
            if not self._note(message):
                skips.append(Skip(self._where(message), "is no script of a job"))
        more = any(self._next[n] < b.high for n, b in bounds.items()) and count > 0
        return Batch(cursor="", count=count, skipped=tuple(skips[-5:]), skip_count=len(skips), more=more)

    def _note(self, message: Message) -> bool:
        """Remember where a job is; whether it was one."""
        try:
            number = str(msgspec.json.decode(message.value or b"", type=_Head).id).partition(".")[0]
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return False
        if len(number) > LONGEST_NUMBER:
            return False
        known = (*self._index.pop(number, ()), Place(message.partition, message.offset))
        self._index[number] = known[-PLACES_OF_JOB:]
        while len(self._index) > MOST_INDEXED:
            self._index.popitem(last=False)
        return True

    def _find(self, wanted: Wanted) -> Answer:
        found = [script for place in self._index.get(wanted.number, ()) for script in self._at(place)]
        script = best(found, wanted)
        if script is not None:
            return Answer(script, (Tried(self.name, Outcome.FOUND),))
        bounds, words = self._topic.bounds(), ""
        for begin, end, words in self._windows(wanted, bounds):
            found = [one for one in self._scan(begin, end) if one.number.partition(".")[0] == wanted.number]
            if (script := best(found, wanted)) is not None:
                return Answer(script, (Tried(self.name, Outcome.FOUND),))
            if self._topic.is_cut:
                note = f"not all messages {words} could be read within {SCAN_S:g} s"
                return Answer(None, (Tried(self.name, Outcome.NO_ANSWER, note),))
        return Answer(None, (self._explained(missed(self.name, found, wanted), wanted, bounds, words),))

    def _at(self, place: Place) -> list[ArchivedScript]:
        """The script at a place; nothing when the topic has let go of it."""
        with suppress(SourceError):
            return list(self._scan({place.partition: place.offset}, {place.partition: place.offset + 1}))
        return []

    def _windows(self, wanted: Wanted, bounds: Mapping[int, Bounds]) -> Iterator[Window]:
        """Where to look, the likeliest first."""
        at = wanted.submitted_at
        if at is not None:
            begin = self._topic.offsets_at(Nanos(at - EARLY_S * SECOND), bounds)
            end = self._topic.offsets_at(Nanos(at + LATE_S * SECOND), bounds)
            yield Window(begin, end, "of the hour after its submission")
        begin = {n: max(b.low, b.high - SCANNED_MESSAGES) for n, b in bounds.items()}
        yield Window(begin, {n: b.high for n, b in bounds.items()}, f"of the last {SCANNED_MESSAGES:,}")

    def _explained(self, tried: Tried, wanted: Wanted, bounds: Mapping[int, Bounds], words: str) -> Tried:
        """The same, with what the topic keeps."""
        at = wanted.submitted_at
        if tried.outcome is not Outcome.NOT_THERE or tried.note:
            return tried
        if at is not None and (first := self._first_at(bounds)) is not None and first > at + LATE_S * SECOND:
            return Tried(
                self.name, Outcome.BEGAN_LATER, f"the topic keeps messages since {to_rfc3339(first)}"
            )
        return tried._replace(note=f"nor in the messages {words}")

    def _first_at(self, bounds: Mapping[int, Bounds]) -> Nanos | None:
        """When the oldest message was sent that is still kept."""
        begin = {n: b.low for n, b in bounds.items() if b.low < b.high}
        messages = self._topic.read(begin, {n: low + 1 for n, low in begin.items()}, POLL_S * 4)
        return min((message.at for message in messages if message.at is not None), default=None)

    def _scan(self, begin: Mapping[int, int], end: Mapping[int, int]) -> Iterator[ArchivedScript]:
        for message in self._topic.read(begin, end, SCAN_S):
            script = self._script(message)
            if script is not None:
                yield script

    def _walk(self, span: Span, told: Callable[[str], None]) -> Generator[Walked, None, None]:
        bounds = self._topic.bounds()
        begin = {n: b.low for n, b in bounds.items()}
        end = {n: b.high for n, b in bounds.items()}
        if span.since is not None:
            begin = self._topic.offsets_at(span.since, bounds)
        if span.until is not None:
            end = self._topic.offsets_at(span.until, bounds)
        told(self.name)
        messages = self._topic.read(begin, end, float("inf"))
        for count, message in enumerate(messages):
            if count >= span.most:
                yield Walked(cut=f"{self.name}: more than {span.most:,} scripts, the others were left out")
                return
            script = self._script(message)
            yield (
                Walked(script=script)
                if script
                else Walked(unreadable=f"{self._where(message)}: is no script of a job")
            )

    def _script(self, message: Message) -> ArchivedScript | None:
        try:
            document = msgspec.json.decode(message.value or b"")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        return parse_script(document, self._where(message))

    def _where(self, message: Message) -> str:
        return f"{self.name}[{message.partition}]@{message.offset}"
