"""What raises for one row of an answer costs that row; `test_contract.py` tries what each source tells."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from jobtui.backends import engine, loki
from jobtui.backends.balsam import records as balsam_rows
from jobtui.backends.balsam.poll import Questions
from jobtui.backends.elastic import source as elastic_rows
from jobtui.backends.registry import build
from jobtui.backends.slurm.client import CommandAnswer
from jobtui.backends.slurm.records import ClusterJobs
from jobtui.backends.traces import tempo
from jobtui.formats import spans
from jobtui.formats.otlp_protobuf import read_telemetry
from jobtui.model.health import Faults
from jobtui.model.specs import SourceSpec
from jobtui.model.traces import TraceSearch
from tests.conftest import NOW
from tests.fakes import SECRET, fail
from tests.fuzz.targets import TARGETS, WAITING
from tests.rows import FIXTURES


def answers_read(name: str) -> Callable[[], object]:
    return lambda: [TARGETS[name].read(data) for data in TARGETS[name].pieces]


def traces_read() -> object:
    paths = (FIXTURES / "tracing" / name for name in ("job-good.otlp.json", "job-fail.jaeger.json"))
    return [read_telemetry(path.read_bytes(), "a").skipped for path in paths]


def rows_read_singly() -> object:
    return balsam_rows.decode_page(balsam_rows.AppRow, b'{"count": 1, "results": [{"id": 2}]}', "a").skips[0]


def rows_asked_for() -> object:
    asked: Any = SimpleNamespace(_lost=[], _client=SimpleNamespace(name="a"))
    return [*Questions._each(asked, [SimpleNamespace(id=1)], fail)], asked._lost[0]


def queue_taken() -> object:
    told = ClusterJobs("a", "slurm").take_queue(CommandAnswer(f"{WAITING[0]}|\n".encode(), "|"), NOW)
    return told.skipped[0]


def tempo_listed() -> object:
    async def answer(*asked: object) -> object:
        return {"traces": [{}]}

    source: Any = build(SourceSpec("tempo", "http://a.test"))
    source._ask_within = answer
    return asyncio.run(source.search(TraceSearch())).notes[0]


ROWS: dict[str, tuple[object, str, Callable[[], object]]] = {
    "Balsam, one by one": (balsam_rows, "partial", rows_read_singly),
    "Balsam, what was asked for": (balsam_rows, "__doc__", rows_asked_for),
    "a hit of Elasticsearch": (elastic_rows, "row_of", answers_read("elastic")),
    "a row as an entry": (engine, "entry_of_export", answers_read("elastic")),
    "a line of Loki": (loki, "_row_of", answers_read("loki")),
    "a job of Slurm": (ClusterJobs, "_job", queue_taken),
    "a trace that Tempo lists": (tempo, "_summary", tempo_listed),
    "a span": (spans, "_span", traces_read),
    "a resource": (spans, "attributes_of", traces_read),
    "an export": (spans, "read_otlp", traces_read),
    "a span of Jaeger": (spans, "_jaeger_span", traces_read),
    "a process of Jaeger": (spans, "_jaeger_resource", traces_read),
}
"""What is made to raise, and what reads rows all the same."""


@pytest.mark.parametrize("row", ROWS)
def test_an_exception_costs_its_row(
    row: str, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    owner, name, read = ROWS[row]
    monkeypatch.setattr(owner, name, (lambda *given, **named: fail) if name == "partial" else fail)
    said = str(read())
    (fault,) = {fault.words for fault in expected_faults.all()}
    assert "(reading a record)" in fault
    assert SECRET not in said
