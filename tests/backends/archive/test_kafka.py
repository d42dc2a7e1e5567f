"""Kafka: librdkafka's own mock cluster over TCP, which is told the offsets of times for seeking."""

import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest

from jobtui.backends.archive.kafka import EARLY_S, LATE_S, KafkaArchive, KafkaTopic
from jobtui.backends.archive.search import ScriptQuery, Tally, search
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.health import SourceError, SourceMissing, SourceUnreachable
from jobtui.model.scripts import Outcome, ScriptPeriod, Wanted
from tests.backends.archive.captured import JOBS, SUBMITTED, check, documents

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
    """A cluster with the captured documents, one message that is not understood, and a topic of odd ones."""
    texts = [*(json.dumps(document).encode() for document in documents()), b"\xff no JSON"]
    odd: list[tuple[str, bytes, dict[str, int]]] = [("odd", value, {}) for value in (*HARMFUL, *TORQUE)]
    with mock_cluster(*((TOPIC, value, {}) for value in texts), *odd) as port:
        yield f"127.0.0.1:{port}"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.backends.archive.kafka.STEP_S", 0.02)


@pytest.fixture
async def archive(brokers: str) -> AsyncIterator[KafkaArchive]:
    kept = KafkaArchive(KafkaTopic(brokers, TOPIC))
    yield kept
    await kept.aclose()


async def test_every_message_gives_script_and_environment(archive: KafkaArchive) -> None:
    for number in JOBS:
        check((await archive.find(Wanted(number, cluster="huppel"))).script, number)


async def test_each_reason_for_a_missing_script_has_its_outcome(archive: KafkaArchive) -> None:
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
    found = [hit async for hit in search([archive], ScriptQuery(".", "", ScriptPeriod(most=4)), tally)]
    assert sorted(one.script.number for one in every if one.script) == sorted(JOBS)
    assert (len([one for one in every if one.unreadable]), len(found) + tally.unreadable) == (1, 4)
    assert tally.cuts == [f"{archive.name}: more than 4 scripts, the others were left out"]


async def test_an_archive_that_cannot_be_read_raises_a_source_error(
    brokers: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobtui.backends.archive.kafka.ANSWER_S", 1.0)
    for topic, kind in (
        (KafkaTopic(brokers, "other"), SourceMissing),
        (KafkaTopic("127.0.0.1:1", TOPIC), SourceUnreachable),
        (KafkaTopic(brokers, TOPIC, f"{tmp_path}/none"), SourceError),
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
    topic = KafkaTopic(brokers, TOPIC, path)
    assert sum(b.high - b.low for b in topic.bounds().values()) == len(JOBS) + 1
    topic.close()
    with open(path, "a") as file:
        file.write("sasl.password.of.nothing=hunter2\n")
    with pytest.raises(SourceError) as refused:
        KafkaTopic(brokers, TOPIC, path).bounds()
    assert "hunter2" not in str(refused.value)


async def test_odd_messages_cost_themselves_and_jobs_of_torque_are_found(brokers: str) -> None:
    archive = KafkaArchive(KafkaTopic(brokers, "odd"))
    answers = [await archive.find(wanted) for wanted in (Wanted("27"), Wanted("27", server=".master"))]
    other = await archive.find(Wanted("27", server=".slave"))
    await archive.aclose()
    assert [one.script.number for one in answers if one.script] == ["27.master"] * 2
    assert other.script is None


TIMED, MESSAGES, EACH_S = "timed", 600, 60
BEGAN = SUBMITTED - SUBMITTED % SECOND
MILLI = SECOND // 1_000
AGAIN = 300
"""After this number of jobs a number is used again."""


def sent_at(number: int) -> Nanos:
    return Nanos(BEGAN + number * EACH_S * SECOND)


@pytest.fixture(scope="module")
def timed_brokers() -> Iterator[str]:
    """A cluster with the scripts of many jobs in one partition, and others that are empty."""
    messages = []
    for number in range(MESSAGES):
        said = {**documents()[0], "id": str(number % AGAIN), "timestamp": to_rfc3339(sent_at(number))}
        sent: dict[str, int] = {"partition": 0, "timestamp": sent_at(number) // MILLI}
        messages.append((TIMED, json.dumps(said).encode(), sent))
    with mock_cluster(*messages) as port:
        yield f"127.0.0.1:{port}"


Consumer: Any = confluent_kafka.Consumer


class TimedConsumer(Consumer):  # type: ignore[misc]
    """One that knows the offsets of times, which the mock cluster does not."""

    asked: ClassVar[set[int]] = set()

    def offsets_for_times(self, places: list[Any], timeout: float) -> list[Any]:
        for place in places:
            self.asked.add(place.offset)
            later = [n for n in range(MESSAGES) if sent_at(n) // MILLI >= place.offset]
            place.offset = later[0] if later and place.partition == 0 else confluent_kafka.OFFSET_END
        return places


@pytest.fixture
async def timed(timed_brokers: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KafkaArchive]:
    """One of whose last messages only a few are looked at without a time."""
    monkeypatch.setattr("jobtui.backends.archive.kafka.SCANNED_MESSAGES", 10)
    monkeypatch.setattr(confluent_kafka, "Consumer", TimedConsumer)
    archive = KafkaArchive(KafkaTopic(timed_brokers, TIMED))
    yield archive
    await archive.aclose()


async def test_a_job_is_found_by_the_time_of_its_submission(timed: KafkaArchive) -> None:
    assert (await timed.find(Wanted("50"))).tried[0].outcome is Outcome.NOT_THERE
    for number in (50, 50 + AGAIN):
        TimedConsumer.asked.clear()
        found = (await timed.find(Wanted("50", submitted_at=sent_at(number)))).script
        assert found is not None
        assert (found.number, found.archived_at) == ("50", sent_at(number))
        window = (sent_at(number) - EARLY_S * SECOND, sent_at(number) + LATE_S * SECOND)
        assert TimedConsumer.asked == {at // MILLI for at in window}
    assert (await timed.find(Wanted("50", submitted_at=sent_at(200)))).script is None  # out of the window


async def test_the_scripts_of_an_interval_are_listed(timed: KafkaArchive) -> None:
    span = ScriptPeriod(since=sent_at(100), until=sent_at(110))
    walked = [one.script.number async for one in timed.walk(span, lambda where: None) if one.script]
    assert walked == [str(number) for number in range(100, 110)]
