"""Seeking by the time of submission, over TCP: librdkafka's mock cluster, with offsets by time added."""

import json
from collections.abc import Iterator

import pytest

from jobtui.backends.archive.kafka import EARLY_S, LATE_S, KafkaArchive
from jobtui.backends.archive.kafka_topic import Topic
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.scripts import Outcome, Span, Wanted
from tests.backends.archive.captured import SUBMITTED, documents
from tests.backends.archive.timed_brokers import HOST, TimedBrokers

confluent_kafka = pytest.importorskip("confluent_kafka")
TOPIC, MESSAGES, EACH_S = "timed", 600, 60
BEGAN = SUBMITTED - SUBMITTED % SECOND
MILLI = SECOND // 1_000


def sent_at(number: int) -> Nanos:
    """When the script of a job was sent: one a minute."""
    return Nanos(BEGAN + number * EACH_S * SECOND)


@pytest.fixture(scope="module")
def brokers() -> Iterator[TimedBrokers]:
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
def address(brokers: TimedBrokers, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where they are, of whose last messages only a few are looked at without a time."""
    monkeypatch.setattr("jobtui.backends.archive.kafka.SCANNED_MESSAGES", 10)
    brokers.asked.clear()
    return f"{HOST}:{brokers.port}"


async def test_a_job_is_found_by_the_time_of_its_submission_alone(
    brokers: TimedBrokers, address: str
) -> None:
    archive = KafkaArchive(Topic(address, TOPIC))
    unknown = await archive.find(Wanted("50"))
    found = await archive.find(Wanted("50", submitted_at=sent_at(50)))
    await archive.aclose()
    assert unknown.tried[0].outcome is Outcome.NOT_THERE
    assert found.script is not None
    assert found.script.number == "50"
    asked = {at for partition, at in brokers.asked if partition == 0}
    assert asked == {(sent_at(50) - EARLY_S * SECOND) // MILLI, (sent_at(50) + LATE_S * SECOND) // MILLI}


async def test_what_was_sent_outside_of_the_window_is_not_read(address: str) -> None:
    archive = KafkaArchive(Topic(address, TOPIC))
    answer = await archive.find(Wanted("50", submitted_at=sent_at(300)))
    await archive.aclose()
    assert answer.script is None


async def test_a_stretch_of_time_is_walked(address: str) -> None:
    archive = KafkaArchive(Topic(address, TOPIC))
    span = Span(since=sent_at(100), until=sent_at(110))
    walked = [one.script.number async for one in archive.walk(span, lambda where: None) if one.script]
    await archive.aclose()
    assert walked == [str(number) for number in range(100, 110)]
