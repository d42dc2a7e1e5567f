"""Kafka: librdkafka's own mock cluster over TCP, with offsets by time added for seeking."""

import asyncio
import json
import struct
import threading
import time
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest

from jobtui.backends.archive.kafka import EARLY_S, LATE_S, KafkaArchive, Topic
from jobtui.backends.archive.search import Query, Tally, search
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.scripts import Outcome, ScriptPeriod, Wanted
from jobtui.model.source_errors import SourceError, SourceMissing, SourceUnreachable
from tests.backends.archive.captured import JOBS, SUBMITTED, documents, environment_of, script_of

HOST = "127.0.0.1"
LIST_OFFSETS = 2
OFFERED, OFFERED_HERE = struct.pack(">hhh", LIST_OFFSETS, 0, 7), struct.pack(">hhh", LIST_OFFSETS, 0, 5)
ASKED, TOLD = struct.Struct(">iiq"), struct.Struct(">ihqqi")
"""A partition of a question: number, epoch, time. Of an answer: number, error, time, offset, epoch."""


class TimedBrokers:
    """A thread that serves one broker. `times` are those of each partition's messages, in milliseconds."""

    def __init__(self, port: int, times: Mapping[int, Sequence[int]]) -> None:
        self.asked: list[tuple[int, int]] = []
        """Partition and time of each question."""
        self.port = 0
        self._mock, self._times = port, times
        self._ready = threading.Event()
        self._end: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()
        assert self._ready.wait(30)

    def close(self) -> None:
        self._end()
        self._thread.join(30)

    async def _run(self) -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        self._end = lambda: loop.call_soon_threadsafe(ended.set)
        server = await asyncio.start_server(self._serve, HOST, 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await ended.wait()
        server.close()

    async def _serve(self, asking: asyncio.StreamReader, answering: asyncio.StreamWriter) -> None:
        answers, questions = await asyncio.open_connection(HOST, self._mock)
        wanted: dict[int, dict[int, int]] = {}
        try:
            await asyncio.gather(
                _pass(asking, questions, lambda frame: self._note(frame, wanted)),
                _pass(answers, answering, lambda frame: self._changed(frame, wanted)),
            )
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # one of them is gone, or this is to end
        finally:
            for writer in (questions, answering):
                writer.transport.abort()

    def _note(self, frame: bytes, wanted: dict[int, dict[int, int]]) -> bytes:
        """Remember the times that a question asks for, by its number."""
        key, version, number = struct.unpack_from(">hhi", frame)
        if key == LIST_OFFSETS:
            assert version == OFFERED_HERE[-1]
            name = struct.unpack_from(">h", frame, 8)[0]
            body = frame[10 + max(0, name) :]  # behind replica, isolation and the number of topics
            begin = 9 + 2 + struct.unpack_from(">h", body, 9)[0] + 4
            asked = {partition: at for partition, _, at in ASKED.iter_unpack(body[begin:])}
            wanted[number] = {partition: at for partition, at in asked.items() if at >= 0}
            self.asked += wanted[number].items()
        return frame

    def _changed(self, frame: bytes, wanted: dict[int, dict[int, int]]) -> bytes:
        """An answer with what the mock leaves out."""
        there, here = (HOST.encode() + struct.pack(">i", port) for port in (self._mock, self.port))
        frame = frame.replace(there, here).replace(OFFERED, OFFERED_HERE)
        times = wanted.pop(struct.unpack_from(">i", frame)[0], {})
        if not times:
            return frame
        begin = 12 + 2 + struct.unpack_from(">h", frame, 12)[0] + 4
        return frame[:begin] + b"".join(
            TOLD.pack(partition, error, *self._first(partition, times.get(partition, -1), at, offset), epoch)
            for partition, error, at, offset, epoch in TOLD.iter_unpack(frame[begin:])
        )

    def _first(self, partition: int, wanted: int, at: int, offset: int) -> tuple[int, int]:
        """Time and offset of the first message at a time or later; what was told for any other question."""
        if wanted < 0:
            return at, offset
        known = self._times.get(partition, ())
        found = bisect_left(known, wanted)
        return (known[found], found) if found < len(known) else (-1, -1)


async def _pass(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, change: Callable[[bytes], bytes]
) -> None:
    """Pass on frames until there are no more. Raises IncompleteReadError then."""
    while True:
        (length,) = struct.unpack(">i", await source.readexactly(4))
        frame = change(await source.readexactly(length))
        target.write(struct.pack(">i", len(frame)) + frame)
        await target.drain()


confluent_kafka = pytest.importorskip("confluent_kafka")
TOPIC = "sarchive"


TORQUE = [json.dumps({**documents()[0], "id": f"{number}.master"}).encode() for number in ("27", "270")]
HARMFUL = [b'{"id": 1, "x": ' + b"[" * 100_000, b'{"id": "' + b"9" * 100_000 + b'"}']


@contextmanager
def mock_cluster(*messages: tuple[str, bytes, dict[str, int]]) -> Iterator[int]:
    """Its port. Each message with its topic, and what else is said of it."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0, "linger.ms": 0}
    )
    broker = next(iter(producer.list_topics(timeout=30).brokers.values()))
    for topic, value, more in messages:
        producer.produce(topic, value, **more)
    assert producer.flush(30) == 0
    yield broker.port
    del producer


@pytest.fixture(scope="module")
def brokers() -> Iterator[str]:
    """A cluster with the captured documents, one message that makes no sense, and a topic of odd ones."""
    texts = [*(json.dumps(document).encode() for document in documents()), b"\xff no JSON"]
    odd: list[tuple[str, bytes, dict[str, int]]] = [("odd", value, {}) for value in (*HARMFUL, *TORQUE)]
    with mock_cluster(*((TOPIC, value, {}) for value in texts), *odd) as port:
        yield f"127.0.0.1:{port}"


@pytest.fixture
async def archive(brokers: str) -> AsyncIterator[KafkaArchive]:
    kept = KafkaArchive(Topic(brokers, TOPIC))
    yield kept
    await kept.aclose()


async def test_every_message_gives_script_and_environment(archive: KafkaArchive) -> None:
    for number in JOBS:
        script = (await archive.find(Wanted(number, cluster="huppel"))).script
        assert script is not None
        assert script.environment is not None
        assert script.script == script_of(number)
        assert dict(script.environment.variables) == environment_of(number)


async def test_absence_is_told_apart(archive: KafkaArchive) -> None:
    nothing = (await archive.find(Wanted("70"))).tried[0]
    older = Nanos(time.time_ns() - 300 * 86_400 * SECOND)
    gone = (await archive.find(Wanted("70", submitted_at=older))).tried[0]
    other = (await archive.find(Wanted("7", cluster="snel"))).tried[0]
    assert (nothing.outcome, "last" in nothing.note) == (Outcome.NOT_THERE, True)
    assert gone.outcome is Outcome.BEGAN_LATER
    assert other.outcome is Outcome.OTHER_CLUSTER


async def test_walking_gives_every_script(archive: KafkaArchive) -> None:
    every = [one async for one in archive.walk(ScriptPeriod(), lambda where: None)]
    tally = Tally()
    found = [hit async for hit in search([archive], Query(".", "", ScriptPeriod(most=4)), tally)]
    assert sorted(one.script.number for one in every if one.script) == sorted(JOBS)
    assert len([one for one in every if one.unreadable]) == 1
    assert len(found) + tally.unreadable == 4
    assert tally.cuts == [f"{archive.name}: more than 4 scripts, the others were left out"]


async def test_what_is_wrong_is_said(brokers: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.backends.archive.kafka.ANSWER_S", 1.0)
    for topic, kind in (
        (Topic(brokers, "other"), SourceMissing),
        (Topic("127.0.0.1:1", TOPIC), SourceUnreachable),
        (Topic(brokers, TOPIC, f"{tmp_path}/none"), SourceError),
    ):
        archive = KafkaArchive(topic)
        with pytest.raises(kind):
            await archive.poll(None)
        await archive.aclose()
        await archive.aclose()


def test_a_configuration_cannot_make_it_more_than_a_reader(brokers: str, tmp_path: object) -> None:
    path = f"{tmp_path}/kafka.properties"
    with open(path, "w") as file:
        file.write("# a comment\nenable.auto.commit=true\nallow.auto.create.topics=true\nclient.id=me\n")
    topic = Topic(brokers, TOPIC, path)
    assert sum(b.high - b.low for b in topic.bounds().values()) == len(JOBS) + 1
    topic.close()
    with open(path, "a") as file:
        file.write("sasl.password.of.nothing=hunter2\n")
    with pytest.raises(SourceError) as refused:
        Topic(brokers, TOPIC, path).bounds()
    assert "hunter2" not in str(refused.value)


async def test_odd_messages_cost_themselves_and_torque_is_found_with_and_without_its_server(
    brokers: str,
) -> None:
    archive = KafkaArchive(Topic(brokers, "odd"))
    answers = [await archive.find(wanted) for wanted in (Wanted("27"), Wanted("27", server=".master"))]
    other = await archive.find(Wanted("27", server=".slave"))
    await archive.aclose()
    assert [one.script.number for one in answers if one.script] == ["27.master"] * 2
    assert other.script is None


TIMED, MESSAGES, EACH_S = "timed", 600, 60
BEGAN = SUBMITTED - SUBMITTED % SECOND
MILLI = SECOND // 1_000
AGAIN = 300
"""After so many jobs a number comes again."""


def sent_at(number: int) -> Nanos:
    return Nanos(BEGAN + number * EACH_S * SECOND)


@pytest.fixture(scope="module")
def timed_brokers() -> Iterator[TimedBrokers]:
    """A cluster with the scripts of many jobs in one partition, and others that are empty."""
    times = [sent_at(number) // MILLI for number in range(MESSAGES)]
    messages = []
    for number, at in enumerate(times):
        said = {**documents()[0], "id": str(number % AGAIN), "timestamp": to_rfc3339(sent_at(number))}
        messages.append((TIMED, json.dumps(said).encode(), {"partition": 0, "timestamp": at}))
    with mock_cluster(*messages) as port:
        served = TimedBrokers(port, {0: times})
        yield served
        served.close()


@pytest.fixture
async def timed(timed_brokers: TimedBrokers, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KafkaArchive]:
    """One of whose last messages only a few are looked at without a time."""
    monkeypatch.setattr("jobtui.backends.archive.kafka.SCANNED_MESSAGES", 10)
    timed_brokers.asked.clear()
    archive = KafkaArchive(Topic(f"{HOST}:{timed_brokers.port}", TIMED))
    yield archive
    await archive.aclose()


async def test_a_job_is_found_by_the_time_of_its_submission_alone_also_where_its_number_came_back(
    timed_brokers: TimedBrokers, timed: KafkaArchive
) -> None:
    assert (await timed.find(Wanted("50"))).tried[0].outcome is Outcome.NOT_THERE
    for number in (50, 50 + AGAIN):
        timed_brokers.asked.clear()
        found = (await timed.find(Wanted("50", submitted_at=sent_at(number)))).script
        assert found is not None
        assert (found.number, found.archived_at) == ("50", sent_at(number))
        asked = {at for partition, at in timed_brokers.asked if partition == 0}
        window = (sent_at(number) - EARLY_S * SECOND, sent_at(number) + LATE_S * SECOND)
        assert asked == {at // MILLI for at in window}
    assert (await timed.find(Wanted("50", submitted_at=sent_at(200)))).script is None  # out of the window


async def test_a_stretch_of_time_is_walked(timed: KafkaArchive) -> None:
    span = ScriptPeriod(since=sent_at(100), until=sent_at(110))
    walked = [one.script.number async for one in timed.walk(span, lambda where: None) if one.script]
    assert walked == [str(number) for number in range(100, 110)]
