"""Archives of scripts: directories with pairs and links, Elasticsearch, and librdkafka's mock of Kafka."""

import asyncio
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.backends.archive.kafka import EARLY_S, LATE_S, KafkaArchive, KafkaTopic
from jobtui.backends.archive.search import ScriptQuery, Tally, find_script, search
from jobtui.backends.archive.source import ArchiveDirectory, NotRead, read_kept, root_of
from jobtui.backends.elastic.client import ElasticClient
from jobtui.backends.elastic.scripts import ElasticArchive
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.health import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.scripts import Answer, Outcome, ScriptPeriod, Wanted
from tests.backends.archive import captured
from tests.backends.archive.captured import (
    DAY,
    JOBS,
    SUBMITTED,
    archive_in,
    check,
    documents,
    found,
    look,
    script_of,
)
from tests.backends.archive.elastic_server import INDEX, StrictElastic
from tests.builders import some
from tests.loopback import carried, nobody

DAYS = 86_400 * SECOND


@pytest.mark.parametrize("period", [DAY, "202611", "2026", "", "spool"])
@pytest.mark.parametrize("submitted_at", [SUBMITTED, None])
def test_every_job_is_found_byte_for_byte(tmp_path: Path, period: str, submitted_at: Nanos | None) -> None:
    is_spool = period == "spool"
    source = captured.spool_in(tmp_path / "spool") if is_spool else archive_in(tmp_path / "archive", period)
    for number, text in [*((number, number) for number in JOBS), ("10", "10_3")]:
        script = found(source, text, "huppel", submitted_at=None if is_spool else submitted_at)
        check(script, number)
        assert (script.cluster, script.number) == ("huppel", number)
        assert is_spool or script.archived_at == SUBMITTED
        assert some(script.environment).is_whole


ONE = f"{captured.TORQUE}.JB"
ALL, *TASKS = (f"2720870{end}" for end in (
    ".master.cluster.lab.TA", "-1.master.cluster.lab.JB", "-2.master.cluster.lab.JB",
))  # fmt: skip
OF_TORQUE = {
    captured.TORQUE: [ONE], "2720868": [ONE], "2720870": [ALL, *TASKS], "2720870[2]": [ALL, TASKS[1]],
    "2720870-1": [ALL, TASKS[0]],
}  # fmt: skip


@pytest.mark.parametrize("text", OF_TORQUE)
def test_a_job_of_torque_has_its_files_with_and_without_its_server(tmp_path: Path, text: str) -> None:
    script = found(captured.torque_in(tmp_path), text)
    assert script.script.startswith(b"#!/bin/bash\n#PBS -N ")
    assert [name.decode() for name, _ in some(script.environment).variables] == OF_TORQUE[text]


def test_jobs_of_one_number_are_distinguished_by_date(tmp_path: Path) -> None:
    before = Nanos(SUBMITTED - 300 * DAYS)
    archive_in(tmp_path, DAY)
    archive_in(tmp_path, "20260124", at=before)
    (tmp_path / "20260124" / "job.7_script").write_bytes(b"#!/bin/sh\nolder\n")
    assert found(tmp_path, "7", submitted_at=SUBMITTED).script == script_of("7")
    assert found(tmp_path, "7", submitted_at=before).script == b"#!/bin/sh\nolder\n"
    assert found(tmp_path, "7", until=Nanos(SUBMITTED - 100 * DAYS)).script == b"#!/bin/sh\nolder\n"
    newest = found(tmp_path, "7")
    assert newest.script == script_of("7")
    assert any("2 jobs of this number" in note for note in newest.notes)


def test_a_script_of_another_time_is_not_taken_for_the_job(tmp_path: Path) -> None:
    archive_in(tmp_path, DAY)
    answer = look(tmp_path, "7", submitted_at=Nanos(SUBMITTED + 30 * DAYS))
    assert answer.script is None
    assert answer.tried[0].outcome is Outcome.NOT_THERE
    assert DAY in answer.tried[0].note
    tried = look(tmp_path, "77", submitted_at=Nanos(SUBMITTED - 40 * DAYS)).tried[0]
    assert tried.outcome is Outcome.BEGAN_LATER
    assert DAY in tried.note


def test_missing_numbers_with_one_last_digit_are_reported(tmp_path: Path) -> None:
    directory = tmp_path / DAY
    directory.mkdir()
    for number in range(100, 140):
        if number % 10 != 9:
            (directory / f"job.{number}_script").write_bytes(b"#!/bin/sh\n")
    tried = look(tmp_path, "119", submitted_at=SUBMITTED).tried[0]
    assert tried.outcome is Outcome.NOT_THERE
    assert "ending in 9" in tried.note
    assert "hash.9" in tried.note


def test_a_missing_directory_raises(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing, match="no such directory"):
        look(tmp_path / "gone", "1")
    (tmp_path / "file").touch()
    with pytest.raises(SourceMissing, match="not a directory"):
        look(tmp_path / "file", "1")


async def test_denied_files_and_missing_files_have_different_outcomes(open_path: Path) -> None:
    source = archive_in(open_path / "archive", DAY)
    for file in (source / DAY).iterdir():
        file.chmod(0o000)
    for directory in (source, source / DAY):
        directory.chmod(0o111)
    try:
        with nobody():
            assert look(source, "7", submitted_at=SUBMITTED).tried[0].outcome is Outcome.DENIED
            assert look(source, "7").tried[0].outcome is Outcome.DENIED
            assert look(source, "70", submitted_at=SUBMITTED).tried[0].outcome is Outcome.NOT_THERE
            async with aclosing(ArchiveDirectory(str(source))) as archive:
                with pytest.raises(SourceDenied, match="may not be listed"):
                    [one async for one in archive.walk(ScriptPeriod(), lambda where: None)]
    finally:
        for directory in (source, source / DAY):
            directory.chmod(0o755)


def test_a_job_near_midnight_is_found_without_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "both"):
        archive_in(tmp_path / name, DAY)
    archive_in(tmp_path / "both", "20261121")
    monkeypatch.setattr(os, "scandir", lambda path: pytest.fail("was listed"))
    monkeypatch.setattr("jobtui.backends.archive.source.SAMPLES", 0)
    for name in ("one", "both"):
        assert look(tmp_path / name, "7", submitted_at=SUBMITTED).script is not None


def test_a_pipe_in_place_of_the_environment_leaves_the_script(tmp_path: Path) -> None:
    archive_in(tmp_path, DAY)
    (tmp_path / DAY / "job.1_environment").unlink()
    os.mkfifo(tmp_path / DAY / "job.1_environment")
    script = found(tmp_path, "1")
    assert script.environment is None
    assert any("pipe" in note for note in script.notes)


def test_a_large_script_is_whole_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive_in(tmp_path, DAY)
    large = b"#!/bin/sh\n" + b"echo \x1b[31m\xff\n" * 900_000
    (tmp_path / DAY / "job.1_script").write_bytes(large)
    assert found(tmp_path, "1").script == large
    monkeypatch.setattr("jobtui.backends.archive.source.MOST_BYTES", 1 << 20)
    assert look(tmp_path, "1").tried[0].outcome is Outcome.REFUSED


async def test_walking_is_bounded_in_time_and_number(tmp_path: Path) -> None:
    archive_in(tmp_path, DAY)
    archive_in(tmp_path, "20261020", at=Nanos(SUBMITTED - 31 * DAYS))
    archive = ArchiveDirectory(str(tmp_path))
    since = ScriptPeriod(since=Nanos(SUBMITTED - DAYS))
    lately = [one async for one in archive.walk(since, lambda where: None)]
    tally = Tally()
    few = [hit async for hit in search([archive], ScriptQuery("", "", ScriptPeriod(most=5)), tally)]
    await archive.aclose()
    assert len(lately) == len(JOBS)
    assert (len(few), tally.scripts) == (5, 5)
    assert tally.cuts == [f"{archive.name}: more than 5 scripts, the others were left out"]


async def test_archives_are_asked_in_turn_and_each_outcome_is_reported(tmp_path: Path) -> None:
    here = ArchiveDirectory(str(archive_in(tmp_path / "here", DAY)), "huppel")
    there = ArchiveDirectory(str(tmp_path / "there"), "snel")
    answer = await find_script([there, here], Wanted("10", "2", cluster="huppel"))
    outcomes = [one.outcome for one in answer.tried]
    assert outcomes == [Outcome.ARRAY, Outcome.OTHER_CLUSTER, Outcome.FOUND]
    assert answer.tried[0].result == "array: under job 10"
    missing = await find_script([there], Wanted("10"))
    assert missing.tried[0].outcome is Outcome.NO_ARCHIVE
    interactive = await find_script([here], Wanted("10", is_batch=False))
    assert interactive.tried[0].outcome is Outcome.INTERACTIVE
    await asyncio.gather(here.aclose(), there.aclose())


async def test_jobs_of_one_number_on_two_clusters_are_distinguished(tmp_path: Path) -> None:
    one = ArchiveDirectory(str(archive_in(tmp_path / "one", DAY)), "huppel")
    two = ArchiveDirectory(str(archive_in(tmp_path / "two", DAY)), "snel")
    both = await find_script([one, two], Wanted("7"))
    assert any("snel" in note for note in some(both.script).notes)
    named = await find_script([one, two], Wanted("7", cluster="snel"))
    assert some(named.script).cluster == "snel"
    await asyncio.gather(one.aclose(), two.aclose())


async def test_a_place_that_hangs_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(ArchiveDirectory):
        async def find(self, wanted: Wanted) -> Answer:
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr("jobtui.backends.archive.search.ANSWER_S", 0.01)
    here = ArchiveDirectory(str(archive_in(tmp_path / "here", DAY)))
    hanging = Hanging(str(tmp_path / "hanging"))
    answer = await find_script([hanging, here], Wanted("7"))
    await asyncio.gather(here.aclose(), hanging.aclose())
    assert answer.tried[0].outcome is Outcome.NO_ANSWER


LINKS = {
    "here": "job.2_script",
    "up and down": "../20261020/job.2_script",
    "through a link": "../latest/job.2_script",
    "absolute": "{archive}/20261020/job.2_script",
}


@pytest.mark.parametrize("target", LINKS.values(), ids=LINKS)
def test_a_link_that_stays_in_the_archive_is_followed(tmp_path: Path, target: str) -> None:
    archive = archive_in(tmp_path / "archive", DAY)
    archive_in(archive, "20261020")
    (archive / "latest").symlink_to("20261020")
    path = archive / DAY / "job.1_script"
    path.unlink()
    path.symlink_to(target.format(archive=archive))
    (tmp_path / "link").symlink_to(archive)
    for source in (archive, tmp_path / "link"):
        assert found(source, "1", submitted_at=SUBMITTED).script == script_of("2")


def test_a_linked_directory_of_a_date_is_followed_only_within(tmp_path: Path) -> None:
    archive = archive_in(tmp_path / "archive", "kept")
    (archive / DAY).symlink_to("kept")
    assert look(archive, "1", submitted_at=SUBMITTED).script is not None
    archive_in(tmp_path / "elsewhere", DAY)
    (archive / DAY).unlink()
    (archive / DAY).symlink_to(tmp_path / "elsewhere" / DAY)
    (tried,) = look(archive, "1", submitted_at=SUBMITTED).tried
    assert tried.outcome is Outcome.REFUSED
    assert "out of the archive" in tried.note


@given(
    st.lists(st.sampled_from(["..", ".", "a", "b", "link", "back", "out", "{root}/a", "{root}"]), max_size=6),
    st.lists(st.sampled_from(["..", "a", "b", "/", "link"]), max_size=4),
)
@settings(max_examples=60)
def test_no_links_lead_out(names: list[str], target: list[str]) -> None:
    with tempfile.TemporaryDirectory() as outside:
        root = Path(outside, "root")
        (root / "a" / "b").mkdir(parents=True)
        for directory in (Path(outside), root, root / "a", root / "a" / "b"):
            (directory / "f").write_text(str(directory))
        (root / "link").symlink_to("/".join(target) or ".")
        (root / "a" / "back").symlink_to("..")
        (root / "a" / "out").symlink_to("../..")
        with suppress(NotRead):
            kept = read_kept(root_of(str(root)), "/".join([*names, "f"]).format(root=root))
            assert Path(kept.data.decode()).is_relative_to(root)


BY_ID = {str(document["id"]): document for document in documents()}
UNDER_JOBINFO: dict[str, Any] = {
    f"made-{key}": {"jobinfo": {k: d[k] for k in d.keys() - {"timestamp"}}, "@timestamp": d["timestamp"]}
    for key, d in BY_ID.items()
}


def archive_of(elastic: StrictElastic, index: str = INDEX) -> ElasticArchive:
    return ElasticArchive(carried(ElasticClient(f"http://elastic.test/{index}"), elastic.answer))


async def found_in(elastic: StrictElastic, wanted: Wanted, index: str = INDEX) -> Answer:
    async with aclosing(archive_of(elastic, index)) as archive:
        return await archive.find(wanted)


@pytest.mark.parametrize("kept", [BY_ID, UNDER_JOBINFO], ids=["at the top", "under jobinfo"])
async def test_every_document_gives_script_and_environment(kept: dict[str, Any]) -> None:
    elastic = StrictElastic(kept)
    for number in JOBS:
        script = (await found_in(elastic, Wanted(number, cluster="huppel"))).script
        check(script, number)
        assert b"SIM_OPTS" in script.environment.mended  # type: ignore[union-attr]


@pytest.mark.parametrize("is_inner", [False, True], ids=["at the top", "under jobinfo"])
async def test_a_job_of_torque_is_found_with_and_without_its_server(is_inner: bool) -> None:
    kept: dict[str, Any] = {
        f"{number}.master": {"id": f"{number}.master", "script": number, "cluster": "snel", "environment": {}}
        for number in ("27", "270", "2")
    }
    inner = {key: {"jobinfo": one} for key, one in kept.items()}
    elastic = StrictElastic(inner if is_inner else kept, keywords=is_inner)
    for wanted in (Wanted("27"), Wanted("27", server=".master"), Wanted("27", cluster="snel")):
        script = (await found_in(elastic, wanted)).script
        assert script is not None
        assert (script.number, script.script) == ("27.master", b"27")
    assert (await found_in(elastic, Wanted("7"))).script is None


async def test_each_reason_for_a_missing_script_or_index_is_reported() -> None:
    elastic = StrictElastic(BY_ID)
    nothing = (await found_in(elastic, Wanted("70"))).tried[0]
    other = (await found_in(elastic, Wanted("7", cluster="snel"))).tried[0]
    far = Nanos(SUBMITTED + 40 * DAYS)
    later = (await found_in(elastic, Wanted("7", submitted_at=far))).tried[0]
    assert nothing.outcome is Outcome.NOT_THERE
    assert (other.outcome, "huppel" in other.note) == (Outcome.OTHER_CLUSTER, True)
    assert (later.outcome, "another job" in later.note) == (Outcome.NOT_THERE, True)
    with pytest.raises(SourceMissing, match="no such index"):
        await found_in(elastic, Wanted("7"), "other")
    elastic.failed_shards = [{"reason": {"reason": "is down"}}]
    with pytest.raises(SourceUnreachable, match=r"1 of 5 shards failed \(is down\): hits are missing"):
        await found_in(elastic, Wanted("70"))


async def test_walking_goes_through_every_page_of_both_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.backends.elastic.scripts.PAGE", 5)
    other = {f"other/{key}": one for key, one in BY_ID.items()}
    odd = {"odd": {"script": 7, "timestamp": to_rfc3339(SUBMITTED)}}
    elastic = StrictElastic(BY_ID | UNDER_JOBINFO | other | odd, mapped={"other": "date_nanos"})
    spans = ScriptPeriod(), ScriptPeriod(since=Nanos(SUBMITTED + 3600 * SECOND))
    async with aclosing(archive_of(elastic)) as archive:
        every, later = [[one async for one in archive.walk(span, lambda where: None)] for span in spans]
    assert sorted(one.script.number for one in every if one.script) == sorted(3 * JOBS)
    assert [one.unreadable for one in every if one.unreadable]
    assert not later


confluent_kafka = pytest.importorskip("confluent_kafka")
TOPIC = "sarchive"
TORQUE = [json.dumps({**documents()[0], "id": f"{number}.master"}).encode() for number in ("27", "270")]
HARMFUL = [b'{"id": 1, "x": ' + b"[" * 100_000, b'{"id": "' + b"9" * 100_000 + b'"}']


@contextmanager
def mock_cluster(*messages: tuple[str, bytes, dict[str, int]]) -> Iterator[int]:
    """Its port. Each message with its topic, and what else is said of it."""
    settings = {"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0, "linger.ms": 0}
    producer = confluent_kafka.Producer(settings)
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


async def test_every_message_gives_its_script_and_each_reason_has_its_outcome(archive: KafkaArchive) -> None:
    for number in JOBS:
        check((await archive.find(Wanted(number, cluster="huppel"))).script, number)
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
