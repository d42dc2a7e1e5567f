"""Journals in Loki: what is asked, how lines become entries, and what Loki leaves out."""

import json
from random import Random
from typing import Any

import pytest
from wsproto.events import CloseConnection, Pong

from jobtui.backends import engine
from jobtui.backends.engine import Doubts, EngineFollowing, EngineJournal
from jobtui.backends.journal import client
from jobtui.backends.loki import LokiEngine
from jobtui.backends.registry import parse_loki
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.health import SourceError
from jobtui.model.journal import At, Head
from jobtui.model.specs import Access
from tests.backends.engines.loki_server import StrictLoki
from tests.backends.engines.rigs import LOKI_URL, T0, at_second, journal_line, loki_journal
from tests.backends.journal.source_rig import LINE, UNIT
from tests.carried import carried, timed
from tests.conftest import NOW
from tests.loopback import response
from tests.polling import polled
from tests.rows import ROWS


def engine_of(loki: StrictLoki, access: Access | None = None, options: str = "") -> LokiEngine:
    spec = parse_loki(f"{LOKI_URL}?{options}" if options else LOKI_URL)
    spec = spec._replace(access=access) if access else spec
    return carried(timed(LokiEngine(spec, Doubts()), FixedClock(NOW)), loki.transport)


def reader_of(loki: StrictLoki) -> EngineJournal:
    return EngineJournal(lambda: engine_of(loki))


async def test_only_what_is_wanted_is_asked_for() -> None:
    other = journal_line(1, "other", unit="ssh+x.service", syslog_identifier="sshd", hostname="v4")
    loki = StrictLoki([journal_line(0, LINE.format(0)), other])
    reader = reader_of(loki)
    assert set((await reader.values("_SYSTEMD_UNIT"))["_SYSTEMD_UNIT"]) == {UNIT, "ssh+x.service"}
    for matches, count in (
        (((("_SYSTEMD_UNIT", "ssh+x.service"),),), 1),
        (((("_SYSTEMD_UNIT", "sshx.service"),),), 0),
        (((("_SYSTEMD_UNIT", "ssh+x.service"), ("_HOSTNAME", "v4")),), 1),
        (((("_SYSTEMD_UNIT", "ssh+x.service"), ("_HOSTNAME", "v3")),), 0),
        (((("SYSLOG_IDENTIFIER", 'ss"hd\\'),), (("_SYSTEMD_UNIT", UNIT),)), 1),
        (((("_UNKNOWN_FIELD", "x"),),), 0),
    ):
        assert len((await reader.forward(Head(), matches, 10)).entries) == count
    (entry,) = (await reader.forward(At(at_second(1)), (), 10)).entries
    assert (entry.host, entry.unit, entry.identifier) == ("v4", "ssh+x.service", "sshd")


async def test_entries_written_whole_as_json_are_read_out_of_the_line() -> None:
    whole = {"MESSAGE": LINE.format(5), "_SYSTEMD_UNIT": UNIT, "_HOSTNAME": "v3", "_PID": "7", "N": None}
    lines = [
        (at_second(1), {"job": "loki.source.journal.read"}, json.dumps(whole)),
        (at_second(2), {"job": "loki.source.journal.read"}, "no json"),
        (at_second(3), {"job": "other"}, json.dumps(whole)),
    ]
    loki = StrictLoki([(at, labels, text) for at, labels, text in lines])
    source = loki_journal(loki, "preset=journald_json")
    (batch, *_) = await polled(source)
    (record,) = batch.records
    assert (record.pid, record.source) == (7, "sirepo_job_supervisor@v3")
    assert all(" | json" in one["query"] for one in loki.sent)
    await source.aclose()


async def test_a_query_of_ones_own_is_asked_as_it_is() -> None:
    loki = StrictLoki([journal_line(0, LINE.format(0), job="mine"), journal_line(1, LINE.format(1))])
    source = loki_journal(loki, 'query={job="mine"}')
    batches = await polled(source)
    assert sum(len(batch.records) for batch in batches) == 1
    assert all(one["query"].startswith('{job="mine"}') for one in loki.sent)
    await source.aclose()


async def test_other_labels_than_the_usual_are_one_clear_line() -> None:
    loki = StrictLoki([(at_second(1), {"job": "systemd-journal", "service": "x"}, "line")])
    source = loki_journal(loki)
    batches = await polled(source)
    assert "no stream has a label unit, syslog_identifier, container_name" in (batches[-1].note or "")
    await source.aclose()


async def test_what_loki_warns_of_and_what_is_not_asked_for_is_said() -> None:
    loki = StrictLoki([journal_line(0, LINE.format(0))])
    loki.warnings = ["some ingesters did not answer, token=abcdef1234567890abcdef"]
    engine = engine_of(loki)
    await EngineJournal(lambda: engine).forward(At(Nanos(NOW - 90 * 86_400 * SECOND)), (), 10)
    assert "some ingesters did not answer" in engine.doubts.words
    assert "abcdef1234567890" not in engine.doubts.words
    assert "only the last 29 days are asked for" in engine.doubts.words


@pytest.mark.parametrize(("status", "body", "words"), ROWS["refusals of Loki"])
async def test_what_loki_refuses_is_said(status: int, body: str, words: str) -> None:
    loki = StrictLoki([])
    loki.fault = lambda: response(status, body.encode(), {"content-type": "application/json"})
    with pytest.raises(SourceError, match=words):
        await EngineJournal(lambda: engine_of(loki)).forward(Head(), (), 10)


async def test_lines_of_any_kind_cost_only_themselves() -> None:
    good = [str(at_second(1)), LINE.format(1)]
    values: list[Any] = [good, [1, "x"], ["x", "y"], [str(at_second(2))], "z", None, [good[0], {"a": 1}], []]
    streams = [{"stream": journal_line(0, "")[1], "values": values}, {"stream": 3}, "x"]
    body = json.dumps({"status": "success", "data": {"resultType": "streams", "result": streams}}).encode()
    loki = StrictLoki([])
    loki.fault = lambda: response(200, body, {"content-type": "application/json"})
    engine = engine_of(loki)
    assert len((await EngineJournal(lambda: engine).forward(Head(), (), 10)).entries) == 1
    assert "a line has no time or no text" in engine.doubts.words


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "PERIOD_S", 0.01)
    monkeypatch.setattr(engine, "TAILED_PERIOD_S", 0.05)
    monkeypatch.setattr(client, "RETRY_S", 0.005)


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
async def test_what_is_sent_dropped_or_comes_at_a_seam_is_given_once(seed: int) -> None:
    random = Random(seed)
    loki = StrictLoki([journal_line(n, f"old {n}") for n in range(5)])
    loki.is_apart = seed % 3 > 0
    following = EngineFollowing(engine_of(loki), At(T0))
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
    assert "tail dropped lines" in following.engine.doubts.words
    while not loki.wires:
        await given(following, 0)
    wire = loki.wires[-1]
    await following.aclose()
    assert [type(wire.heard[n]) for n in (0, -1)] == [Pong, CloseConnection]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("status", "body", "words"), ROWS["refusals of an upgrade"])
async def test_where_no_websocket_passes_new_lines_are_asked_for(status: int, body: str, words: str) -> None:
    loki = StrictLoki([])
    loki.refusal = response(status, body.encode())
    following = EngineFollowing(engine_of(loki), At(T0))
    await given(following, 0)
    loki.put(journal_line(1, "line"))
    assert len(await given(following, 1)) == 1
    assert words in (await following.take(1)).note
    await following.aclose()
