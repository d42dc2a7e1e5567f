from contextlib import aclosing
from typing import Any

import pytest

from jobtui.backends.elastic.client import ElasticClient
from jobtui.backends.elastic.scripts import ElasticArchive
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import SourceMissing, SourceUnreachable
from jobtui.model.scripts import Answer, Outcome, ScriptPeriod, Walked, Wanted
from tests.backends.archive.captured import JOBS, SUBMITTED, check, documents
from tests.backends.archive.elastic_server import INDEX, StrictElastic
from tests.carried import carried

BY_ID = {str(document["id"]): document for document in documents()}
UNDER_JOBINFO: dict[str, Any] = {
    f"made-{key}": {"jobinfo": {k: d[k] for k in d.keys() - {"timestamp"}}, "@timestamp": d["timestamp"]}
    for key, d in BY_ID.items()
}


def archive_of(elastic: StrictElastic, index: str = INDEX) -> ElasticArchive:
    return ElasticArchive(carried(ElasticClient(f"http://elastic.test/{index}"), elastic.answer))


async def found(elastic: StrictElastic, wanted: Wanted, index: str = INDEX) -> Answer:
    async with aclosing(archive_of(elastic, index)) as archive:
        return await archive.find(wanted)


@pytest.mark.parametrize("kept", [BY_ID, UNDER_JOBINFO], ids=["at the top", "under jobinfo"])
async def test_every_document_gives_script_and_environment(kept: dict[str, Any]) -> None:
    elastic = StrictElastic(kept)
    for number in JOBS:
        script = (await found(elastic, Wanted(number, cluster="huppel"))).script
        check(script, number)
        assert b"SIM_OPTS" in script.environment.mended  # type: ignore[union-attr]


@pytest.mark.parametrize("is_inner", [False, True], ids=["at the top", "under jobinfo"])
async def test_a_job_of_torque_is_found_with_and_without_its_server(is_inner: bool) -> None:
    kept: dict[str, Any] = {
        f"{number}.master": {"id": f"{number}.master", "script": number, "cluster": "snel", "environment": {}}
        for number in ("27", "270", "2")
    }
    inner = {key: {"jobinfo": one} for key, one in kept.items()}
    elastic = StrictElastic(inner if is_inner else kept)
    for wanted in (Wanted("27"), Wanted("27", server=".master"), Wanted("27", cluster="snel")):
        script = (await found(elastic, wanted)).script
        assert script is not None
        assert (script.number, script.script) == ("27.master", b"27")
    assert (await found(elastic, Wanted("7"))).script is None


async def test_each_reason_for_a_missing_script_or_index_is_reported() -> None:
    elastic = StrictElastic(BY_ID)
    nothing = (await found(elastic, Wanted("70"))).tried[0]
    other = (await found(elastic, Wanted("7", cluster="snel"))).tried[0]
    later = (await found(elastic, Wanted("7", submitted_at=Nanos(SUBMITTED + 86_400 * 40 * SECOND)))).tried[0]
    assert nothing.outcome is Outcome.NOT_THERE
    assert (other.outcome, "huppel" in other.note) == (Outcome.OTHER_CLUSTER, True)
    assert (later.outcome, "another job" in later.note) == (Outcome.NOT_THERE, True)
    with pytest.raises(SourceMissing, match="no such index"):
        await found(elastic, Wanted("7"), "other")


async def test_a_busy_server_is_asked_again_and_then_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    elastic = StrictElastic(BY_ID)
    elastic.busy = 3
    assert (await found(elastic, Wanted("7"))).script is not None
    assert len(elastic.sent) == 4
    elastic.busy = 100
    with pytest.raises(SourceUnreachable, match="too many requests"):
        await found(elastic, Wanted("7"))
    assert len(elastic.sent) == 4 + 5


async def walked(elastic: StrictElastic, span: ScriptPeriod) -> list[Walked]:
    async with aclosing(archive_of(elastic)) as archive:
        return [one async for one in archive.walk(span, lambda where: None)]


async def test_walking_goes_through_every_page_of_both_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.backends.elastic.scripts.PAGE", 5)
    elastic = StrictElastic(BY_ID | UNDER_JOBINFO | {"odd": {"script": 7}})
    every = await walked(elastic, ScriptPeriod())
    later = await walked(elastic, ScriptPeriod(since=Nanos(SUBMITTED + 3600 * SECOND)))
    assert sorted(one.script.number for one in every if one.script) == sorted(2 * JOBS)
    assert [one.unreadable for one in every if one.unreadable]
    assert not later
