"""Engines of logs: Elasticsearch and OpenSearch, Loki, and the files of jobs that a Landscape keeps.

Each of their faults is one line in `doctor`, `logs` and on the screen of sources; no login is in it.
"""

import asyncio
import gc
import gzip
import json
import tarfile
import time
import tracemalloc
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import httpx
import pytest
from wsproto.events import CloseConnection, Pong

from jobtui.backends import engine
from jobtui.backends.elastic import source as elastic_source
from jobtui.backends.elastic.client import ElasticClient
from jobtui.backends.elastic.jobs import DocumentReader
from jobtui.backends.elastic.source import ElasticEngine, Preset, fields_of, presets, row_of
from jobtui.backends.engine import Doubts, EngineFollowing, EngineJournal, RowQuery
from jobtui.backends.fetchlog import FetchLog
from jobtui.backends.journal import client
from jobtui.backends.loki import LokiEngine
from jobtui.backends.loki import parse as parse_loki
from jobtui.backends.registry import announce
from jobtui.backends.slurm.client import Commands
from jobtui.backends.slurm.source import Slurm
from jobtui.config import load
from jobtui.model.clock import SECOND, FixedClock, Nanos, SystemClock, time_of_iso
from jobtui.model.health import SourceError
from jobtui.model.ids import JobId
from jobtui.model.job_reader import Unreadable
from jobtui.model.jobs import JobStatus
from jobtui.model.journal import At, Begin, Tail
from jobtui.model.specs import NO_ACCESS, Access, ReadWindow
from jobtui.screens.sources import about
from jobtui.session import Session
from jobtui.transport.http import HttpLimits
from tests.backends.archive.elastic_server import LOGIN, StrictElastic
from tests.backends.engines import rigs
from tests.backends.engines.loki_server import StrictLoki
from tests.backends.engines.rigs import FILES, OUTPUT, T0, URL, at_second, journal_line, journald_document
from tests.backends.journal.rigs import LINE, UNIT
from tests.commands.running import AT, Runner, in_turn
from tests.condor import JOB, SCHEDD, event, executing, submitted
from tests.conftest import NOW
from tests.loopback import carried, response, served, timed
from tests.polling import polled, read_on
from tests.rows import ROWS
from tests.slurm_stand_in import StandIn

PROFILE = '[profiles.{}]\nelastic_logs = ["{}"]\nelastic_jobs = ["{}?preset=adstash"]\n'


def index_of(documents: dict[str, Any], **more: Any) -> StrictElastic:
    return StrictElastic(documents, index="logs", **{"keywords": True, **more})


def lines(count: int, every_s: float = 0.25, first: int = 0) -> dict[str, dict[str, Any]]:
    return {
        f"logs/d{n:05}": journald_document(n * every_s, LINE.format(n)) for n in range(first, first + count)
    }


def engine_of(elastic: StrictElastic, access: Access = NO_ACCESS) -> ElasticEngine:
    client = carried(ElasticClient(URL, access), elastic.answer)
    return ElasticEngine(client, presets()["journald"], Doubts())


def following_of(elastic: StrictElastic, window: ReadWindow | None = None) -> EngineFollowing:
    return EngineFollowing(timed(engine_of(elastic), FixedClock(NOW)), At(T0), (), window)


def reader_of(elastic: StrictElastic) -> EngineJournal:
    return EngineJournal(lambda: timed(engine_of(elastic), FixedClock(NOW)))


@pytest.mark.parametrize("every_s", [0.25, 0.0], ids=["apart", "of one instant"])
@pytest.mark.parametrize("most", [1, 7, 1_000])
async def test_both_ways_give_everything_once_in_the_same_order(
    every_s: float, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "PAGE_ROWS", 5)
    monkeypatch.setattr(engine, "SPARE_ROWS", 1)
    wanted = [LINE.format(n) for n in range(20)]
    loki = StrictLoki([journal_line(n * every_s, wanted[n], unit=f"u{n % 3}") for n in range(20)])
    mixed = {f"{'ab'[n % 2]}/{n}": one for n, one in enumerate(lines(20, every_s).values())}
    elastic = index_of(mixed, mapped={"b": "date_nanos"})
    reader: Any
    for reader in (reader_of(elastic), rigs.loki_journal(loki).make_reader()):
        found = await rigs.forward(reader, most)
        assert found == await rigs.backward(reader, most)
        assert sorted(found, key=wanted.index) == wanted
        parts = [await read(At(at_second(2.5)), (), 100) for read in (reader.backward, reader.forward)]
        assert [len(part.entries) for part in parts] == ([10, 10] if every_s else [20, 0])


@pytest.mark.parametrize("kind", ["template", "dynamic mapping", "one of each", "loki"])
async def test_only_what_is_wanted_is_asked_for(kind: str) -> None:
    unit, identifier, host = "ssh+x.service", 'ss"hd\\', "v4"
    more: dict[str, Any] = {"unit": unit, "syslog_identifier": identifier, "hostname": host}
    of_loki = [journal_line(1, "other", **more), *(journal_line(0, f"{n}") for n in range(3))]
    more = {"systemd": {"unit": unit}, "syslog": {"identifier": identifier}, "host": {"hostname": host}}
    documents = {**lines(3), "other/o": journald_document(1, "", **more)}
    elastic = index_of(documents, keywords=kind != "dynamic mapping")
    elastic.mapped = {"other": "words"} if kind == "one of each" else {}
    loki = rigs.loki_journal(StrictLoki(of_loki)).make_reader()
    reader: Any = loki if kind == "loki" else reader_of(elastic)
    known = {UNIT} if kind == "one of each" else {UNIT, unit}  # the other shards fail, which is said
    assert set((await reader.values("_SYSTEMD_UNIT"))["_SYSTEMD_UNIT"]) == known
    for count, groups in ROWS["what is wanted of an engine"]:
        matches = tuple(tuple(map(tuple, group)) for group in groups)
        assert len((await reader.forward(Begin(), matches, 10)).entries) == count
    (entry,) = (await reader.forward(At(at_second(0.9)), (), 10)).entries
    assert (entry.host, entry.unit, entry.identifier) == (host, unit, identifier)


async def ids_to_edge(following: EngineFollowing) -> list[str]:
    found: list[str] = []
    at_edge = False
    while not at_edge:
        rows, at_edge = await following.rows(300)
        found += [row.id for row in rows]
    return found


@pytest.mark.parametrize(("every_s", "count"), [(0.01, 900), (0.0, 700)], ids=["apart", "of one instant"])
@pytest.mark.parametrize(
    "points", ["_pit", "_search/point_in_time", ""], ids=["elastic", "opensearch", "none"]
)
@pytest.mark.parametrize("lapses", [False, True], ids=["", "a point lapses"])
async def test_a_long_reading_gives_each_once(points: str, every_s: float, count: int, lapses: bool) -> None:
    elastic = index_of(lines(count, every_s), points=points)
    other = {name.replace("logs", "other"): one for name, one in lines(count // 3, every_s).items()}
    elastic.documents, elastic.mapped = {**elastic.documents, **other}, {"logs": "date_nanos"}
    following = following_of(elastic)
    first = [row.id for row in (await following.rows(300))[0]] if lapses else []
    elastic._points.clear()
    found = first + await ids_to_edge(following)
    assert sorted(found) == sorted(elastic.documents)
    assert any("search_after" in body for body in elastic.bodies) == (points == "_pit") or lapses
    assert any("pit" in body for body in elastic.bodies) == bool(points)
    assert {sent.split("?")[0] for sent in elastic.sent} <= {
        "POST /_search", "POST /logs/_search", "POST /logs/_pit", "POST /logs/_search/point_in_time",
    }  # fmt: skip


async def test_times_that_cannot_be_sorted_are_reported_or_left_out() -> None:
    documents = lines(9) | {name.replace("logs", "b"): one for name, one in lines(9).items()}
    for mapped, why in (("keyword", "[numeric_type] option"), ("long", "failed to create query")):
        following = following_of(index_of(documents, mapped={"b": mapped}))
        assert {*await ids_to_edge(following)} == {*lines(9)}
        assert f"1 of 5 shards failed ({why}" in following.engine.doubts.words
    odd = {
        f"b/{at}": journald_document(0, "", **{"@timestamp": at}) for at in (None, "1969-01-01", "2300-01-01")
    }
    following = following_of(elastic := index_of(documents | odd, mapped={"b": "date_nanos"}))
    assert {*await ids_to_edge(following)} == {*documents}
    elastic.casts = False
    last = await reader_of(elastic).backward(Tail(), (), 7)
    assert [len(last.entries), last.note] == [7, elastic_source.NOT_CAST]


async def test_a_loki_that_is_configured_to_give_less_is_asked_for_less() -> None:
    loki = StrictLoki([journal_line(n, f"{n}") for n in range(250)])
    loki.most, loki.longest_h = 100, 168
    reading, asked = loki_engine(loki), RowQuery(Nanos(0), None, (), 300)
    for count in (3, 1):
        loki.sent.clear()
        found = await reading.rows(asked)
        assert (len(found.rows), found.is_all, len(loki.sent)) == (100, False, count)
    assert "only the last 7d0h are asked for" in reading.doubts.words


async def test_too_many_rows_of_one_instant_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elastic_source, "LEFT_OUT_MOST", 300)
    elastic = index_of({**lines(900, 0.0), "logs/last": journald_document(1, "last")}, points="")
    following = following_of(elastic)
    found = await ids_to_edge(following)
    assert found[-1] == "logs/last"
    assert "some are missing" in following.engine.doubts.words


async def test_the_rows_known_as_given_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.backends.engine.GIVEN_KEPT", 200)
    following = following_of(elastic := index_of(lines(900, every_s=0.01)))
    found = []
    for _ in range(5):
        found += (await following.rows(300))[0]
        assert len(following._given) <= 200
    assert sorted(row.id for row in found) == sorted(elastic.documents)


async def test_an_id_is_found_where_a_colon_or_a_dot_joins_it_to_the_usual_words() -> None:
    texts = [form.format("slPcrZWi") for form in ("/{}/x", "id={}", "sim:{}", "simulationId:{}", "{}.json")]
    elastic = index_of({f"logs/d{n}": journald_document(n, text) for n, text in enumerate(texts)})
    window = ReadWindow(about="slPcrZWi", most=9)
    assert await ids_to_edge(following_of(elastic, window)) == [*elastic.documents]


async def test_of_too_many_rows_only_the_last_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in (("PAGE_ROWS", 10), ("INSTANT_ROWS", 40), ("FORWARD_ROWS", 100)):
        monkeypatch.setattr(engine, name, most)
    for count, first in ((8, 0), (90, 0), (900, 860)):
        elastic = index_of(lines(count, every_s=0.01))
        following = following_of(elastic, ReadWindow())
        assert sorted(await ids_to_edge(following)) == sorted(elastic.documents)[first:]
        assert (await following.take(9)).begins_at == (at_second(first / 100) if first else 0)
    elastic.documents |= lines(1_000, every_s=0.01, first=900)
    later = await ids_to_edge(following)
    assert len(later) == len({*later}) < 400
    assert {*later} >= {*sorted(elastic.documents)[-40:]}
    assert "only the last 40 were read (2 times)" in following.engine.doubts.words


async def test_the_first_of_a_hundred_million_lines_come_soon_with_limited_memory() -> None:
    spent_s = 0.0

    class Huge(StrictElastic):
        """An index that has 100 lines a millisecond; they are made when they are asked for."""

        def _search(self, query: dict[str, Any], *, of_point: bool) -> Any:
            nonlocal spent_s
            began_s, clauses, first_ms = time.process_time(), query["query"]["bool"], T0 // 1_000_000
            (begin,) = (one["range"]["@timestamp"]["gte"] for one in clauses["filter"])
            known = sum(len(one["bool"]["filter"][1]["ids"]["values"]) for one in clauses["must_not"])
            first = ((time_of_iso(begin) or 0) // 1_000_000 - first_ms) * 100 + known
            made = ((n, journald_document(0, LINE.format(n))) for n in range(first, first + query["size"]))
            hits = [
                {"_index": "logs", "_id": f"d{n}", "_source": one, "sort": [first_ms + n // 100]}
                for n, one in made
            ]
            spent_s += time.process_time() - began_s
            return {"_shards": {"total": 5, "failed": 0}, "hits": {"hits": hits}}

    client = carried(ElasticClient(URL), Huge({}, index="logs", points="").answer)
    clock = FixedClock(Nanos(NOW + 3_600 * SECOND))
    engine = timed(ElasticEngine(client, presets()["journald"], Doubts()), clock)
    following = EngineFollowing(engine, At(T0))
    gc.collect()  # what other tests have left is not collected meanwhile
    began_s = time.process_time()
    found = {row.id for row in (await following.rows(1_000))[0]}
    assert len(found) == 1_000
    assert time.process_time() - began_s - spent_s < 0.3
    tracemalloc.start()
    for _ in range(6):
        found |= {row.id for row in (await following.rows(1_000))[0]}
    assert tracemalloc.get_traced_memory()[1] < 20 << 20
    tracemalloc.stop()
    assert len(found) == 7_000


async def test_a_late_row_is_found_and_no_row_comes_twice() -> None:
    elastic = index_of(lines(10, every_s=1))
    following = following_of(elastic)
    assert len((await following.rows(100))[0]) == 10
    elastic.documents["logs/late"] = journald_document(3.5, "late")
    elastic.documents["logs/ahead"] = journald_document(3_000, "of a host whose clock is wrong")
    elastic.documents["logs/new"] = journald_document(12, "new")
    assert {row.id for row in (await following.rows(100))[0]} == {"logs/late", "logs/ahead", "logs/new"}
    assert "ahead of this one" in following.engine.doubts.words
    elastic.documents["logs/later"] = journald_document(14, "later")
    assert [await ids_to_edge(following) for _ in range(2)] == [["logs/later"], []]


@pytest.mark.parametrize("count", [10, 900])
async def test_rows_of_failed_shards_are_reported_missing_and_read_later(count: int) -> None:
    elastic = index_of(lines(count, every_s=200 / count))
    following = following_of(elastic)
    elastic.failed_shards = [{"shard": 1, "reason": {"type": "x", "reason": "no password=hunter2hunter2"}}]
    elastic.hidden = frozenset({"logs/d00001", "logs/d00002"})
    assert len(set(await ids_to_edge(following))) == count - 2
    elastic.documents["logs/new"] = journald_document(201, "new")
    assert await ids_to_edge(following) == ["logs/new"]
    assert "1 of 5 shards failed" in following.engine.doubts.words
    assert "hunter2" not in following.engine.doubts.words
    elastic.failed_shards, elastic.hidden = (), frozenset()
    assert [await ids_to_edge(following) for _ in range(2)] == [["logs/d00001", "logs/d00002"], []]


async def test_keys_come_out_of_files(tmp_path: Any) -> None:
    (key := tmp_path / "key").write_text("key-of-the-reader\n")
    (word := tmp_path / "word").write_text(LOGIN[1])
    elastic = index_of(lines(2), wants_login=True)
    for access, own in (
        (Access(api_key_file=str(key)), "key-of-the-reader"),
        (Access(user=LOGIN[0], password_file=str(word)), LOGIN[1]),
    ):
        elastic.failed_shards = [{"reason": {"reason": f"{own} may not read"}}]
        following = EngineFollowing(engine_of(elastic, access), At(T0))
        assert len((await following.rows(10))[0]) == 2
        assert "(*** may not read)" in following.engine.doubts.words
    with pytest.raises(SourceError, match="does not exist"):
        await EngineFollowing(engine_of(elastic, Access(api_key_file=f"{tmp_path}/x")), At(T0)).rows(1)


async def test_an_answer_too_large_is_asked_for_in_smaller_parts() -> None:
    elastic = index_of({name: {**one, "message": "x" * 20_000} for name, one in lines(100).items()})
    client = carried(ElasticClient(URL), elastic.answer, HttpLimits(body_bytes=500_000))
    following = EngineFollowing(ElasticEngine(client, presets()["journald"], Doubts()), At(T0))
    assert sorted(await ids_to_edge(following)) == sorted(elastic.documents)


def jobs_of(preset: str, *documents: dict[str, Any], name: str = URL) -> Any:
    hits = [{"_id": f"d{n}", "_source": one, "sort": [T0 // 1_000_000]} for n, one in enumerate(documents)]
    return DocumentReader(name, presets()[preset]).read([*map(row_of, hits)])


@pytest.mark.parametrize("down", ["", "prod", "hpc"])
def test_indexes_of_two_sites_are_read_side_by_side(tmp_path: Path, down: str) -> None:
    (ad,), sites = ROWS["ads of adstash"], {"prod": SCHEDD, "hpc": "sub2.example.org"}
    urls: dict[str, list[str]] = {}
    with ExitStack() as stack:
        for site, schedd in sites.items():
            record = {**ad, "GlobalJobId": f"{schedd}#81430001.0#1795207000"}
            indexes = index_of(lines(2, first=9 * len(urls))), StrictElastic({"a": record}, index="ads")
            for index in indexes if site == down else ():
                index.fault = lambda: response(500, b"no shard")
            urls[site] = [stack.enter_context(served(index)) for index in indexes]
        config = tmp_path / "config.toml"
        config.write_text("".join(PROFILE.format(site, *urls[site]) for site in sites))
        flags = ("--json", "--config", str(config), "--profile", ",".join(sites), "--at", AT, "--since", "7d")
        jobs, logs, doctor = in_turn(*((*each, *flags) for each in (("jobs",), ("logs", UNIT), ("doctor",))))
    up = [site for site in sorted(sites) if site != down]
    found = sorted((job["profile"], job["id"], job["source"]) for job in jobs.json["jobs"])
    assert found == [(one, f"81430001.0@{sites[one]}", f"{urls[one][1]}?preset=adstash") for one in up]
    shown = sorted(line["source"] for line in logs.json["lines"])
    assert shown == sorted(2 * [f"sirepo_job_supervisor@v3.{site}" for site in up])
    assert all("logs UNIT --grep" in check["says"][-1] for check in doctor.json["checks"]
               if (check["kind"], check["state"]) == ("elastic_logs", "ok"))  # fmt: skip
    states = {check["source"].partition("?")[0]: check["state"] for check in doctor.json["checks"]}
    assert states == {url: "down" if site == down else "ok" for site in sites for url in urls[site]}
    assert all(f"{url}: failed (500)" in logs.err for url in urls.get(down, [])[:1])


def test_events_of_condor_keep_the_schedd_of_their_log() -> None:
    event = submitted(job="081.000.000")
    document = {"message": event.removesuffix("...\n"), "log": {"file": {"path": "/x/log"}, "offset": 90},
                "host": {"hostname": "sub1"}}  # fmt: skip
    found = jobs_of("condor_events", document, {**document, "message": "no event"})
    (fact,) = found.condor
    told = fact.job, fact.source, fact.offset, len(found.skipped)
    assert told == (f"81.0@{SCHEDD}", f"{URL} sub1:/x/log", 90, 1)


@pytest.mark.parametrize("preset", [one for one in presets().values() if one.gives == "logs"], ids=str)
def test_fields_are_found_however_they_are_nested(preset: Preset) -> None:
    for field, paths in preset.fields.items():
        for path, is_list in product(paths, (False, True)):
            nested: Any = "x"
            for part in reversed(path.split(".")):
                nested = {part: [nested] if is_list else nested}
            assert fields_of(nested, preset) == fields_of({path: "x"}, preset)
            assert fields_of(nested, preset)[field] == "x"
    assert fields_of({preset.fields["MESSAGE"][0]: ["a", "b"]}, preset) == {"MESSAGE": "a\nb"}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("label", "other", "home", "systems"), ROWS["clusters of an index"])
async def test_slurm_jobs_are_named_by_their_clusters_and_looked_up_by_these_names(
    cluster: StandIn, tmp_path: Any, label: str, other: str, home: str, systems: list[str]
) -> None:
    rig = rigs.ElasticJobsRig(tmp_path)
    cluster.show("config", f"Configuration data as of now\nClusterName             = {home}\n")
    beside: Any = Slurm(Commands("local"), label=label) if home else None
    rig.label, rig.elastic.keywords = label, bool(label)
    task, part = {"array_job_id": 5, "array_task_id": 0}, {"het_job_id": 5, "het_job_offset": 1}
    kept = [rigs.ended_job(6, **task), rigs.ended_job(8, **part), rigs.ended_job(7, job_name="of c")]
    kept += [rigs.ended_job(9, **{"@end": "2020-01-01T00:00:00"})]
    kept += [rigs.ended_job(7, cluster=other)] if other else []
    rig.elastic.documents |= {f"d{n}": one for n, one in enumerate(kept)}
    source: Any = rig.source()
    source.others = lambda: (source, beside)
    if beside is not None:
        gate, asked = asyncio.Event(), beside.cluster_name

        async def late() -> Any:
            await gate.wait()
            return await asked()

        beside.cluster_name = late
        *_, batch = batches = (await read_on(source))[1]
        assert "is not known yet: it has not answered" in (batch.note or "")
        doubted = {job.id for one in batches for job in one.jobs}
        names = {f"slurm@{'.'.join(filter(None, (label, one)))}/7" for one in filter(None, ("c", other))}
        assert {one for one in doubted if one.endswith("/7")} == names
        cluster.fault("scontrol", "slurm_load_ctl_conf error: Unable to contact slurm controller")
        gate.set()
        while "is not known yet: local: slurmctld does not answer" not in (batch.note or ""):
            batch = await source.poll(batch.cursor)
        cluster.fault("scontrol", None)
        while "is not known yet" in (batch.note or ""):
            batch = await source.poll(batch.cursor)
        assert {*batch.gone} == {one for one in doubted if one.partition("/")[0] not in systems}
        assert {job.id for job in batch.jobs} >= doubted - {*batch.gone}
    ids = [*(f"{systems[0]}/{n}" for n in ("9", "7", "5_0", "5+1")), *(f"{one}/7" for one in systems[1:])]
    for one in ids:
        found = await source.detail(JobId(one))
        assert (found.job.id, found.outputs, found.job.owner) == (one, ("/home/jg/slurm.out",), "jg")
        assert found.job.status is JobStatus.FAILED
        assert (found.job.name == "of c") == (one == ids[1])
    assert {job.id for one in await polled(source) for job in one.jobs} == {*ids[1:]}
    for absent in (f"{systems[0]}/10", "balsam/7", "slurm@x/7", *["slurm/7"] * ("slurm" not in systems)):
        assert await source.detail(JobId(absent)) is None
    await source.aclose()
    if beside is not None:
        await beside.aclose()


def loki_engine(loki: StrictLoki) -> LokiEngine:
    return carried(timed(LokiEngine(parse_loki(rigs.LOKI_URL), Doubts()), FixedClock(NOW)), loki.answer)


OWN = 'query={job="other"}', '{job="other"}'


@pytest.mark.parametrize(("options", "begin"), [("preset=journald_json", '{job=~".*journal.*"} | json'), OWN])
async def test_entries_of_a_preset_and_of_a_query_of_ones_own_are_read(options: str, begin: str) -> None:
    whole = {"MESSAGE": LINE.format(5), "_SYSTEMD_UNIT": UNIT, "_HOSTNAME": "v3", "_PID": "7", "N": None}
    labels = {"job": "loki.source.journal.read"}
    lines: list[Any] = [(at_second(1), labels, json.dumps(whole)), (at_second(2), labels, "no json")]
    lines.append((at_second(3), {"job": "other"}, json.dumps(whole)))
    lines.append(journal_line(4, LINE.format(0), job="other"))
    source = rigs.loki_journal(loki := StrictLoki(lines), options)
    (batch, *_) = await polled(source)
    (record,) = batch.records
    assert (record.pid, record.source) == (7, "sirepo_job_supervisor@v3")
    assert all(one["query"].startswith(begin) for one in loki.sent)
    await source.aclose()


async def test_lines_of_any_kind_cost_only_themselves() -> None:
    good = [str(at_second(1)), LINE.format(1)]
    values: list[Any] = [good, [1, "x"], ["x", "y"], [str(at_second(2))], "z", None, [good[0], {"a": 1}], []]
    streams = [{"stream": journal_line(0, "")[1], "values": values}, {"stream": 3}, "x"]
    body = json.dumps({"status": "success", "data": {"resultType": "streams", "result": streams}}).encode()
    loki = StrictLoki([])
    loki.fault = lambda: response(200, body, {"content-type": "application/json"})
    engine = loki_engine(loki)
    long_ago = At(Nanos(NOW - 90 * 86_400 * SECOND))
    assert len((await EngineJournal(lambda: engine).forward(long_ago, (), 10)).entries) == 1
    assert "a line has no time or no text" in engine.doubts.words
    assert "only the last 29 days are asked for" in engine.doubts.words


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "PERIOD_S", 0.01)
    monkeypatch.setattr(engine, "TAILED_PERIOD_S", 0.05)
    monkeypatch.setattr(engine, "TOGETHER_S", 0)
    monkeypatch.setattr(client, "RETRY_S", 0.005)
    monkeypatch.setattr("jobtui.backends.elastic.jobs.ANSWER_S", 0.01)


async def given(following: EngineFollowing, count: int) -> list[tuple[Nanos, str, str]]:
    found, left = [], 4
    while left:
        piece = await following.take(30)
        found += [(entry.at, entry.unit, entry.message) for entry in piece.entries]
        left -= piece.at_edge and len(found) >= count
        await following.changed(0.2)
    return found


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("seed", range(6))
async def test_every_row_is_given_once_across_lost_connections_and_page_ends(seed: int) -> None:
    random = Random(seed)
    loki = StrictLoki([journal_line(n, f"old {n}") for n in range(5)])
    loki.is_apart = seed % 3 > 0
    following = EngineFollowing(loki_engine(loki), At(T0))
    found = await given(following, 5)
    for n in range(10, 40):
        at, text = n - random.choice((0, 0, 9)), random.choice((f"line {n}", "alike"))
        for unit in random.choice(((UNIT,), (UNIT, "other.service"))):
            loki.put(journal_line(at + n / 1_000, text, unit=unit), is_dropped=random.random() < 0.2)
        if n < 35 and random.random() < 0.2:
            loki.end_tails(is_said=random.random() < 0.5)
        if random.random() < 0.5:
            found += await given(following, 0)
    found += await given(following, len(loki.lines) - len(found))
    assert sorted(found) == sorted((at, labels["unit"], text) for at, labels, text in loki.lines)
    while not loki.wires:
        await given(following, 0)
    wire = loki.wires[-1]
    await following.aclose()
    assert [type(wire.heard[n]) for n in (0, -1)] == [Pong, CloseConnection]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("status", "body", "words"), ROWS["refusals of an upgrade"])
async def test_new_lines_are_asked_for_without_a_websocket(status: int, body: str, words: str) -> None:
    loki = StrictLoki([])
    loki.refusal = response(status, body.encode())
    following = EngineFollowing(loki_engine(loki), At(T0))
    await given(following, 0)
    loki.put(journal_line(1, "line"))
    assert len(await given(following, 1)) == 1
    assert words in (await following.take(1)).note
    await following.aclose()


ENDED = event(5, "2026-11-20 10:02:00Z", "Job terminated.", "\t(1) Normal termination (return value 1)")
LANDSCAPE = "https://landscape.test/fetchlog"
TOKEN = "token-of-the-experiment"


def landscape(archive: str = "whole", body: bytes | None = None, **headers: str) -> Any:
    """A fetchlog that has this as the archive of one job; `asked` are the requests to it."""
    body = ARCHIVES[archive] if body is None else body
    told = {"content-type": "application/gzip"} | {n.replace("_", "-"): v for n, v in headers.items()}

    def answer(request: httpx.Request) -> httpx.Response:
        server.asked.append((request.method, request.url.path, request.headers.get("authorization")))
        is_there = bool(body) and request.url.path.endswith(f"/job/{JOB}.tar.gz")
        return response(200 if is_there else 404, body * is_there, told)

    server = SimpleNamespace(answer=answer, asked=[])
    return server


def kept(server: Any) -> FetchLog:
    return carried(FetchLog(LANDSCAPE, Access(bearer=TOKEN)), server.answer, HttpLimits())


@pytest.mark.parametrize("unpacked", [{}, {"content_encoding": "gzip"}], ids=["as it is", "by a proxy"])
async def test_the_files_of_a_job_are_asked_for_once_and_read_in_parts(unpacked: dict[str, Any]) -> None:
    server = kept(stand_in := landscape(**unpacked))
    path = server.directory_of(JobId(JOB))
    assert path == f"{LANDSCAPE}/job/{JOB}"
    listing = await server.list_files(path)
    assert [(file.name, file.size) for file in listing.files] == [("beam.err", 300_000), ("beam.out", 93)]
    assert listing.left_out == 1
    whole = await server.read_file(path, "beam.out", tail=True)
    assert (whole.text, whole.is_whole) == (OUTPUT, True)
    tail = await server.read_file(path, "beam.err", tail=True)
    assert (tail.is_whole, tail.is_to_end, tail.size) == (False, True, 300_000)
    with pytest.raises(Unreadable, match="is not among the files"):
        await server.read_file(path, "../passwd", tail=False)
    assert stand_in.asked == [("GET", f"/fetchlog/job/{JOB}.tar.gz", f"Bearer {TOKEN}")]
    await server.aclose()
    for other in ("7.0", f"7@{SCHEDD}", "slurm/7", "vn9mPEFC-abcdefgh-animation"):
        assert server.directory_of(JobId(other)) is None


async def test_members_of_an_archive_that_are_not_understood_are_counted() -> None:
    sparse = tarfile.TarInfo("sparse")
    sparse.type = tarfile.GNUTYPE_SPARSE
    data = gzip.decompress(rigs.archive({"a": "x"}))[:1024]
    odd = data + sparse.tobuf(tarfile.GNU_FORMAT)
    for body, left_out in ((odd + b"no header".ljust(512), 2), (odd + bytes(512), 1), (data, 1)):
        listing = await kept(landscape(body=gzip.compress(body))).list_files(f"{LANDSCAPE}/job/{JOB}")
        assert ([file.name for file in listing.files], listing.left_out) == (["a"], left_out)
    server = kept(landscape(body=rigs.archive({"a/out": "x", "b/out": "y"})))
    assert "1 of its files are not read" in (await server.list_files(f"{LANDSCAPE}/job/{JOB}")).note


CUT_FILES = gzip.compress(gzip.decompress(rigs.archive({"beam.out": OUTPUT}))[:1024])


@pytest.mark.parametrize("files", [FILES, CUT_FILES], ids=["whole", "without its end"])
def test_the_failing_line_and_the_log_are_of_its_files(run: Runner, tmp_path: Path, files: bytes) -> None:
    log = tmp_path / "job.log"
    log.write_text(submitted() + executing() + ENDED)
    with served(landscape(body=files)) as url:
        flags = ("--condor-log", log, "--fetchlog", url)
        document: Any = run("explain", JOB, "--json", *flags).json
        assert "no such beam" in document["sentence"]
        assert document["cause"]["source"] == f"{url}/job/{JOB}/beam.out"
        printed = run("logs", JOB, "--json", *flags)
        assert any("no such beam" in line["text"] for line in printed.json["lines"])
        brief = run("explain", JOB, "--brief", *flags)
        checks = run("doctor", "--json", *flags).json["checks"]
    (check,) = (one for one in checks if one["kind"] == "fetchlog")
    is_told = any(f"of {JOB}, which ended last" in one for one in check["says"])
    assert (check["state"], is_told, document["confidence"] > 0.8) == ("ok", True, True)
    told = " ".join(document["blind_spots"]), printed.err, brief.out, " ".join(check["says"])
    assert {"the archive is incomplete" in one for one in told} == {files is CUT_FILES}


SECRET = "s3cr3t-t0k3n-of-an-operator"
NOW_S = (SystemClock().now() - T0) / SECOND
"""Seconds from the time of the first line of the rigs to now: a server goes by the clock of this machine."""
ARCHIVES = {
    "whole": FILES, "none": b"", "text": b"no archive", "bomb": gzip.compress(bytes(200 << 20)),
    "cut": gzip.compress(gzip.decompress(FILES)[:1_000]),
}  # fmt: skip


def elastic(late_s: float = 60, bare: bool = False, **more: Any) -> StrictElastic:
    documents = {f"d{n}": journald_document(NOW_S - late_s + n, LINE.format(n)) for n in range(5)}
    if bare:
        documents = {name: {"@timestamp": one["@timestamp"]} for name, one in documents.items()}
    return StrictElastic(**{"documents": documents, "index": "logs", "keywords": True, **more})


def loki(late_s: float = 60, warnings: Any = (), **labels: str) -> StrictLoki:
    lines = [journal_line(NOW_S - late_s + n, LINE.format(n), **labels) for n in range(5)]
    server = StrictLoki([(at, {key: one for key, one in of.items() if one}, text) for at, of, text in lines])
    server.warnings = [*warnings]
    return server


class Fault(NamedTuple):
    """How an answer is changed: to other ones, packed as gzip, or cut to a share or a number of bytes."""

    status: int = 0
    headers: Mapping[str, str] = {}
    body: str | None = None
    packed: float = 0.0

    def of(self, answer: httpx.Response) -> httpx.Response:
        assert isinstance(answer.stream, httpx.ByteStream)
        data = b"".join(answer.stream) if self.body is None else self.body.encode()
        known = {} if self.status else answer.headers
        if self.packed:
            data = (whole := gzip.compress(data))[: int(len(whole) * self.packed)]
        return response(self.status or answer.status_code, data, {**known, **self.headers})


ENGINES: dict[str, Callable[..., Any]] = {"elastic-logs": elastic, "loki": loki, "fetchlog": landscape}
CASES = [
    (one, ENGINES[one](**server), Fault(**fault), words)
    for of, server, fault, words in ROWS["faults, of any engine or of one"]
    for one in ENGINES
    if of in ("", one)
]


async def on_screen(settings: Mapping[str, tuple[str, ...]]) -> list[str]:
    """What the screen of sources says of the last one."""
    async with Session([announce(spec) for spec in load(settings, {}).sources]) as session:
        await session.catch_up()
        return [paragraph.text for paragraph in about(session.store.sources()[-1])]


@pytest.mark.parametrize(("setting", "server", "fault", "words"), CASES)
def test_each_is_one_line_wherever_it_is_looked_for(
    setting: str, server: Any, fault: Fault, words: str, run: Runner, tmp_path: Path
) -> None:
    (tmp_path / "job.log").write_text(submitted() + executing() + ENDED)
    (tmp_path / "token").write_text(SECRET)
    base = getattr(server, "base", "")
    with served(SimpleNamespace(base=base, answer=lambda asked: fault.of(server.answer(asked)))) as url:
        config = tmp_path / "config.toml"
        config.write_text(f'[servers."{url}"]\nbearer_file = "{tmp_path}/token"\n')
        flags = ["--config", str(config), f"--{setting}", url]
        flags += ["--condor-log", str(tmp_path / "job.log")] if setting == "fetchlog" else []
        doctor = run("doctor", "--json", *flags)
        logs = run("logs", JOB if setting == "fetchlog" else "sirepo_job_supervisor", *flags)
        explained = run("explain", JOB, "--json", *flags) if setting == "fetchlog" else None
        screen = asyncio.run(on_screen({"config": (str(config),), setting.replace("-", "_"): (url,)}))
    says = [one for check in doctor.json["checks"] for one in check["says"]]
    told = {"doctor": says, "logs": logs.err.splitlines()}
    told |= {"the screen": screen} if setting != "fetchlog" or fault.status else {}  # it asks for no archive
    told |= {"explain": explained.json["blind_spots"]} if explained else {}
    for place, lines in told.items():
        assert sum(words in one for one in lines if words) == bool(words), (place, lines)
    assert bool(logs.out) or words
    assert SECRET not in f"{doctor}{logs}{screen}{explained}"
