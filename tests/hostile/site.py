"""A Sirepo installation in which everything that can be is hostile: records, logs, run directories, names.

One job for each text, which is in each free field of its record, each line of its ops, and in its files.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from string import Template

from jobtui.cli import main
from jobtui.memory.database import Memory
from jobtui.model.ids import JobId
from tests.analysis.lines import FULL
from tests.hostile.texts import TEXTS
from tests.memory.runs import a_run, written
from tests.rows import FIXTURES

UID = "EPRSqtUW"
APP, MODEL = "myapp", "heightWeightReport"
DIRECTORY = "db [nope]\x1b[2J\x1b]52;c;aGk=\x07\u202e表\n\udcff"
LOG_NAME = "log [bold]\x1b[31m\u2066\r\udc80.log"
LONGEST_NAME = 60
"""Characters of a text in the name of a file; each may take four bytes of 255."""
AGENT = f"LocalDriver(a=t7K7 k=sequential u={UID[:4]} [])"
LONGEST_ATTRIBUTE = 1_000
"""Characters of a text in an attribute of a span, of which there are dozens; its name has all of them."""
SECOND_OF_DAY = 20 * 3600 + 34 * 60
OP_LINES = [*map(Template, (FIXTURES / "hostile_lines.txt").read_text().splitlines())]


class HostileSite:
    def __init__(self, place: Path) -> None:
        self.root = place / DIRECTORY
        self.supervisor_log = place / f"supervisor {LOG_NAME}"
        self.server_log = place / f"server {LOG_NAME}"
        self.jobs = {name: job_of(number) for number, name in enumerate(TEXTS)}
        self.spans = place / f"spans {LOG_NAME}"
        self.spans.write_text(
            "\n".join(json.dumps(spans_of(*one)) for one in enumerate(TEXTS.values(), start=1))
        )
        self.archive = place / f"archive {DIRECTORY}"
        """The script of each text's job, by number from 1 on."""
        self.bundle, self.recording = place / "job.jobtui", place / "recording"
        self._write_archive()
        self._seconds = 0
        self._write_records()
        self._write_run_dir(self.run_dir("everything"))
        for path, lines in (
            (self.supervisor_log, self._supervisor_lines()),
            (self.server_log, self._server_lines()),
        ):
            path.write_bytes(b"".join(map(encoded, lines)) + b"\xff\xfe\x00 not of any encoding \x80\n")

    @property
    def flags(self) -> list[str]:
        logs = (f"supervisor={self.supervisor_log}", f"server={self.server_log}")
        return [
            *self.trace_flags,
            "--srdb",
            str(self.root),
            *(word for log in logs for word in ("--log", log)),
        ]

    @property
    def trace_flags(self) -> list[str]:
        return ["--trace-file", str(self.spans)]

    def run_dir(self, name: str) -> Path:
        _, simulation, model = self.jobs[name].split("-")
        return self.root / "user" / UID / APP / simulation / model

    def remember(self) -> None:
        """Make a memory of this user: good runs, then failures with each text in every field."""
        begin, good = 14 * 86_400, [a_run(number * 800) for number in range(1_500)]
        bad = [
            a_run(begin + 100 * at + number, text or "x", user=text, host=text, app=text, model=text)
            for at, text in enumerate(TEXTS.values())
            for number in range(30)
        ]
        written(Memory().path, *good, *bad)

    def made_bundle(self) -> Path:
        if not self.bundle.exists():
            main([*self.flags, "bundle", self.jobs["everything"], f"--output={self.bundle}"])
        return self.bundle

    def _write_archive(self) -> None:
        self.archive.mkdir()
        for number, text in enumerate(TEXTS.values(), start=1):
            (self.archive / f"job.{number}_script").write_bytes(b"#!/bin/sh\n#SBATCH -o " + encoded(text))
            variables = b"".join(encoded(f"{name}={text}") + b"\0" for name in ("A", "PASSWORD", text))
            (self.archive / f"job.{number}_environment").write_bytes(variables)

    def _write_records(self) -> None:
        (place := self.root / "supervisor-job").mkdir(parents=True)
        for name, text in TEXTS.items():
            path = place / f"{self.jobs[name]}.json"
            path.write_text(json.dumps(record(self.jobs[name], text)))
        whole = json.dumps(record(self.jobs["csi"], "x"))
        (place / f"{DIRECTORY}.json").write_text(whole)
        (place / f"{UID}-tornTorn-{MODEL}.json").write_text(whole[:200])
        (place / f"{UID}-badBytes-{MODEL}.json").write_bytes(b'{"status": "\xff\x1b[2J"}')
        odd = record(job_of(900), "x") | {"status": TEXTS["everything"], "computeJobQueued": TEXTS["csi"]}
        (place / f"{job_of(900)}.json").write_text(json.dumps(odd))

    def _write_run_dir(self, place: Path) -> None:
        place.mkdir(parents=True)
        for text in TEXTS.values():
            name = text.replace("/", "").replace("\0", "")[:LONGEST_NAME]
            if name.strip(". "):
                (place / os.fsdecode(encoded(name))).write_bytes(encoded(text))
        (place / "run.log").write_bytes(b"\n".join(map(encoded, TEXTS.values())))
        (place / "in.json").write_text(json.dumps(TEXTS))

    def _supervisor_lines(self) -> Iterator[str]:
        for number, (name, text) in enumerate(TEXTS.items()):
            for line in op_lines(self.jobs[name], f"/srv/sirepo/db/user/{UID}/{APP}", number, text):
                yield self._stamped(line)

    def _server_lines(self) -> Iterator[str]:
        self._seconds = 0
        for name, text in TEXTS.items():
            yield self._stamped(f"api=api_runSimulation runDir={self.run_dir(name)} {text}")
            yield self._stamped(text)

    def _stamped(self, words: str) -> str:
        self._seconds += 1
        minute, second = divmod(SECOND_OF_DAY // 60 * 60 + self._seconds, 60)
        return (
            f"Nov 20 {minute // 60:02}:{minute % 60:02}:{second:02} 30699     0 "
            f"sirepo/job_supervisor.py:1:f {words}\n"
        )


def job_of(number: int) -> JobId:
    return JobId(f"{UID}-{number:08d}-{MODEL}")


def trace_of(number: int) -> str:
    return f"{number:032x}"[::-1]


def spans_of(number: int, text: str) -> dict[str, object]:
    """Spans and a log record with a text wherever one can be: a root, two errors, one without its parent."""
    part, trace = text[:LONGEST_ATTRIBUTE], {"traceId": trace_of(number)}
    attributes = [
        {"key": part, "value": {"stringValue": part}},
        {"key": "password", "value": {"stringValue": part}},
        {"key": "args", "value": {"arrayValue": {"values": [{"stringValue": part}]}}},
        {"key": "exception.stacktrace", "value": {"stringValue": part * 2}},
    ]
    events = [{"timeUnixNano": 5, "name": name, "attributes": attributes} for name in (part, "exception")]
    span = {**trace, "name": text, "attributes": attributes, "events": events}
    failed = {**span, "status": {"code": 2, "message": text}}
    root, child, orphan = ("1" * 16, "2" * 16, "3" * 16)
    spans = [
        {**span, "spanId": root, "startTimeUnixNano": 1_795_206_900 * 10**9},
        {**failed, "spanId": child, "parentSpanId": root, "startTimeUnixNano": 7, "endTimeUnixNano": 9},
        {**failed, "spanId": orphan, "parentSpanId": "4" * 16, "endTimeUnixNano": (1 << 64) - 1},
    ]
    record = {**trace, "spanId": child, "severityText": text, "body": {"stringValue": text}}
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": text}}, *attributes]}
    return {
        "resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": text}, "spans": spans}]}],
        "resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": [record]}]}],
    }


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass" if "\ud800" in text else "surrogateescape")


def record(job: JobId, text: str) -> dict[str, object]:
    """A record of a job that failed, with the text wherever one can be."""
    at, short = 1_795_206_900, text[:150]
    past = {"status": "error", "error": text, "alert": text, "jobStatusMessage": text, "computeJobSerial": 5}
    return {
        "activePlan": short, "alert": text, "computeJid": job, "computeJobQueued": at, "computeJobSerial": at,
        "computeJobStart": at + 1, "computeModel": short or MODEL, "dbUpdateTime": at + 9.5,
        "driverDetails": {"type": short, "host": short}, "error": text or "failed",
        "history": [past | {"computeJobQueued": 5, "computeJobStart": 6, "lastUpdateTime": 7}] * 3,
        "jobStatusMessage": text, "lastUpdateTime": at + 9, "queueState": text, "simName": text,
        "simulationType": APP if text == TEXTS["everything"] else short, "status": "error", "uid": UID,
        "jobRunMode": short, "nextRequest": {text: {text: [text, 1, None]}},
    }  # fmt: skip


def op_lines(job: JobId, app_dir: str, number: int, text: str) -> list[str]:
    """What a supervisor and its agents write of a run, with the text in every place."""
    op = f"o{number:03d}"
    said = {
        "job": job, "op": op, "whole": op + FULL[4:], "agent": AGENT, "uid": UID, "app_dir": app_dir,
        "run_dir": "/".join([app_dir, *job.split("-")[1:]]), "text": text, "quoted": repr(text),
    }  # fmt: skip
    return [line.substitute(said) for line in OP_LINES]
