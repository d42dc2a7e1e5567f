"""Facts of HTCondor's jobs in whatever pieces they come: what is known in the end, what a step looks at."""

import asyncio
import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.backends.base import Batch
from jobtui.model.clock import FixedClock, Nanos
from jobtui.model.condor_facts import CondorFact
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job
from jobtui.store import condor_book, condor_due, condor_standing
from jobtui.store.condor_book import CondorBook, News
from jobtui.store.condor_times import Ordering, Placed
from jobtui.store.poller import Poller
from jobtui.store.store import Store
from tests.condor import SUBMIT_HOST, event, executing, facts_of, submitted
from tests.fakes import FakeCorrelation, ScriptedSource

_TIMES = st.sampled_from([f"2026-11-20 10:0{minute}:00{zone}" for minute in range(6) for zone in ("", "Z")])
_BODIES = st.sampled_from([
    (0, f"Job submitted from host: {SUBMIT_HOST}"), (1, "Job executing on host: <10.0.0.2:9618?alias=w1>"),
    (0, f"Job submitted from host: {SUBMIT_HOST.replace('jobsub02', 'jobsub03')}"),
    (4, "Job was evicted."), (5, "Job terminated.", "(1) Normal termination (return value 3)"),
    (5, "Job terminated.", "(1) Normal termination (return value 0)", "",
     "Job terminated of its own accord at 2026-11-20T15:04:00Z with exit-code 0."),
    (6, "Image size of job updated: 9", "7  -  MemoryUsage of job (MB)"),
    (6, "Image size of job updated: 11"),
    (12, "Job was held.", "no room"), (13, "Job was released."), (22, "Job disconnected"),
    (28, "Job ad information event triggered.", "Owner = \"me\"", "JobsubJobId = \"7.1@jobsub02.fnal.gov\""),
    (40, "Started transferring input files", "Transferring to host: <10.0.0.3:9618>"), (8, "a note"),
    (8, "a note", 'Owner = "you"'), (8, "a note", f'TraceParent = "00-{7:032x}-{7:016x}-01"'),
    (33, "Changing job attribute Owner from \"a\" to \"b\""), (9, "Job was aborted.", "via condor_rm"),
])  # fmt: skip
_NUMBERS = st.sampled_from(["007.000.000", "007.000.000", "007.001.000", "008.000.000"])
_EVENTS = st.builds(lambda body, at, job: event(body[0], at, *body[1:], job=job), _BODIES, _TIMES, _NUMBERS)
_ADS = st.builds(
    "ClusterId = 7\nProcId = 0\nJobStatus = {}\nQDate = 1795168800\n\n".format, st.integers(1, 5)
)
BEGIN = "Fri Nov 20 10:01:05 UTC 2026 7.0@jobsub02.fnal.gov BEGIN EXECUTION a.sh\n"
END = "Fri Nov 20 10:02:00 UTC 2026 a.sh COMPLETED with exit status 2\n"
_FILES = {"a.log": _EVENTS, "b.log": _EVENTS, "q.ad": _ADS, "j.out": st.sampled_from([BEGIN, END])}
_TOLD = st.one_of([st.tuples(st.just(name), texts) for name, texts in _FILES.items()])
_TEXTS = st.lists(_TOLD, min_size=6, max_size=40)
_SIZES = st.lists(st.integers(1, 9), max_size=40)


class Known:
    """The jobs that a book told, as a store keeps them."""

    def __init__(self, most: int = condor_book.MOST_FACTS) -> None:
        self.book = CondorBook(most)
        self.jobs: dict[JobId, Job] = {}

    def hear(self, news: News) -> None:
        self.jobs.update((job.id, job) for job in news.jobs)
        for gone in news.gone:
            self.jobs.pop(gone, None)

    def all(self) -> dict[str, object]:
        """All that can be asked of the book, and what it told."""
        book = self.book
        return {
            "jobs": self.jobs,
            "notice": book.notice,
            "traces": {name: book.traces_named_in(name) for name in _FILES},
            "told": {name: book.jobs_told_in(name) for name in _FILES},
            "details": {job_id: book.detail(job_id) for job_id in self.jobs},
            "changes": {job_id: book.changes_of(job_id) for job_id in self.jobs},
        }


@contextmanager
def small(most_of_job: int, step: int) -> Iterator[None]:
    """Bounds so small that few facts reach them."""
    with (
        patch.object(condor_book, "MOST_OF_JOB", most_of_job),
        patch.object(condor_book, "TAKEN_AT_ONCE", step),
        patch.object(condor_book, "LOOKED_AT_ONCE", step),
        patch.object(condor_due, "SEARCHED_AT_ONCE", step),
        patch.object(condor_standing, "MOST_STANDING", 2),
    ):
        yield


def told_in_turn(texts: list[tuple[str, str]]) -> list[CondorFact]:
    """The facts of files that grow in turn, a text at a time."""
    whole = {name: "".join(text for of, text in texts if of == name) for name, _ in texts}
    of_file = {name: iter(facts_of(text.encode(), name)) for name, text in whole.items()}
    return [fact for name, _ in texts if (fact := next(of_file[name], None)) is not None]


def in_pieces(facts: list[CondorFact], sizes: Iterable[int]) -> list[list[CondorFact]]:
    """Facts in pieces of these sizes, and the rest."""
    starts = [0, *itertools.accumulate(sizes), len(facts)]
    return [facts[start:end] for start, end in itertools.pairwise(starts)]


@pytest.mark.parametrize("most", [15, 1_000])
@pytest.mark.parametrize("most_of_job", [8, 300])
@settings(max_examples=150, deadline=None)
@given(texts=_TEXTS, sizes=_SIZES, step=st.integers(1, 9))
def test_facts_make_the_same_in_whatever_pieces_they_come(
    most: int, most_of_job: int, texts: list[tuple[str, str]], sizes: list[int], step: int
) -> None:
    facts = told_in_turn(texts)
    with small(most_of_job, step):
        bit_by_bit = Known(most)
        for piece in in_pieces(facts, sizes):
            for news in bit_by_bit.book.steps(piece):
                bit_by_bit.hear(news)
    with patch.object(condor_book, "MOST_OF_JOB", most_of_job):
        at_once = Known(most)
        at_once.hear(at_once.book.add(facts))
        assert bit_by_bit.all() == at_once.all()


@pytest.mark.parametrize("most", [15, 1_000])
@pytest.mark.parametrize("most_of_job", [8, 300])
@settings(max_examples=150, deadline=None)
@given(texts=_TEXTS, turns=st.lists(st.sampled_from(sorted(_FILES)), max_size=60), step=st.integers(1, 9))
def test_what_is_told_is_what_the_facts_that_are_kept_make_however_files_take_turns(
    most: int, most_of_job: int, texts: list[tuple[str, str]], turns: list[str], step: int
) -> None:
    with small(most_of_job, step):
        known = Known(most)
        facts = told_in_turn(texts)
        steps = {name: known.book.steps([f for f in facts if f.source == name]) for name in _FILES}
        for name in turns:
            known.hear(next(steps[name], News()))
        for news in itertools.chain.from_iterable(steps.values()):
            known.hear(news)
        details = {job_id: known.book.detail(job_id) for job_id in known.jobs}
    assert {job_id: detail and detail.job for job_id, detail in details.items()} == known.jobs


@settings(max_examples=150, deadline=None)
@given(texts=_TEXTS, sizes=_SIZES)
def test_a_book_made_anew_of_the_facts_that_are_kept_tells_the_same(
    texts: list[tuple[str, str]], sizes: list[int]
) -> None:
    utc = [(name, text.replace(":00 ", ":00Z ").replace("JobsubJobId", "Id")) for name, text in texts]
    known, anew = Known(15), Known()
    with small(8, 3):
        for piece in in_pieces(told_in_turn([text for text in utc if text[0] != "j.out"]), sizes):
            known.hear(known.book.add(piece))
        kept = [fact for own in known.book._facts.values() for fact in own.values()]
    anew.hear(anew.book.add(kept))
    assert anew.jobs == known.jobs


def test_what_comes_later_in_time_is_all_that_is_looked_at(placed: list[CondorFact]) -> None:
    log = submitted()
    for minute in range(10, 60):
        log += executing(f"2026-11-20 10:{minute}:00Z")
        log += event(6, f"2026-11-20 10:{minute}:10Z", "Image size of job updated: 9")
        log += event(4, f"2026-11-20 10:{minute}:20Z", "Job was evicted.")
    facts = facts_of(log.encode())
    book = CondorBook()
    for fact in facts:
        book.add([fact])
    assert len(placed) == len(facts) == 151


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> list[CondorFact]:
    """Every fact that is looked at to put a job together, as often as it is."""
    seen: list[CondorFact] = []
    place = Ordering.place

    def counted(self: Ordering, fact: CondorFact) -> Placed:
        seen.append(fact)
        return place(self, fact)

    monkeypatch.setattr(Ordering, "place", counted)
    return seen


JOBS, ROUNDS = 40, 20
NUMBERS = [f"007.{proc:03}.000" for proc in range(JOBS)]
TURNS = ((12, "Job was held."), (13, "Job was released."))
ENDED_IN_UTC = "Job terminated of its own accord at 2026-11-20T16:40:00Z with exit-code 0."


def rounds(count: int, zone: str = "Z") -> str:
    """That each of many jobs was held or released, over and over."""
    times = [f"2026-11-20 10:{minute:02}:00{zone}" for minute in range(count)]
    return "".join(
        event(TURNS[turn % 2][0], at, TURNS[turn % 2][1], job=job)
        for turn, at in enumerate(times)
        for job in NUMBERS
    )


def ended(zone: str = "Z") -> str:
    """The end of every job."""
    normally = ("Job terminated.", "(1) Normal termination (return value 0)")
    return "".join(event(5, f"2026-11-20 10:40:00{zone}", *normally, job=job) for job in NUMBERS)


def ads(status: int) -> list[CondorFact]:
    """The ads of all jobs, as a file has them that is written anew each time."""
    texts = [f"ClusterId = 7\nProcId = {proc}\nJobStatus = {status}\n" for proc in range(JOBS)]
    return facts_of("\n".join(texts).encode(), "q.ad")


def a_round_more() -> tuple[list[CondorFact], list[CondorFact]]:
    facts = facts_of(rounds(ROUNDS + 1).encode())
    return facts[:-JOBS], facts[-JOBS:]


def ads_again() -> tuple[list[CondorFact], list[CondorFact]]:
    return facts_of(rounds(ROUNDS - 2).encode()) + ads(1), ads(5)


def a_zone_told_late() -> tuple[list[CondorFact], list[CondorFact]]:
    told = event(5, "2026-11-20 10:40:00", "Job terminated.", "", ENDED_IN_UTC, job=NUMBERS[0])
    facts = facts_of((rounds(ROUNDS - 2, zone="") + told).encode())
    return facts[:-1], facts[-1:]


def a_cluster_of_jobsub() -> tuple[list[CondorFact], list[CondorFact]]:
    return facts_of((rounds(ROUNDS - 2) + ended()).encode()), facts_of(BEGIN.encode(), "j.out")


def a_copy_of_the_log() -> tuple[list[CondorFact], list[CondorFact]]:
    log = rounds(ROUNDS // 3).encode()
    return facts_of(log, "b.log"), facts_of(log, "a.log")


@pytest.mark.parametrize(
    "told", [a_round_more, ads_again, a_zone_told_late, a_cluster_of_jobsub, a_copy_of_the_log]
)
def test_no_step_looks_at_more_than_a_few_jobs(
    told: Callable[[], tuple[list[CondorFact], list[CondorFact]]], placed: list[CondorFact]
) -> None:
    before, last = told()
    with small(ROUNDS, 2 * ROUNDS):
        known = Known()
        known.hear(known.book.add(before))
        jobs, looked, most = set(), [], 0
        placed.clear()
        for news in known.book.steps(last):
            known.hear(news)
            jobs |= {job.id for job in news.jobs}
            looked.append(len(placed))
            most = max(most, len(news.jobs))
            placed.clear()
        details = {job_id: known.book.detail(job_id) for job_id in known.jobs}
    assert len(jobs) == JOBS
    assert sum(looked) > JOBS * ROUNDS / 2
    assert max(looked) <= 3 * ROUNDS
    assert most <= 2 * ROUNDS
    assert {job_id: detail and detail.job for job_id, detail in details.items()} == known.jobs


def test_only_jobs_whose_file_means_another_zone_are_put_together_anew(placed: list[CondorFact]) -> None:
    before, last = a_zone_told_late()
    others = rounds(ROUNDS - 2, zone="").replace("(007.", "(008.")
    known = Known()
    known.hear(known.book.add(facts_of(others.encode(), "b.log")))
    known.hear(known.book.add(before))
    placed.clear()
    news = known.book.add(last)
    assert len(news.jobs) == JOBS
    assert {fact.source for fact in placed} == {"a.log"}


async def test_others_have_their_turn_while_facts_are_taken_in() -> None:
    store = Store(FakeCorrelation(), FixedClock(Nanos(1_000)))
    poller = Poller(ScriptedSource([Batch(cursor="1", condor=tuple(facts_of(rounds(1).encode())))]), store)
    known: list[int] = []

    async def other() -> None:
        while len(store.jobs) < JOBS:
            known.append(len(store.jobs))
            await asyncio.sleep(0)

    with small(300, 10):
        watching = asyncio.create_task(other())
        await poller.poll_once()
    await watching
    assert known[-4:] == sorted(set(known))[-4:]
    assert 0 < known[-1] < JOBS


async def test_what_is_cut_short_is_told_with_what_comes_next() -> None:
    store = Store(FakeCorrelation(), FixedClock(Nanos(1_000)))
    facts = facts_of(rounds(1).encode())
    with small(300, 10):
        next(store.take_in(facts))
        assert len(store.jobs) < 10
        list(store.take_in(facts))
    assert len(store.jobs) == JOBS
