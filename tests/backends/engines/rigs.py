"""The contract's rigs for engines: a strict stand-in each, with what shippers write to them."""

import gzip
import io
import tarfile
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx

from jobtui.backends import fetchlog
from jobtui.backends.base import Batch, PolledSource, Source, skipping
from jobtui.backends.elastic import jobs
from jobtui.backends.elastic.client import ElasticClient
from jobtui.backends.elastic.source import ElasticEngine, presets
from jobtui.backends.engine import Doubts, EngineJournal
from jobtui.backends.fetchlog import FetchLog
from jobtui.backends.journal.source import Journal
from jobtui.backends.loki import LokiEngine
from jobtui.backends.loki import parse as parse_loki
from jobtui.model.clock import SECOND, FixedClock, Nanos, to_rfc3339
from jobtui.model.health import Skip
from jobtui.model.job_reader import RunListing, Unreadable
from jobtui.model.logs import LogRecord
from tests.backends.archive.elastic_server import StrictElastic
from tests.backends.engines.loki_server import StrictLoki
from tests.backends.journal.rigs import DROPPED, LINE, UNIT, all_of, messages
from tests.backends.rigs import HttpRig
from tests.condor import JOB
from tests.conftest import NOW
from tests.loopback import Answering, carried, response, timed
from tests.rows import ROWS

T0 = Nanos(NOW - 600 * SECOND)
URL = "http://elastic.test/logs"
LOKI_URL = "http://loki.test"


async def forward(reader: EngineJournal, most: int) -> list[str]:
    return messages(await all_of(reader, most=most))


async def backward(reader: EngineJournal, most: int) -> list[str]:
    return messages(await all_of(reader, most=most, back=True))


def at_second(number: float) -> Nanos:
    return Nanos(T0 + round(number * SECOND))


def journald_document(number: float, message: str, **more: Any) -> dict[str, Any]:
    """An entry as filebeat's input journald writes it."""
    at, created = (to_rfc3339(at_second(number + late)) for late in (0, 1))
    own = {"@timestamp": at, "message": message, "event": {"created": created}}
    return {**ROWS["documents of journald"][0], **own, **more}


def ended_job(number: int, **more: Any) -> dict[str, Any]:
    """A job as Slurm's plugin jobcomp/elasticsearch writes it."""
    at = to_rfc3339(at_second(number)).removesuffix("Z")
    times = dict.fromkeys(("@start", "@end", "@submit", "@eligible"), at)
    return {**ROWS["records of jobcomp"][0], **times, "jobid": number, **more}


def elastic_journal(elastic: StrictElastic, answer: Answering | None = None, site: str = "") -> Journal:
    doubts = Doubts()

    def engine() -> ElasticEngine:
        client = carried(ElasticClient(f"http://elastic.test{elastic.base}"), answer or elastic.answer)
        return timed(ElasticEngine(client, presets()["journald"], doubts), FixedClock(NOW))

    kept = Journal(URL, lambda: EngineJournal(engine), since=Nanos(1), kind="elastic_logs", site=site)
    return timed(kept, FixedClock(NOW))


class ElasticRig(HttpRig):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.elastic = self.server = StrictElastic({}, index="logs", keywords=True)

    def _put(self, document: dict[str, Any]) -> None:
        self._written += 1
        self.elastic.documents[f"d{self._written}"] = document


class ElasticLogsRig(ElasticRig):
    def source(self) -> Source:
        return elastic_journal(self.elastic, self.answer)

    def add(self) -> str:
        self._put(journald_document(self._written, LINE.format(self._written)))
        return f"api_run{self._written - 1}"

    def tear(self) -> None:
        unit, identifier = {"unit": "systemd-journald.service"}, {"identifier": "systemd-journald"}
        self._put(journald_document(self._written, DROPPED, systemd=unit, syslog=identifier))


class ElasticJobsRig(ElasticRig):
    makes = (jobs, "accounted_job")
    label = ""

    def source(self) -> Source:
        client = carried(ElasticClient(URL), self.answer)
        engine = ElasticEngine(client, presets()["jobcomp"], Doubts())
        return timed(
            jobs.ElasticJobs(engine, presets()["jobcomp"], T0, "elastic_jobs", self.label), FixedClock(NOW)
        )

    def add(self) -> str:
        self._put(ended_job(self._written + 1))
        return f"slurm/{self._written}"

    def tear(self) -> None:
        self._put(ended_job(self._written + 1, jobid="none"))

    def keys(self, batch: Batch) -> list[str]:
        return [job.id for job in batch.jobs]


def journal_line(number: float, message: str, **more: str) -> tuple[int, dict[str, str], str]:
    """An entry as promtail writes it, with the usual labels."""
    labels = {
        "job": "systemd-journal", "unit": UNIT, "syslog_identifier": "sirepo_job_supervisor",
        "hostname": "v3", "transport": "journal",
    }  # fmt: skip
    return at_second(number), labels | more, message


def loki_journal(loki: StrictLoki, options: str = "", answer: Answering | None = None) -> Journal:
    doubts, clock = Doubts(), FixedClock(NOW)
    spec = parse_loki(f"{LOKI_URL}?{options}" if options else LOKI_URL)

    def engine() -> LokiEngine:
        return carried(timed(LokiEngine(spec, doubts), clock), answer or loki.answer)

    return timed(Journal(spec.target, lambda: EngineJournal(engine), since=T0, kind="loki"), clock)


class LokiRig(HttpRig):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.loki = self.server = StrictLoki([])

    def source(self) -> Source:
        return loki_journal(self.loki, answer=self.answer)

    def add(self) -> str:
        self._written += 1
        self.loki.put(journal_line(self._written, LINE.format(self._written)))
        return f"api_run{self._written}"

    def tear(self) -> None:
        self._written += 1
        more = {"unit": "systemd-journald.service", "syslog_identifier": "systemd-journald"}
        self.loki.put(journal_line(self._written, DROPPED, **more))


OUTPUT = 'setup done\nTraceback (most recent call last):\n  File "a.py", line 1\nValueError: no such beam\n'


def archive(files: dict[str, str], **more: str) -> bytes:
    """An archive with these files, and with links, as fetchlog sends it."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(text.encode()), 1_795_207_000
            tar.addfile(member, io.BytesIO(text.encode()))
        for name, target in more.items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            tar.addfile(link)
    return data.getvalue()


FILES = archive({f"{JOB}/beam.out": OUTPUT, f"{JOB}/beam.err": "x" * 300_000}, passwd="/etc/passwd")


class FilesOfJob(PolledSource):
    """The files of one job that a server keeps, as records: those that the look before did not show."""

    kind = "fetchlog"
    _shown: frozenset[str] = frozenset()
    _left_out = 0

    def __init__(self, server: FetchLog) -> None:
        super().__init__(server.name, server)
        self._server = server

    async def read(self, *, begins: bool) -> Batch:
        await self._server.poll(None)
        path, listing = f"{self.name}/job/{JOB}", RunListing("", ())
        with suppress(Unreadable):  # it has no archive yet
            listing = await self._server.list_files(path)
        before, self._shown = self._shown, frozenset(file.name for file in listing.files)
        new = self._shown - (frozenset() if begins else before)
        parts = [await self._server.read_file(path, name, tail=True) for name in new]
        records = tuple(LogRecord("", 0, 0, None, None, "", {}, part.text) for part in parts)
        skips = [Skip(path, listing.note)] * max(0, listing.left_out - self._left_out)
        self._left_out = listing.left_out
        return skipping(Batch(records=records), skips)


class FetchLogRig(HttpRig):
    makes = (fetchlog, "RunFile")
    _is_torn = False

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._files: dict[str, str] = {}
        self.server = SimpleNamespace(answer=self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if not (request.url.path.endswith(".tar.gz") and (self._files or self._is_torn)):
            return response(404)
        whole = gzip.decompress(archive(self._files))
        return response(200, gzip.compress(whole[: 1_024 * len(self._files)] if self._is_torn else whole))

    def source(self) -> Source:
        server = carried(FetchLog("http://landscape.test"), self.answer)
        server.good_for_s = 0.0
        return FilesOfJob(server)

    def add(self) -> str:
        self._written += 1
        self._files[f"{self._written}.out"] = key = f"o=ab{self._written:02}"
        return key

    def tear(self) -> None:
        self._is_torn = True


ENGINE_RIGS: tuple[type[HttpRig], ...] = (ElasticLogsRig, ElasticJobsRig, LokiRig, FetchLogRig)
