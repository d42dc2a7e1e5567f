"""Kafka: librdkafka's own mock cluster over TCP, with offsets by time added for seeking."""

import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping

import pytest

from jobtui.backends.archive.kafka import EARLY_S, LATE_S, Bounds, KafkaArchive, Message, Topic
from jobtui.backends.archive.search import Query, Tally, search
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.scripts import Outcome, ScriptPeriod, Wanted
from jobtui.model.source_errors import SourceError, SourceMissing, SourceUnreachable
from tests.backends.archive.captured import JOBS, SUBMITTED, documents, environment_of, script_of
from tests.backends.archive.timed_brokers import HOST, TimedBrokers

confluent_kafka = pytest.importorskip("confluent_kafka")
TOPIC = "sarchive"


@pytest.fixture(scope="module")
def brokers() -> Iterator[str]:
    """A cluster with the captured documents and one message that makes no sense."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0, "linger.ms": 0}
    )
    broker = next(iter(producer.list_topics(timeout=5).brokers.values()))
    for document in documents():
        producer.produce(TOPIC, json.dumps(document).encode())
    producer.produce(TOPIC, b"\xff no JSON")
    assert producer.flush(10) == 0
    yield f"{broker.host}:{broker.port}"
    del producer


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


async def test_a_job_is_found_with_its_time(archive: KafkaArchive) -> None:
    assert (await archive.find(Wanted("7", submitted_at=SUBMITTED))).script is not None


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


class ByTime(Topic):
    """A topic of one partition, each message a second after the one before, that knows times."""

    def __init__(self, numbers: list[str]) -> None:
        super().__init__("brokers:1", TOPIC)
        self.read_offsets: list[int] = []
        self._messages = [
            Message(
                0,
                at,
                self._time(at),
                json.dumps({**documents()[0], "id": number, "timestamp": _text(self._time(at))}).encode(),
            )
            for at, number in enumerate(numbers)
        ]

    @staticmethod
    def _time(at: int) -> Nanos:
        return Nanos(SUBMITTED + at * SECOND)

    def bounds(self) -> dict[int, Bounds]:
        return {0: Bounds(0, len(self._messages))}

    def offsets_at(self, at: Nanos, partitions: Mapping[int, Bounds]) -> dict[int, int]:
        return {0: min(max(0, -(-(at - SUBMITTED) // SECOND)), len(self._messages))}

    def read(self, places: Mapping[int, int], until: Mapping[int, int], limit_s: float) -> Iterator[Message]:
        for message in self._messages[places[0] : until[0]] if places else ():
            self.read_offsets.append(message.offset)
            yield message


def _text(at: Nanos) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at // SECOND))


async def test_a_job_of_torque_is_found_with_and_without_its_server() -> None:
    topic = ByTime(["27.master", "270.master"])
    archive = KafkaArchive(topic)
    answers = [await archive.find(wanted) for wanted in (Wanted("27"), Wanted("27", server=".master"))]
    other = await archive.find(Wanted("27", server=".slave"))
    await archive.aclose()
    assert [one.script.number for one in answers if one.script] == ["27.master"] * 2
    assert other.script is None


async def test_messages_that_are_meant_to_do_harm_cost_themselves_only() -> None:
    topic = ByTime(["5", "6", "7"])
    deep, long = b'{"id": 1, "x": ' + b"[" * 100_000, b'{"id": "' + b"9" * 100_000 + b'"}'
    topic._messages[:2] = [
        message._replace(value=value) for message, value in zip(topic._messages, (deep, long), strict=False)
    ]
    archive = KafkaArchive(topic)
    assert (await archive.find(Wanted("7"))).script is not None
    await archive.aclose()


async def test_only_the_window_after_the_submission_is_read() -> None:
    topic = ByTime([str(number) for number in range(20_000)])
    archive = KafkaArchive(topic)
    answer = await archive.find(Wanted("9000", submitted_at=topic._time(9_000)))
    await archive.aclose()
    assert answer.script is not None
    assert answer.script.number == "9000"
    assert min(topic.read_offsets) == 9_000 - 120
    assert max(topic.read_offsets) <= 9_000 + 3_600


async def test_a_number_that_came_back_is_told_apart_by_time() -> None:
    topic = ByTime(["5"] * 4_000)
    archive = KafkaArchive(topic)
    answer = await archive.find(Wanted("5", submitted_at=topic._time(2_000)))
    await archive.aclose()
    assert answer.script is not None
    assert answer.script.archived_at == topic._time(2_000)


TOPIC, MESSAGES, EACH_S = "timed", 600, 60
BEGAN = SUBMITTED - SUBMITTED % SECOND
MILLI = SECOND // 1_000


def sent_at(number: int) -> Nanos:
    return Nanos(BEGAN + number * EACH_S * SECOND)


@pytest.fixture(scope="module")
def timed_brokers() -> Iterator[TimedBrokers]:
    """A cluster with the scripts of many jobs in one partition, and others that are empty."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0, "linger.ms": 0}
    )
    port = next(iter(producer.list_topics(timeout=30).brokers.values())).port
    for number in range(MESSAGES):
        text = json.dumps({**documents()[0], "id": str(number), "timestamp": None}).encode()
        producer.produce(TOPIC, text, partition=0, timestamp=sent_at(number) // MILLI)
    assert producer.flush(30) == 0
    served = TimedBrokers(port, {0: [sent_at(number) // MILLI for number in range(MESSAGES)]})
    yield served
    served.close()
    del producer


@pytest.fixture
def address(timed_brokers: TimedBrokers, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where they are, of whose last messages only a few are looked at without a time."""
    monkeypatch.setattr("jobtui.backends.archive.kafka.SCANNED_MESSAGES", 10)
    timed_brokers.asked.clear()
    return f"{HOST}:{timed_brokers.port}"


async def test_a_job_is_found_by_the_time_of_its_submission_alone(
    timed_brokers: TimedBrokers, address: str
) -> None:
    archive = KafkaArchive(Topic(address, TOPIC))
    unknown = await archive.find(Wanted("50"))
    found = await archive.find(Wanted("50", submitted_at=sent_at(50)))
    await archive.aclose()
    assert unknown.tried[0].outcome is Outcome.NOT_THERE
    assert found.script is not None
    assert found.script.number == "50"
    asked = {at for partition, at in timed_brokers.asked if partition == 0}
    assert asked == {(sent_at(50) - EARLY_S * SECOND) // MILLI, (sent_at(50) + LATE_S * SECOND) // MILLI}


async def test_what_was_sent_outside_of_the_window_is_not_read(address: str) -> None:
    archive = KafkaArchive(Topic(address, TOPIC))
    answer = await archive.find(Wanted("50", submitted_at=sent_at(300)))
    await archive.aclose()
    assert answer.script is None


async def test_a_stretch_of_time_is_walked(address: str) -> None:
    archive = KafkaArchive(Topic(address, TOPIC))
    span = ScriptPeriod(since=sent_at(100), until=sent_at(110))
    walked = [one.script.number async for one in archive.walk(span, lambda where: None) if one.script]
    await archive.aclose()
    assert walked == [str(number) for number in range(100, 110)]
