"""Why jobs wait, on what a cluster printed in which some thirty did, beside what Slurm's own tools said."""

import asyncio
import json
import time
import tomllib
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.analysis.correlation import NothingRead
from jobtui.analysis.explain.case import Evidence
from jobtui.analysis.explain.pending import refined
from jobtui.analysis.explain.verdict import explain
from jobtui.backends.slurm.detail import Queue, _answered, chain_of
from jobtui.backends.slurm.detail import pending_of as slurm_pending
from jobtui.backends.slurm.source import QUEUE_EVERY_S
from jobtui.formats.slurm_nodes import Wants, gres_of, limit_told, nodes_of, tally_of
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Category, NodeTally, Pending
from jobtui.model.verdicts import Verdict
from jobtui.store.store import Store
from tests.backends.slurm.reading import Reading
from tests.builders import some
from tests.formats.slurm_captures import CAPTURES
from tests.rows import ROWS
from tests.slurm_stand_in import StandIn

CAPTURED: Mapping[str, Any] = json.loads((CAPTURES / "waiting.json").read_text())
IDS = CAPTURED["ids"]


async def verdict_on(reading: Reading, number: str) -> Verdict:
    detail = await reading.detail(number)
    return explain(Evidence(job_id=detail.job.id, now=reading.clock.now(), job=detail.job, detail=detail))


async def pending_of(reading: Reading, number: str) -> Pending:
    pending = some((await verdict_on(reading, number)).pending)
    return pending


WORDS = tomllib.loads((CAPTURES / "waiting_said.toml").read_text())


async def test_each_is_said_to_wait_for_what_slurms_tools_said(cluster: StandIn) -> None:
    reading, truths = Reading(), cluster.waiting()
    await reading.read()
    wrong, asked = [], 0
    verdicts = await asyncio.gather(*(verdict_on(reading, truth["id"]) for truth in truths.values()))
    for (name, truth), verdict in zip(truths.items(), verdicts, strict=True):
        pending = some(verdict.pending)
        assert len(pending.asked) <= 1
        asked += 1 + len(pending.asked)  # its record
        told = {
            "category": pending.category.value,
            "ahead": pending.ahead,
            "nodes": {key: getattr(pending.nodes, key, None) for key in truth.get("nodes", {})},
            "most": pending.limit and pending.limit.most,
            "used": pending.limit and pending.limit.used,
        }
        wrong += [(name, key, told[key]) for key in told.keys() & truth.keys() if told[key] != truth[key]]
        wrong += [(name, one, verdict.sentence) for one in WORDS.get(name, ()) if one not in verdict.sentence]
        facts = [fact for fact in verdict.evidence if fact.what == "asked for this"]
        assert bool(facts) == bool(pending.asked), name
    assert not wrong
    assert len(truths) > 30
    assert WORDS.keys() <= truths.keys()
    assert [len(cluster.calls(name)) for name in ("squeue", "scontrol", "sdiag")] == [1, asked, 0]


async def test_a_limit_is_held_until_the_time_that_is_judged(cluster: StandIn) -> None:
    cluster.waiting()
    detail = await Reading().detail(IDS["qos-jobs"])
    (since,) = (one.since for one in some(detail.pending).holders)
    assert since is not None
    for held_s in (90.0, 7_200.0):
        now = Nanos(since + int(held_s) * SECOND)
        found = some(explain(Evidence(job_id=detail.job.id, now=now, job=detail.job, detail=detail)).pending)
        assert [one.held_s for one in found.holders] == [held_s]


async def test_of_one_job_alone_the_queue_is_read_once(cluster: StandIn) -> None:
    cluster.waiting()
    reading = Reading()
    assert (await pending_of(reading, IDS["second"])).ahead == 1
    await pending_of(reading, IDS["third"])
    assert len(cluster.calls("squeue")) == 1


async def test_when_a_job_might_have_begun_is_said(cluster: StandIn) -> None:
    cluster.accounts({"Submit": "2026-11-20T20:00:00", "Eligible": "2026-11-20T20:07:00",
                      "Start": "2026-11-20T20:10:00"})  # fmt: skip
    detail = await Reading().detail("1")
    told = "2026-11-20T20:07:00Z, 7 min after it was submitted, 3 min before it began"
    assert ("eligible", told) in detail.facts


async def test_without_an_answer_what_the_queue_tells_is_said(cluster: StandIn) -> None:
    cluster.waiting()
    (cluster.folder / "scontrol.node").unlink()
    verdict = await verdict_on(Reading(), IDS["second"])
    assert verdict.pending is not None
    assert (verdict.pending.ahead, verdict.pending.nodes) == (1, None)
    assert "Invalid job id" in verdict.pending.unread


async def test_a_job_that_a_node_took_with_it_says_why_and_who_else(cluster: StandIn) -> None:
    cluster.waiting()
    verdict = await verdict_on(Reading(), IDS["victim"])
    assert "Node n6 is DOWN NOT_RESPONDING: kernel: Oops, since 2026-" in verdict.sentence
    assert f"Lost with it: {IDS['other-victim']} of nobody" in verdict.sentence


async def test_what_was_seen_is_said_until_the_job_begins(
    cluster: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobtui.store.store.MOST_REASONS", 3)
    reading, row = Reading(), {"%T": "PENDING", "%N": ""}
    store = Store(NothingRead(), reading.clock)
    store.add_source(reading.source.name, "slurm")

    async def look(state: Mapping[str, str]) -> str:
        cluster.queue({**row, **state})
        for _ in range(2):
            at = len(reading.batches)
            await reading.read(QUEUE_EVERY_S)
            for batch in reading.batches[at:] * 2:  # the same batch again changes nothing more
                store.apply(reading.source.name, batch)
        job, reasons = store.job(JobId("slurm/1")), store.reasons_of(JobId("slurm/1"))
        known = Evidence(job_id=JobId("slurm/1"), now=reading.clock.now(), job=job, reasons=reasons)
        return explain(known).sentence

    assert "While watched" not in await look({"%r": "Resources"})
    assert "While watched: Resources → Priority since" in await look({"%r": "Priority"})
    assert "Resources → Priority → Resources since" in await look({"%r": "Resources"})
    assert "Resources → Priority since" in await look({"%r": "Priority", "%Q": "7"})
    assert [one.reason for one in store.reasons_of(JobId("slurm/1"))] == ["Priority", "Resources", "Priority"]
    assert "While watched" not in await look({"%T": "RUNNING"})
    assert not store.reasons_of(JobId("slurm/1"))


async def test_nodes_are_asked_for_only_while_somebody_wants_them(cluster: StandIn) -> None:
    cluster.waiting()
    reading = Reading()
    await reading.read()
    assert not cluster.calls("sdiag")
    reading.source.ask_for_nodes(30.0)
    await reading.read()
    await reading.read(10.0)
    (told,) = (one for batch in reading.batches for one in batch.clusters)
    assert [node.name for node in told.nodes if node.needs_person] == ["n5", "n6", "n7"]
    assert {one.name for one in told.partitions if one.state != "UP"} == {"closed", "asleep"}
    assert told.controller is not None
    assert (told.controller.dbd_backlog, told.controller.queued) == (0, 20)
    assert told.controller.cycle_ms is not None
    await reading.read(40.0)
    assert len(cluster.calls("sdiag")) == 2
    cluster.fault("sdiag", "slurm_load_ctl_conf error")
    await reading.read(40.0)
    assert "its nodes are not known" in (reading.batches[-1].note or "")
    reading.source.ask_for_nodes(None)
    await reading.read(400.0)
    assert len(cluster.calls("sdiag")) == 3


@pytest.mark.parametrize(
    ("head", "piece"),
    [("NodeName=a State=IDLE Gres=", "("), ("NodeName=a State=IDLE Reason=", " [a@"),
     ("QOS=q(1) GrpTRES=", "a"), ("QOS=q(1) ", "a={")],
)  # fmt: skip
def test_text_without_its_end_takes_no_longer_than_other_text(head: str, piece: str) -> None:
    began = time.thread_time()
    for node in nodes_of((printed := head + piece * 60_000).encode()):
        gres_of(node.gres)
    for word in ("QOSGrpCpuLimit", "QOSMaxCpuPerUserLimit"):
        limit_told(printed.encode(), word, user="u", account="a", qos="q")
    assert time.thread_time() - began < 1.0


COUNTED = ("down", "drained", "reserved", "no_feature", "no_gres", "too_small", "full", "free")
STATES = ["IDLE", "MIXED", "DOWN*", "IDLE+DRAIN", "IDLE+RESERVED", "ODD"]
WANTED = st.builds(
    Wants, nodes=st.just(1), cpus=st.integers(0, 40), memory_mb=st.integers(0, 9_000),
    features=st.sampled_from(["", "x"]), gres=st.sampled_from(["", "gpu:1"]), only=st.just(frozenset()),
    partitions=st.just(frozenset({"p"})), reservation=st.just(""), is_exclusive=st.booleans(),
)  # fmt: skip


@given(st.lists(st.sampled_from(STATES), max_size=8), WANTED)
def test_each_node_counts_once(states: list[str], wants: Wants) -> None:
    of = "CPUTot=32 RealMemory=8000 Partitions=p"
    lines = (f"NodeName=n{n} {of} CPUAlloc={n} Gres=gpu:{n % 3} State={one}" for n, one in enumerate(states))
    nodes = nodes_of("\n".join(lines).encode())
    tally = tally_of(nodes, wants)
    assert sum(getattr(tally, name) for name in COUNTED) == tally.total == len(nodes)
    assert refined(Pending(category=Category.PRIORITY, nodes=tally)).nodes == tally


@pytest.mark.parametrize(("said", "tally", "category"), ROWS["what nodes tell beside the reason"])
def test_nodes_tell_what_the_reason_hides(said: Category, tally: dict[str, Any], category: str) -> None:
    found = refined(Pending(category=Category(said), nodes=NodeTally(**tally)))
    assert (found.category, found.is_stuck) == (category, category == "request")


async def test_who_is_waited_for_is_found_by_nodes_and_by_name(cluster: StandIn) -> None:
    cluster.waiting()
    reading = Reading()
    await reading.read()
    queue = await reading.source._queue()
    one = queue.jobs[IDS["resources"]]
    alone = msgspec.structs.replace(one, dependency="singleton(unfulfilled)", name="x", raw="900", id="900")
    earlier = msgspec.structs.replace(alone, dependency="", raw="899", id="899")
    later = msgspec.structs.replace(earlier, raw="901", id="901")
    other = msgspec.structs.replace(earlier, raw="898", id="898", user="ana")
    known = {job.id: job for job in (alone, earlier, later, other)}
    assert chain_of(alone, known) == (("899", "PENDING (Resources)"),)
    elsewhere = {key: msgspec.structs.replace(job, partition="limited") for key, job in queue.jobs.items()}
    fields = {"Partition": "debug", "NumNodes": "2", "NumCPUs": "64"}
    printed = CAPTURED["scontrol"]["node"].encode()
    found = [
        _answered(slurm_pending(one.id, one, queue), one, fields, Queue(jobs, {}), printed).holder_count
        for jobs in (queue.jobs, elsewhere)
    ]
    assert found == [1, 1]
