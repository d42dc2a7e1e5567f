"""Everything that reads bytes from outside, each as a function of bytes that raises nothing.

What a reader says of bad input in its own way (`raises`) is fine; anything else that is raised is a defect,
and so is a time that grows faster than the input. `seeds` are files as real systems wrote them.
"""

import asyncio
import gzip
import json
import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import httpx
import msgspec

from jobtui.analysis.filter import AGENT_FIELDS, complete, parse
from jobtui.analysis.filter_syntax import FilterError
from jobtui.analysis.find import references
from jobtui.analysis.times import parse_duration
from jobtui.analysis.traces.filters import SPAN_FIELDS
from jobtui.backends.balsam import records as balsam
from jobtui.backends.balsam.login import read_login
from jobtui.backends.elastic.client import ElasticClient
from jobtui.backends.elastic.jobs import DocumentReader
from jobtui.backends.elastic.source import ElasticEngine, presets
from jobtui.backends.engine import Doubts, Engine, EngineJournal, RowQuery
from jobtui.backends.fetchlog import FetchLog
from jobtui.backends.loki import LokiEngine
from jobtui.backends.loki import parse as parse_loki
from jobtui.backends.sirepo.records import NotARecord, read_detail, read_job
from jobtui.backends.slurm.detail import Queue, _explain, licenses_of, others_lost, pending_of, question_of
from jobtui.config import ConfigError
from jobtui.config.file import parse_file
from jobtui.config.settings import resolved
from jobtui.formats import condor_events, slurm, slurm_nodes
from jobtui.formats.agent_copies import CopyName, read_copy, read_name
from jobtui.formats.job_output import read_date
from jobtui.formats.journal_export import ExportParser, entry_of_export
from jobtui.formats.otlp_protobuf import Encoding, Signal, read_export, read_telemetry
from jobtui.formats.parser import LogParser, SiteLogParser, survey
from jobtui.formats.sarchive import parse_environment, parse_script, parse_wanted, torque_tasks
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.health import SourceError
from jobtui.model.ids import JobId, find_trace
from jobtui.model.job_reader import Unreadable, sbatch_status
from jobtui.model.journal import Tail
from jobtui.model.secrets import mask_text, masked_lines
from jobtui.recording.database import Damaged, Item, Recording, unpacked
from jobtui.render.text import fit, safe, show, width
from jobtui.views import Views, ViewsError
from tests.backends.engines.rigs import OUTPUT, archive, ended_job, journald_document
from tests.loopback import Answering, carried, timed
from tests.rows import FIXTURES, table

NOW = Nanos(1_795_206_870 * SECOND)
JID = JobId("EPRSqtUW-IVh7w74d-heightWeightReport")
ROWS = (balsam.AppRow, balsam.BatchJobRow, balsam.EventRow, balsam.JobRow, balsam.SessionRow, balsam.SiteRow)


class Target(NamedTuple):
    """One reader. `raises` is what it says of bad input; `pieces` are texts that matter to it."""

    read: Callable[[bytes], object]
    seeds: tuple[str, ...] = ()
    raises: tuple[type[Exception], ...] = ()
    pieces: tuple[bytes, ...] = ()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _log(data: bytes) -> None:
    parser = LogParser("a.log")
    for record in parser.parse(data, 0, 1, NOW).records:
        assert record.text
    parser.time_of(data[:40], NOW)


def _survey(data: bytes) -> None:
    found = survey(data.splitlines())
    assert found.unknown <= found.records <= found.lines


def _journal(data: bytes) -> None:
    """Whole, and cut where it hurts: the entries are the same."""
    whole = ExportParser().feed(data)
    parser, cut = ExportParser(), len(data) // 2
    assert [*parser.feed(data[:cut]), *parser.feed(data[cut:])] == whole
    for raw in whole:
        entry_of_export(raw)


def _record(data: bytes) -> None:
    job, _ = read_job(data, JID, 5, "db")
    with suppress(NotARecord):
        detail = read_detail(data, JID, 5, "db", "a.json")
        assert detail.job == job
        assert msgspec.json.encode(detail)


def _balsam(data: bytes) -> None:
    for kind in ROWS:
        with suppress(ValueError):
            for row in balsam.decode_page(kind, data, "a").rows:
                if isinstance(row, balsam.EventRow):
                    balsam.change_of(row, "b", "balsam")
    balsam.time_of(_text(data[:60]))


def _export(data: bytes, encoding: Encoding) -> None:
    with suppress(ValueError):
        read_export(data, Signal.LOGS, encoding, "a")
    read_export(data, Signal.TRACES, encoding, "a")


def _condor(data: bytes) -> None:
    for form in {
        condor_events.form_of(data) or condor_events.Form.SUBMIT,
        condor_events.Form.CLASSIC,
        condor_events.Form.JSON,
        condor_events.Form.XML,
        condor_events.Form.ADS,
        condor_events.Form.MACHINES,
        condor_events.Form.OUTPUT,
    }:
        for to_end in (False, True):
            assert (
                0
                <= condor_events.EventReader("a").read(form, data, 0, 1, NOW, to_end=to_end).taken
                <= len(data)
            )


def _ads(data: bytes) -> None:
    text = _text(data)
    condor_events.environment(text)
    condor_events.literals(text)
    condor_events.attribute(text)
    condor_events.trace_of({"Env": text, "TraceParent": text})


def _slurm_rows(data: bytes) -> None:
    fields = data.partition(b"\n")[0].decode("utf-8", "replace").split("|")
    for names in (tuple(fields), tuple(slurm.SQUEUE), tuple(slurm.SACCT)):
        rows = slurm.rows_of(data, "|", names)
        slurm.jobs_with_steps(rows)
        for row in rows:
            slurm.queued_job(row)
            slurm.accounted_job(row)


def _slurm_nodes(data: bytes) -> None:
    """What scontrol and sdiag print of a cluster; a request is read out of the same lines."""
    text = _text(data)
    slurm_nodes.partitions_of(data)
    slurm_nodes.controller_of(data)
    nodes = slurm_nodes.nodes_of(data)
    for line in text.split("\n")[:20]:
        slurm_nodes.tally_of(nodes, slurm_nodes.wants_of(slurm.fields_of_line(line)))
        assert len(slurm_nodes.expanded(line, 100)) <= 100
        slurm_nodes.gres_of(line)
        slurm_nodes.has_features(line, line)


def _slurm_pending(data: bytes) -> None:
    """Why jobs wait: rows of squeue, then what scontrol answers, whatever it was asked."""
    text, _, printed = data.partition(b"\n\n")
    rows = slurm.rows_of(text, "|", tuple(slurm.SQUEUE))[:20]
    jobs = {job.id: job for row in rows if (job := slurm.queued_job(row)) is not None}
    queue = Queue(jobs, dict.fromkeys(jobs, 1))
    said = slurm.fields_of_line(_text(printed))
    for key, job in jobs.items():
        question_of(job, said)
        licenses_of(job.licenses)
        others_lost(job, jobs.values())
        _explain(pending_of(key, job, queue), job, said, queue, printed)


def _answering(data: bytes) -> Answering:
    return lambda request: httpx.Response(200, content=data, headers=JSON)


JSON = {"content-type": "application/json"}


async def _page_of(engine: Engine) -> None:
    await EngineJournal(lambda: engine).backward(Tail(), (), 5)
    await engine.values("_HOSTNAME")
    await engine.aclose()


async def _elastic(data: bytes) -> None:
    for preset in presets().values():
        client = carried(ElasticClient("http://a.test/index"), _answering(data))
        engine = ElasticEngine(client, preset, Doubts())
        rows = await engine.rows(RowQuery(None, None, (), 5, back=False))
        DocumentReader("a", preset).read(rows.rows)
        await _page_of(engine)


async def _loki(data: bytes) -> None:
    for preset in ("journald", "journald_json"):
        spec = parse_loki(f"http://a.test?preset={preset}")
        await _page_of(carried(timed(LokiEngine(spec, Doubts()), FixedClock(NOW)), _answering(data)))


async def _fetchlog(data: bytes) -> None:
    log = carried(FetchLog("http://a.test"), _answering(data))
    for file in (await log.list_files("http://a.test/job/7.0@a")).files:
        await log.read_file("http://a.test/job/7.0@a", file.name, tail=True)
    await log.aclose()


def _asked(ask: Callable[[bytes], Coroutine[None, None, None]]) -> Callable[[bytes], None]:
    return lambda data: asyncio.run(ask(data))


def _names(data: bytes) -> None:
    text = _text(data)
    read_name(text)
    parse_wanted(text)
    list(torque_tasks(text))
    parse_duration(text)
    read_date(text)
    find_trace(text)
    list(references(text))


def _document(data: bytes) -> None:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    parse_script(document, "a")
    sbatch_status(document)
    with suppress(ValueError):
        positions = [line.position for line in read_copy(CopyName(NOW, 0, "b"), document).lines]
        assert positions == sorted(set(positions))


def _entry(data: bytes) -> None:
    for what in Item:
        with suppress(Damaged):
            unpacked(what, data)


def _in_file(read: Callable[[Path], object], data: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        (path := Path(place, "f")).write_bytes(data)
        path.chmod(0o600)
        read(path)


def _recording(path: Path) -> None:
    recording = Recording(path)
    try:
        recording.delivered(1, 0, NOW, 10)
    finally:
        recording.close()


def _filter(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    complete(text, len(text) // 2)
    for parse_other in (AGENT_FIELDS.parse, SPAN_FIELDS.parse):
        with suppress(FilterError):
            parse_other(text)
    parse(text)


def _views(path: Path) -> None:
    views = Views(path, "p")
    for name in views.names():
        views.get(name)


def _masking(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    masked = mask_text(text)
    assert mask_text(masked) == masked, "masked twice it is another text"
    list(masked_lines(text.splitlines()))


def _shown(data: bytes) -> None:
    """Nothing that could drive a terminal gets through."""
    for text in (_text(data), data.decode("latin-1"), data.decode("utf-16", "replace")):
        shown = show(text)
        assert shown.isprintable(), f"{shown!r} has what is not printable"
        shown.encode()
        assert safe(shown) == shown
        assert width(fit(text, 20)) == 20


READS: Mapping[str, Mapping[str, list[str]]] = table("fuzz")["reads"]
"""Of each reader the files that it is tried with, and pieces, where those are texts."""
TOLD = json.loads((FIXTURES / "slurm" / "waiting.json").read_text())
SCONTROL = (
    TOLD["sdiag"],
    *(TOLD["scontrol"][name] for name in ("node", "partition", "licenses", "later", "13")),
)
WAITING = ["|".join(row[field] for field in slurm.SQUEUE) for row in TOLD["squeue"][::9]]
EVENT = "001 (7.0.0) 2026-11-20 10:01:00Z Job executing on host: <10.0.0.2:9618>\n...\n"
BODIES = (journald_document(1, "text"), ended_job(7), {"message": EVENT}, {"ClusterId": 7, "JobStatus": 2})
HITS = {
    "hits": {"hits": [{"_id": "a", "sort": [1_795_206_870_000], "_source": one} for one in BODIES]},
    "aggregations": {"0": {"buckets": [{"key": "v3", "doc_count": 2}]}}, "timed_out": False,
}  # fmt: skip
STREAM = {"stream": {"unit": "a"}, "values": [["1795206870000000000", "text", {"parsed": {"a": "b"}}]]}
STREAMS = {"status": "success", "data": {"resultType": "streams", "result": [STREAM]}}
MADE: Mapping[str, Sequence[bytes]] = {
    "slurm-nodes": [text.encode() for text in SCONTROL],
    "slurm-pending": [f"{row}\n\n{text}".encode() for row in WAITING for text in SCONTROL],
    "elastic": [json.dumps(HITS).encode()],
    "loki": [json.dumps(STREAMS).encode()],
    "fetchlog": [gzip.decompress(archive({"7.0@a/a.out": OUTPUT}))],
    "shown": [b"\x1b[31m", b"\x9b", "\u202e".encode(), "\u0301".encode(), "表".encode(), b"\xed\xa0\x80"],
}
"""Other pieces."""
READERS: Mapping[str, tuple[Callable[[bytes], object], *tuple[type[Exception], ...]]] = {
    "log": (_log,),
    "survey": (_survey,),
    "site-log": (lambda data: SiteLogParser("a", "balsam").parse(data, 0, 1, NOW),),
    "journal-export": (_journal,),
    "sirepo-record": (_record,),
    "balsam-rows": (_balsam,),
    "balsam-login": (partial(_in_file, lambda path: read_login(str(path))), SourceError),
    "traces": (lambda data: read_telemetry(data, "a"),),
    **{f"otlp-{one.name.lower()}": (partial(_export, encoding=one), ValueError) for one in Encoding},
    "condor": (_condor,),
    "class-ads": (_ads,),
    "slurm-rows": (_slurm_rows,),
    "slurm-nodes": (_slurm_nodes,),
    "slurm-pending": (_slurm_pending,),
    "elastic": (_asked(_elastic), SourceError),
    "loki": (_asked(_loki), SourceError),
    "fetchlog": (_asked(_fetchlog), SourceError, Unreadable),
    "slurm-json": (slurm.ends_in_json, ValueError),
    "slurm-scontrol": (lambda data: list(slurm.shown_jobs(_text(data))),),
    "names": (_names,),
    "job-environment": (parse_environment,),
    "documents": (_document,),
    "recording-entry": (_entry,),
    "recording": (partial(_in_file, _recording), SourceError),
    "config": (lambda data: resolved(parse_file("c", data), {}, {}), ConfigError),
    "views": (partial(_in_file, _views), ViewsError),
    "filter": (_filter, FilterError),
    "masking": (_masking,),
    "shown": (_shown,),
}
"""Each, and what it may raise."""


def _target(name: str) -> Target:
    (read, *raises), told = READERS[name], READS.get(name, {})
    pieces = [piece.encode() for piece in told.get("pieces", ())]
    return Target(read, tuple(told.get("files", ())), tuple(raises), tuple(MADE.get(name, pieces)))


TARGETS: Mapping[str, Target] = {name: _target(name) for name in READERS}
"""By their names, which are also the directories of the corpus."""
