"""Reading a Kafka topic without being a member of anything: partitions are assigned, offsets never committed.

confluent-kafka is an extra (`jobtui[kafka]`) and imported only here. Everything blocks, in steps of at most
STEP_S, so that it can be stopped.
"""

import contextlib
import logging
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jobtui.backends.base import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.clock import Nanos
from jobtui.model.secrets import mask_text

STEP_S = 0.2
ANSWER_S = 10.0
"""How long a broker may take to say what it has."""
AT_ONCE = 500
MILLI = 1_000_000
NOT_INSTALLED = "confluent-kafka is not installed: pip install 'jobtui[kafka]'"
USUAL: Mapping[str, object] = {"socket.timeout.ms": 10_000, "fetch.wait.max.ms": 50}
"""What a configuration may say otherwise. It never waits for what is still to come."""
FIXED: Mapping[str, object] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
    "auto.offset.reset": "earliest",
    "log_level": 0,
}
"""What keeps it a mere reader, whatever the configuration says."""


class Message(NamedTuple):
    """One message: where it is, when it was sent, what it says. Without `value` it only ends a partition."""

    partition: int
    offset: int
    at: Nanos | None
    value: bytes | None


class Bounds(NamedTuple):
    """The first offset that a partition has, and the one after its last."""

    low: int
    high: int


class Topic:
    """One topic of some brokers. For one thread. `config` is a file of librdkafka's settings, "" for none."""

    def __init__(self, brokers: str, topic: str, config: str = "") -> None:
        self._brokers = brokers
        self._topic = topic
        self._config = config
        self._consumer: Any = None
        self.name = f"{brokers}/{topic}"
        self.is_cut = False
        """Whether the last reading ended for want of time."""

    def bounds(self) -> dict[int, Bounds]:
        """What each partition has. Raises SourceError."""
        with self._faults():
            found = self._open().list_topics(self._topic, timeout=ANSWER_S).topics.get(self._topic)
            if found is None or found.error is not None or not found.partitions:
                raise self._error(getattr(found, "error", None))
            return {number: self._bounds_of(number) for number in sorted(found.partitions)}

    def _bounds_of(self, partition: int) -> Bounds:
        return Bounds(*self._open().get_watermark_offsets(self._at(partition), timeout=ANSWER_S))

    def offsets_at(self, at: Nanos, partitions: Mapping[int, Bounds]) -> dict[int, int]:
        """The offset of the first message of each partition that was sent at this time or later."""
        with self._faults():
            wanted = [self._at(number, max(0, at // MILLI)) for number in partitions]
            found = self._open().offsets_for_times(wanted, timeout=ANSWER_S)
            return {
                place.partition: place.offset if place.offset >= 0 else partitions[place.partition].high
                for place in found
            }

    def read(self, places: Mapping[int, int], until: Mapping[int, int], limit_s: float) -> Iterator[Message]:
        """The messages from these offsets up to those, as long as that takes. Raises SourceError."""
        left = {number for number, offset in places.items() if offset < until[number]}
        deadline = time.monotonic() + limit_s
        heard_at = time.monotonic()
        with self._faults():
            consumer = self._open()
            consumer.assign([self._at(number, places[number]) for number in left])
            try:
                while left and time.monotonic() < deadline:
                    messages = consumer.consume(AT_ONCE, timeout=STEP_S)
                    heard_at = time.monotonic() if messages else heard_at
                    if time.monotonic() - heard_at > ANSWER_S:
                        raise SourceUnreachable(f"{self.name}: the brokers have fallen silent")
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
            at = Nanos(millis * MILLI) if kind and millis >= 0 else None
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
            settings: dict[str, object] = {"group.id": f"jobtui-{uuid.uuid4().hex}", **USUAL}
            settings |= _read_settings(self._config) | {"bootstrap.servers": self._brokers, **FIXED}
            try:
                self._consumer = Consumer(settings, logger=_silent())
            except (KafkaException, ValueError, TypeError) as error:
                raise SourceError(f"{self._config}: {mask_text(_said(error))} (--kafka-config)") from error
        return self._consumer

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        """Turn what Kafka raises into errors of a source."""
        if self._consumer is None:
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
            return SourceDenied(f"{self.name}: not permitted ({name}); give a login by --kafka-config FILE")
        if name in ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_RESOLVE"):
            return SourceUnreachable(f"{self.name}: no broker answers ({name}); is the address right?")
        return SourceUnreachable(f"{self.name}: {mask_text(error.str())} ({name})")

    def close(self) -> None:
        """Leave the brokers alone. May be called twice."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


def _read_settings(path: str) -> dict[str, object]:
    """Settings as librdkafka names them, one `name=value` a line. Raises SourceError."""
    if not path:
        return {}
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: cannot be read (--kafka-config)") from error
    pairs = (line.partition("=") for line in map(str.strip, lines) if line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def _silent() -> logging.Logger:
    """librdkafka writes to the terminal otherwise."""
    logger = logging.getLogger("jobtui.kafka")
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return logger


def _said(error: Exception) -> str:
    first = error.args[0] if error.args else error
    return first.str() if hasattr(first, "str") else str(first)
