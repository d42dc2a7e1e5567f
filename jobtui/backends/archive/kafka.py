"""Scripts of jobs from a Kafka topic.

confluent-kafka is an extra (`jobtui[kafka]`) and imported only here. Everything blocks, in steps of at most
STEP_S, so that it can be stopped.

A script is searched in a window from the job's submission on; without that time in the last messages.
Messages that the topic no longer keeps are distinguished from those that were never there.
"""

import contextlib
import logging
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec

from jobtui.backends.archive.source import Archive, best, missed
from jobtui.backends.base import Batch
from jobtui.formats.sarchive import parse_script
from jobtui.model.clock import SECOND, Nanos, time_of_seconds, to_rfc3339
from jobtui.model.health import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.scripts import Answer, ArchivedScript, Outcome, ScriptPeriod, Tried, Walked, Wanted
from jobtui.model.secrets import mask_text
from jobtui.model.specs import ReadWindow, SourceSpec
from jobtui.transport.files import read_given
from jobtui.transport.worker import Worker

STEP_S = 0.2
ANSWER_S = 10.0
BATCH_MESSAGES = 500
MOST_SETTINGS = 1 << 20
MILLI = 1_000_000
NOT_INSTALLED = "confluent-kafka is not installed: pip install 'jobtui[kafka]'"
USUAL: Mapping[str, object] = {"socket.timeout.ms": 10_000, "fetch.wait.max.ms": 50}
"""Defaults that a configuration may change. It never waits for messages to come."""
FIXED: Mapping[str, object] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
    "auto.offset.reset": "earliest",
    "log_level": 0,
}
"""Settings that keep it read-only, whatever the configuration says."""


class Message(NamedTuple):
    """One message: its position, when it was sent, its text. Without `value` it only ends a partition."""

    partition: int
    offset: int
    at: Nanos | None
    value: bytes | None


class Bounds(NamedTuple):
    """The first offset that a partition has, and the one after its last."""

    low: int
    high: int


class KafkaTopic:
    """One topic of some brokers. For one thread. `config` is a file of librdkafka's settings, "" for none."""

    def __init__(self, brokers: str, topic: str, config: str = "") -> None:
        self._brokers = brokers
        self._topic = topic
        self._config = config
        self._consumer: Any = None
        self.name = f"{brokers}/{topic}"
        self.is_cut = False
        """Whether the last reading ran out of time."""

    def bounds(self) -> dict[int, Bounds]:
        """The bounds of each partition. Raises SourceError."""
        with self._faults():
            found = self._open().list_topics(self._topic, timeout=ANSWER_S).topics.get(self._topic)
            if found is None or found.error is not None or not found.partitions:
                raise self._error(getattr(found, "error", None))
            marks = self._open().get_watermark_offsets
            return {n: Bounds(*marks(self._at(n), timeout=ANSWER_S)) for n in sorted(found.partitions)}

    def offsets_at(self, at: Nanos, partitions: Mapping[int, Bounds]) -> dict[int, int]:
        """The offset of the first message of each partition that was sent at this time or later."""
        with self._faults():
            wanted = [self._at(number, max(0, at // MILLI)) for number in partitions]
            found = self._open().offsets_for_times(wanted, timeout=ANSWER_S)
            return {
                start.partition: start.offset if start.offset >= 0 else partitions[start.partition].high
                for start in found
            }

    def read(self, offsets: Mapping[int, int], until: Mapping[int, int], limit_s: float) -> Iterator[Message]:
        """The messages from these offsets up to those. Raises SourceError."""
        left = {number for number, offset in offsets.items() if offset < until[number]}
        deadline = time.monotonic() + limit_s
        heard_at = time.monotonic()
        with self._faults():
            consumer = self._open()
            consumer.assign([self._at(number, offsets[number]) for number in left])
            try:
                while left and time.monotonic() < deadline:
                    messages = consumer.consume(BATCH_MESSAGES, timeout=STEP_S)
                    heard_at = time.monotonic() if messages else heard_at
                    if time.monotonic() - heard_at > ANSWER_S:
                        raise SourceUnreachable(f"{self.name}: the brokers stopped answering")
                    for message in messages:
                        found = self._message(message)
                        if found.offset + 1 >= until.get(found.partition, 0) or found.value is None:
                            left.discard(found.partition)
                        if found.value is not None and found.offset < until.get(found.partition, 0):
                            yield found
                self.is_cut = bool(left)
            finally:
                consumer.unassign()

    def _message(self, message: Any) -> Message:
        from confluent_kafka import KafkaError, KafkaException

        error = message.error()
        if error is None:
            kind, millis = message.timestamp()
            at = time_of_seconds(millis / 1_000) if kind else None
            return Message(message.partition(), message.offset(), at, message.value() or b"")
        if error.code() == KafkaError._PARTITION_EOF:
            return Message(message.partition(), message.offset(), None, None)
        raise KafkaException(error)

    def _at(self, partition: int, offset: int = -1001) -> Any:
        from confluent_kafka import TopicPartition

        return TopicPartition(self._topic, partition, offset)

    def _open(self) -> Any:
        if self._consumer is None:
            try:
                from confluent_kafka import Consumer, KafkaException
            except ImportError as error:
                raise SourceError(f"{self.name}: {NOT_INSTALLED}") from error
            logger = logging.getLogger("jobtui.kafka")  # librdkafka writes to the terminal otherwise
            logger.propagate = False
            if not logger.handlers:
                logger.addHandler(logging.NullHandler())
            settings: dict[str, object] = {"group.id": f"jobtui-{uuid.uuid4().hex}", **USUAL}
            settings |= _read_settings(self._config) | {"bootstrap.servers": self._brokers, **FIXED}
            try:
                self._consumer = Consumer(settings, logger=logger)
            except (KafkaException, ValueError, TypeError) as error:
                first = error.args[0] if error.args else error
                said = mask_text(first.str() if hasattr(first, "str") else str(first))
                raise SourceError(f"{self._config}: {said} (--kafka-config)") from error
        return self._consumer

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        self._open()
        from confluent_kafka import KafkaException

        try:
            yield
        except KafkaException as error:
            raise self._error(error.args[0] if error.args else None) from error
        except RuntimeError as error:  # it was closed meanwhile
            raise SourceUnreachable(f"{self.name}: {error}") from error

    def _error(self, error: Any) -> SourceError:
        name = error.name() if error is not None else "UNKNOWN_TOPIC_OR_PART"
        if name in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"):
            return SourceMissing(f"{self.name}: the brokers have no such topic")
        if "AUTH" in name:
            return SourceDenied(f"{self.name}: not permitted ({name}); give a login with --kafka-config FILE")
        if name in ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_RESOLVE"):
            return SourceUnreachable(f"{self.name}: no broker answers ({name}); is the address right?")
        return SourceUnreachable(f"{self.name}: {mask_text(error.str())} ({name})")

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


def _read_settings(path: str) -> dict[str, object]:
    """Settings as librdkafka names them, one `name=value` a line. Raises SourceError."""
    if not path:
        return {}
    try:
        lines = read_given(path, MOST_SETTINGS).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8"
        raise SourceError(f"{path}: cannot be read: {why} (--kafka-config)") from error
    pairs = (line.partition("=") for line in map(str.strip, lines) if line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}


SCANNED_MESSAGES = 20_000
"""How many last messages of each partition are read without a time."""
FIRST_S = 2.0
"""How long the first message of each partition may take."""
SCAN_S = 15.0
EARLY_S, LATE_S = 120, 3_600
"""How long before and after the submission a script is searched for."""


class KafkaArchive(Archive):
    """One topic, as a source of records and of scripts. Reads in one thread of its own."""

    kind = "kafka"

    def __init__(self, topic: KafkaTopic) -> None:
        super().__init__(topic.name)
        self._topic = topic
        self._worker = Worker(f"topic {topic.name}")

    async def read(self, *, begins: bool) -> Batch:
        await self._worker.run(self._topic.bounds)
        return Batch()

    async def find(self, wanted: Wanted) -> Answer:
        return await self._worker.run(partial(self._find, wanted))

    def walk(self, span: ScriptPeriod, progress: Callable[[str], None]) -> AsyncGenerator[Walked, None]:
        return self._steps_of_walk(self._worker, self._walk(span, progress))

    async def aclose(self) -> None:
        if not self.closing.is_set():
            await super().aclose()
            await self._worker.finish(self._topic.close)

    def _find(self, wanted: Wanted) -> Answer:
        found: list[ArchivedScript] = []
        bounds, words = self._topic.bounds(), ""
        for begin, end, words in self._windows(wanted, bounds):
            scripts = map(self._script, self._topic.read(begin, end, SCAN_S))
            found = [one for one in scripts if one and one.number.partition(".")[0] == wanted.number]
            if (script := best(found, wanted)) is not None:
                return Answer(script, (Tried(self.name, Outcome.FOUND),))
            if self._topic.is_cut:
                note = f"not all messages {words} could be read within {SCAN_S:g} s"
                return Answer(None, (Tried(self.name, Outcome.NO_ANSWER, note),))
        return Answer(None, (self._with_reason(missed(self.name, found, wanted), wanted, bounds, words),))

    def _windows(
        self, wanted: Wanted, bounds: Mapping[int, Bounds]
    ) -> Iterator[tuple[Mapping[int, int], Mapping[int, int], str]]:
        """The range of offsets of each partition, and in words which messages these are."""
        at = wanted.submitted_at
        if at is not None:
            begin = self._topic.offsets_at(Nanos(at - EARLY_S * SECOND), bounds)
            end = self._topic.offsets_at(Nanos(at + LATE_S * SECOND), bounds)
            yield begin, end, "of the hour after its submission"
        begin = {n: max(b.low, b.high - SCANNED_MESSAGES) for n, b in bounds.items()}
        yield begin, {n: b.high for n, b in bounds.items()}, f"of the last {SCANNED_MESSAGES:,}"

    def _with_reason(self, tried: Tried, wanted: Wanted, bounds: Mapping[int, Bounds], words: str) -> Tried:
        at = wanted.submitted_at
        if tried.outcome is not Outcome.NOT_THERE or tried.note:
            return tried
        if at is not None:
            begin = {n: b.low for n, b in bounds.items() if b.low < b.high}
            messages = self._topic.read(begin, {n: low + 1 for n, low in begin.items()}, FIRST_S)
            first = min((message.at for message in messages if message.at is not None), default=None)
            if first is not None and first > at + LATE_S * SECOND:
                since = f"the topic keeps messages since {to_rfc3339(first)}"
                return Tried(self.name, Outcome.BEGAN_LATER, since)
        return tried._replace(note=f"nor is it in the messages {words}")

    def _walk(self, span: ScriptPeriod, progress: Callable[[str], None]) -> Generator[Walked, None, None]:
        bounds = self._topic.bounds()
        begin = {n: b.low for n, b in bounds.items()}
        end = {n: b.high for n, b in bounds.items()}
        if span.since is not None:
            begin = self._topic.offsets_at(span.since, bounds)
        if span.until is not None:
            end = self._topic.offsets_at(span.until, bounds)
        progress(self.name)
        for message in self._topic.read(begin, end, float("inf")):
            script = self._script(message)
            unreadable = "" if script else f"{self._where(message)}: is not a script of a job"
            yield Walked(script=script, unreadable=unreadable)

    def _script(self, message: Message) -> ArchivedScript | None:
        try:
            document = msgspec.json.decode(message.value or b"")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        return parse_script(document, self._where(message))

    def _where(self, message: Message) -> str:
        return f"{self.name}[{message.partition}]@{message.offset}"


def open_source(spec: SourceSpec, window: ReadWindow) -> KafkaArchive:
    brokers, _, topic = spec.target.rpartition("/")
    return KafkaArchive(KafkaTopic(brokers, topic, spec.options))
