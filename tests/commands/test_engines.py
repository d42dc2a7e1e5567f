"""Commands on logs out of engines: a capture of a real Sirepo, kept as shippers of journals send it."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from jobtui.logs.catalog import SessionLogs
from jobtui.model.clock import Nanos, latest, time_of_iso, to_rfc3339
from jobtui.model.pages import Query
from tests.backends.archive.elastic_server import StrictElastic
from tests.backends.engines.loki_server import StrictLoki
from tests.backends.engines.rigs import elastic_journal, journal_line, journald_document
from tests.backends.journal.source_rig import UNIT
from tests.commands.running import AT, CAPTURES, Runner
from tests.loopback import served
from tests.polling import polled

FAILED = "DJouDZ9T-4F4EUZjI-heightWeightReport"
LINE = re.compile(r"([A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d) +(\d+)")


def entries() -> Iterator[tuple[Nanos, int, str]]:
    """The lines of the supervisor's log with their times and processes, those of one record as one."""
    begun: tuple[Nanos, int, str] | None = None
    for text in (CAPTURES / "local" / "supervisor.log").read_text().splitlines():
        found = LINE.match(text)
        at = latest(found[1], time_of_iso(AT) or Nanos(0)) if found else None
        if found is None or at is None:
            begun = begun and (begun[0], begun[1], f"{begun[2]}\n{text}")
            continue
        if begun is not None:
            yield begun
        begun = at, int(found[2]), text
    if begun is not None:
        yield begun


@contextmanager
def elastic() -> Iterator[tuple[str, str]]:
    documents: dict[str, dict[str, Any]] = {}
    for number, (at, pid, text) in enumerate(entries()):
        one = {"@timestamp": to_rfc3339(at), "process": {"pid": pid}, "journald": {"pid": pid}}
        documents[f"d{number:06}"] = journald_document(0, text, **one)
    with served(StrictElastic(documents, index="logs", keywords=True)) as url:
        yield "--elastic-logs", url


@contextmanager
def loki() -> Iterator[tuple[str, str]]:
    lines = [
        (at + number, journal_line(0, "", pid=str(pid))[1], text)
        for number, (at, pid, text) in enumerate(entries())
    ]
    with served(StrictLoki(lines)) as url:
        yield "--loki", url


@pytest.mark.parametrize("engine", [elastic, loki])
def test_a_job_is_explained_as_out_of_the_log_file(engine: Callable[[], Any], run: Runner) -> None:
    ask = partial(run, "explain", FAILED, "--json", "--at", AT, "--srdb", CAPTURES / "local")
    of_file = ask("--log", f"supervisor={CAPTURES / 'local' / 'supervisor.log'}").json
    with engine() as flags:
        told = ask(*flags).json
        logs = run("logs", FAILED, "--json", "--at", AT, "--srdb", CAPTURES / "local", *flags).json["lines"]
        doctor = run("doctor", "--json", "--at", AT, *flags).json["checks"]
    assert (told["verdict"], told["confidence"]) == (of_file["verdict"], of_file["confidence"])
    same = [[one["text"] for one in document["evidence"]] for document in (told, of_file)]
    assert same[0] == same[1]
    assert len(logs) > 5
    assert [(one["state"], one["unknown_share"]) for one in doctor] == [("ok", 0.0)]


async def test_its_streams_are_logs_to_be_paged_and_searched() -> None:
    documents = {f"d{n:04}": journald_document(n / 10, f"line {n} of many") for n in range(500)}
    source = elastic_journal(StrictElastic(documents, index="logs", keywords=True))
    await polled(source)
    book = SessionLogs(lambda: [source])
    assert book.names() == (f"{UNIT.removesuffix('.service')}@v3",)
    log = book.open(book.names()[0])
    end = (await log.look()).end
    page = await log.before(end, 20)
    assert [line.text for line in page.lines] == [f"line {n} of many" for n in range(480, 500)]
    search = log.search(Query("line 77 ", False, False), end)
    await search.run()
    assert len(search.hits) == 1
    await log.aclose()
    await source.aclose()
