"""Captured files of HTCondor jobs, and event logs made by hand."""

from collections.abc import Iterable
from pathlib import Path

from jobtui.formats.condor_events import EventReader, form_of
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.logs import CondorFact
from jobtui.store.condor import CondorChanges, CondorStore
from tests.tracing import CAPTURES

CONDOR = CAPTURES / "condor"
NEWEST = Nanos(1_795_300_000 * SECOND)
SCHEDD = "jobsub02.fnal.gov"
JOB = f"7.0@{SCHEDD}"
SUBMIT_HOST = f"<10.0.0.1:9618?addrs=10.0.0.1-9618&alias={SCHEDD}&noUDP&sock=schedd_1>"


def facts_in(path: Path) -> list[CondorFact]:
    return facts_of(path.read_bytes(), str(path))


def facts_of(data: bytes, source: str = "a.log", newest: Nanos = NEWEST) -> list[CondorFact]:
    """What bytes say, as a source would read them."""
    form = form_of(data)
    return [] if form is None else EventReader(source).read(form, data, 0, 1, newest, to_end=True).facts


def event(number: int, time: str, text: str = "", *body: str, job: str = "007.000.000") -> str:
    lines = "".join(f"\t{line}\n" for line in body)
    return f"{number:03} ({job}) {time} {text}\n{lines}...\n"


def submitted(time: str = "2026-11-20 10:00:00Z", job: str = "007.000.000") -> str:
    return event(0, time, f"Job submitted from host: {SUBMIT_HOST}", job=job)


def executing(time: str = "2026-11-20 10:01:00Z") -> str:
    return event(1, time, "Job executing on host: <10.0.0.2:9618?alias=w1.example.org&x=1>")


def book_of(*groups: Iterable[CondorFact]) -> tuple[CondorStore, CondorChanges]:
    book, news = CondorStore(), CondorChanges()
    for facts in groups:
        news = book.add(facts)
    return book, news
