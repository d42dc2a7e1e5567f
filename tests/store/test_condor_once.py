"""Events of HTCondor's jobs that several files tell of: each counts once, in any order and form."""

import itertools
import time
from collections.abc import Iterable, Iterator
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.model.changes import StateChange
from jobtui.model.clock import SECOND
from jobtui.model.condor_facts import CondorFact
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobDetail, Run
from jobtui.store import condor_book
from jobtui.store.condor_book import CondorBook
from tests.condor import CONDOR, JOB, event, executing, facts_in, facts_of, submitted

HELD_TWICE = JobId("81422934.1@jobsub02.fnal.gov")
FORMS = ("cluster.log", "cluster.json.log", "cluster.xml.log")
EVENTS: tuple[tuple[int, str, tuple[str, ...]], ...] = (
    (1, "Job executing on host: <10.0.0.2:9618?alias=w1.example.org&x=1>", ()),
    (4, "Job was evicted.", ("(0) CPU times",)),
    (12, "Job was held.", ("no room", "Code 34 Subcode 0")),
    (13, "Job was released.", ("via condor_release",)),
    (6, "Image size of job updated: 9", ()),
    (22, "Job disconnected", ("cut",)),
    (28, "Job ad information event triggered.", ('Owner = "me"',)),
)
Kind = tuple[int, str, tuple[str, ...]]


def log_of(events: Iterable[tuple[int, Kind]], form: str, job: str = "007.000.000", hours: int = 0) -> bytes:
    """A log of a job; `form` is how it writes the time of an event, given as seconds after ten in UTC."""
    texts = [submitted(form.format(at=f"2026-11-20 {10 + hours:02}:00:00", part=".250"), job)]
    for second, (number, text, body) in events:
        minutes, seconds = divmod(second // 4, 60)
        at = f"2026-11-20 {10 + hours:02}:{minutes:02}:{seconds:02}"
        texts.append(event(number, form.format(at=at, part=f".{second % 4 * 250:03}"), text, *body, job=job))
    return "".join(texts).encode()


WHOLE, FINE, LOCAL = "{at}Z", "{at}{part}Z", "{at}"


def known(*groups: Iterable[CondorFact]) -> CondorBook:
    book = CondorBook()
    for facts in groups:
        book.add(facts)
    return book


def detail_in(book: CondorBook, job_id: str = JOB) -> JobDetail:
    detail = book.detail(JobId(job_id))
    assert detail is not None
    return detail


def turns_in(changes: Iterable[StateChange]) -> list[tuple[object, ...]]:
    return [(change.at, change.before, change.after, change.detail) for change in changes]


def said(detail: JobDetail) -> tuple[tuple[Run, ...], list[tuple[object, ...]], object, int]:
    """What counts: runs, changes, what is written of them, how often it began."""
    sayings = [(name, text.partition(", named in")[0]) for name, text in detail.facts if name != "told by"]
    return detail.runs, turns_in(detail.changes), sayings, detail.job.runs


def seconds_of(changes: Iterable[StateChange]) -> list[tuple[int, str]]:
    return sorted((change.at // SECOND, change.after) for change in changes)


def in_turn(files: list[list[CondorFact]], turns: list[int], sizes: list[int]) -> Iterator[list[CondorFact]]:
    """Pieces of files that take turns, and then the rest of each."""
    left = [list(facts) for facts in files]
    for turn, size in zip(turns, sizes, strict=False):
        own = left[turn % len(left)]
        yield own[:size]
        del own[:size]
    yield from left


_LOG = st.lists(st.tuples(st.integers(0, 60), st.sampled_from(EVENTS)), max_size=25).map(
    lambda events: sorted(events, key=lambda one: one[0])
)
_TURNS = st.lists(st.integers(0, 2), max_size=30)
_SIZES = st.lists(st.integers(1, 6), min_size=30, max_size=30)


@pytest.mark.parametrize("most_of_job", [8, 300])
@pytest.mark.parametrize("second", [WHOLE, FINE, LOCAL])
@settings(max_examples=80, deadline=None)
@given(events=_LOG, turns=_TURNS, sizes=_SIZES)
def test_logs_of_one_job_tell_what_one_alone_does_however_they_take_turns(
    most_of_job: int, second: str, events: list[tuple[int, Kind]], turns: list[int], sizes: list[int]
) -> None:
    first = facts_of(log_of(events, WHOLE), "a.log")
    hours = -6 if second is LOCAL else 0
    others = [facts_of(log_of(events, second, hours=hours), name) for name in ("0.log", "z.log")]
    told: list[StateChange] = []
    with patch.object(condor_book, "MOST_OF_JOB", most_of_job):
        alone = detail_in(known(first))
        book = CondorBook()
        for piece in in_turn([first, *others], turns, sizes):
            for news in book.steps(piece):
                told += news.changes
    together = detail_in(book)
    assert said(together) == said(alone)
    assert turns_in(book.changes_of(JobId(JOB)) or ()) == turns_in(alone.changes)
    if most_of_job > 30 and second is not LOCAL:  # else it is told of moments that turn out to be others
        assert seconds_of(told) == seconds_of(alone.changes)


@settings(max_examples=150, deadline=None)
@given(events=_LOG, missing=st.sets(st.integers(0, 24)), turns=_TURNS, sizes=_SIZES)
def test_what_one_of_two_logs_lacks_the_other_tells(
    events: list[tuple[int, Kind]], missing: set[int], turns: list[int], sizes: list[int]
) -> None:
    events = [(4 * at, kind) for at, (_, kind) in enumerate(events, start=1)]
    whole = facts_of(log_of(events, WHOLE), "a.log")
    parts = [
        facts_of(log_of([one for at, one in enumerate(events) if (at in missing) is is_in], WHOLE), name)
        for name, is_in in (("0.log", True), ("z.log", False))
    ]
    for files in (parts, [whole, *parts]):
        book = known(*in_turn(files, turns, sizes))
        assert said(detail_in(book)) == said(detail_in(known(whole)))


@pytest.mark.parametrize("zone", ["UTC", "America/Chicago"])
@pytest.mark.parametrize("names", list(itertools.permutations(FORMS)))
def test_a_captured_log_in_each_of_its_forms_is_one(
    names: tuple[str, ...], zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    forms = [facts_in(CONDOR / name) for name in names]
    for job_id in ("81422934.0@jobsub02.fnal.gov", "81422934.1@jobsub02.fnal.gov"):
        alone = detail_in(known(facts_in(CONDOR / "cluster.log")), job_id)
        together = detail_in(known(*forms), job_id)
        assert said(together) == said(alone)
        assert [value for name, value in together.facts if name == "told by"] == [
            ", ".join(str(CONDOR / name) for name in sorted(FORMS))
        ]


AGAIN = executing() + event(4, "2026-11-20 10:01:00Z", "Job was evicted.") + executing()
"""What happens twice within a second."""


def test_what_happens_twice_within_a_second_is_twice() -> None:
    log = (submitted() + AGAIN).encode()
    copies = [facts_of(log, name) for name in ("a.log", "b.log")]
    for files in (copies[:1], copies):
        book = known(*files)
        assert len(detail_in(book).runs) == 2
        assert [fact.what for fact in book.facts_of(JobId(JOB))] == [
            "submit",
            "execute",
            "evicted",
            "execute",
        ]
        assert detail_in(book).native["told"] == detail_in(known(copies[0])).native["told"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_log_that_leaves_out_the_schedd_tells_of_the_same_events(order: tuple[int, int]) -> None:
    files = [
        facts_of((submitted() + AGAIN).encode(), "a.log"),
        facts_of((submitted().replace("alias=", "other=") + AGAIN).encode(), "b.log"),
    ]
    assert {fact.job for fact in files[1]} == {"7.0"}
    together = detail_in(known(*(files[at] for at in order)))
    assert said(together) == said(detail_in(known(files[0])))


def test_two_jobs_of_one_number_keep_their_events() -> None:
    log = submitted() + executing()
    book = known(facts_of(log.encode(), "a"), facts_of(log.replace("jobsub02", "jobsub03").encode(), "b"))
    assert [len(detail_in(book, f"7.0@jobsub0{at}.fnal.gov").runs) for at in (2, 3)] == [1, 1]


def test_a_log_that_was_written_anew_tells_its_events_once() -> None:
    facts = facts_of((submitted() + executing()).encode())
    anew = [msgspec.structs.replace(fact, rotation=1) for fact in facts]
    late = msgspec.structs.replace(facts_of(executing("2026-11-20 10:30:00Z").encode())[0], job=JOB)
    evicted = msgspec.structs.replace(
        facts_of(event(4, "2026-11-20 10:20:00Z", "Job was evicted.").encode())[0], job=JOB
    )
    more = [
        msgspec.structs.replace(one, rotation=1, offset=9_000 + at) for at, one in enumerate((evicted, late))
    ]
    assert len(detail_in(known(facts, anew, more)).runs) == 2


def test_events_without_a_time_are_the_same_if_their_texts_are() -> None:
    log = '{"EventTypeNumber": 1, "Cluster": 7, "Proc": 0, "ExecuteHost": "<10.0.0.2:9618>", "Number": %d}\n'
    files = [facts_of((log % number).encode(), name) for number, name in ((1, "a"), (1, "b"), (2, "c"))]
    book = known(*files)
    assert len(book.facts_of(JobId("7.0"))) == 2


def test_an_event_that_one_file_tells_more_of_is_told_with_all_that_is_known() -> None:
    ad = event(28, "2026-11-20 10:00:00Z", "Job ad information event triggered.", *('Owner = "me"',))
    more = ad.replace("\n...", '\n\tDAGNodeName = "A"\n...')
    book = known(facts_of((submitted() + ad).encode(), "a"), facts_of((submitted() + more).encode(), "b"))
    job = detail_in(book).job
    assert (job.owner, job.tags) == ("me", "DAGNodeName:A")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("told_by", ["When", "a log with a zone"])
def test_logs_without_a_zone_get_it_of_each_other(order: tuple[int, int], told_by: str) -> None:
    local = submitted("2026-11-20 04:00:00") + executing("2026-11-20 04:01:00")
    end = event(5, "2026-11-20 04:02:00", "Job terminated.", "(1) Normal termination (return value 0)")
    when = "\tJob terminated of its own accord at 2026-11-20T10:02:00Z with exit-code 0.\n...\n"
    first = local + end.replace("...\n", when)
    if told_by != "When":
        first = (local + end).replace(" 04:", " 10:").replace(":00 ", ":00Z ")
    files = [facts_of(text.encode(), name) for text, name in ((first, "b.log"), (local + end, "a.log"))]
    detail = detail_in(known(*(files[at] for at in order)))
    assert said(detail) == said(detail_in(known(files[0])))
    assert len(detail.runs) == 1
