"""Filters of jobs: what each means, its words completed, moments in it; and which lines say the same."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from jobtui.analysis.filter import AGENT_FIELDS, Filter, complete, parse
from jobtui.analysis.filter_syntax import FilterError
from jobtui.analysis.flags import JobContext
from jobtui.analysis.log_shapes import Condition, Facet, continues, count_facets, goes_on, keeper
from jobtui.analysis.times import age, duration, looks_like_time, parse_duration, parse_moment, time_near
from jobtui.analysis.traces.filters import SPAN_FIELDS
from jobtui.formats.levels import level_of
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.pages import LogLine
from tests.builders import some
from tests.offenders import each
from tests.rows import ROWS, table

NOW = Nanos(1_795_207_531 * SECOND)
"""2026-11-20 20:45:31 UTC"""


def before(seconds: float) -> Nanos:
    return Nanos(NOW - round(seconds * SECOND))


def a_job(jid: str, status: JobStatus, native: str, **fields: Any) -> Job:
    return Job(
        id=JobId(jid), system="sirepo", source=fields.pop("source", "/srv/db"), status=status,
        native_status=native, owner=jid[:8], model=jid[18:], **fields,
    )  # fmt: skip


SURVEY = a_job(
    "vn9m3eZW-a1B2c3D4-multiElectronAnimation", JobStatus.PENDING, "pending", name="Beamline 7 survey",
    app="srw", mode="parallel", queued_at=before(372), written_at=before(372), runs=1, plan="basic",
)  # fmt: skip
SCAN = a_job(
    "EPRSqtUW-IVh7w74d-animation", JobStatus.RUNNING, "running", name="fel scan 12", app="warp",
    mode="parallel", queued_at=before(3900), started_at=before(3840), updated_at=before(5), percent=98.0,
    frames=40, runs=3, host="v3",
)  # fmt: skip
HEIGHTS = a_job(
    "LoIEQ6fa-Qq0w9E8r-heightWeightReport", JobStatus.COMPLETED, "completed", name="heights", app="myapp",
    mode="sequential", queued_at=before(130), started_at=before(125), updated_at=before(120),
    ended_at=before(120), alert="coarse", runs=2,
)  # fmt: skip
FAILED = a_job(
    "vn9m3eZW-Zz9Yy8Xx-intensityReport", JobStatus.FAILED, "error", source="/srv/old",
    name="Beamline 7 test", app="srw", mode="sequential", queued_at=before(3 * 86400),
    started_at=before(3 * 86400 - 2), updated_at=before(3 * 86400 - 4), ended_at=before(3 * 86400 - 4),
    error="no such element: crystal3", runs=1,
)  # fmt: skip
QUASI = a_job("vn9m3eZW-_1_stlss-statelessCompute", JobStatus.MISSING, "missing", is_quasi=True)
JOBS = {"survey": SURVEY, "scan": SCAN, "heights": HEIGHTS, "failed": FAILED, "quasi": QUASI}
REAL = "survey scan heights failed"
TABLES = table("filters")
ANY_FILTER_TEXT = st.lists(st.sampled_from(TABLES["pieces"]) | st.text(max_size=3), max_size=10).map("".join)


def parsed(text: str) -> Filter | FilterError:
    try:
        return parse(text)
    except FilterError as error:
        return error


def passes(found: Filter, job: Job, **about: Any) -> bool:
    return found.test(JobContext(time_of=lambda source: NOW, **about))(job)


def chosen(text: str, **about: Any) -> str:
    return " ".join(name for name, job in JOBS.items() if passes(parse(text), job, **about))


@each(*[pair for own in TABLES["jobs"].values() for pair in own.items()])
def test_filter(text: str, names: str) -> None:
    assert chosen(text) == (REAL if names == "real" else names)


def test_a_filter_asks_its_context_for_hosts_drivers_and_the_zone() -> None:
    told = {"with_agent": lambda job: replace(job, host="cori", driver="DockerDriver")}
    assert chosen("host:cori driver:docker", **told) == REAL
    assert chosen("host:v3", **told) == ""
    # 19:41:31 UTC is 01:11:31 of the next day there
    assert chosen("started:01:11", offset_s=19800) == "scan"
    assert chosen("queued:2026-11-21", offset_s=19800) == "survey scan heights"
    assert chosen("started:19:41Z", offset_s=19800) == "scan"


PARSERS = {"jobs": parse, "agents": AGENT_FIELDS.parse, "spans": SPAN_FIELDS.parse}


@each(*[(of, text) for of in PARSERS for text in TABLES["mistakes"][of]])
def test_mistakes_are_shown_at_their_place(of: str, text: str) -> None:
    marked, message, nearest = TABLES["mistakes"][of][text]
    with pytest.raises(FilterError) as raised:
        PARSERS[of](text)
    error = raised.value
    assert text[error.start : error.end] == marked
    assert error.nearest == (nearest or None)
    assert not message or error.message == message
    assert str(error) == error.message + (f"; did you mean {nearest}?" if nearest else "")


@settings(deadline=None, max_examples=600)
@given(ANY_FILTER_TEXT)
@example("status:failed and or(")
def test_any_text_is_a_filter_or_a_mistake(text: str) -> None:
    found = parsed(text)
    if isinstance(found, FilterError):
        assert 0 <= found.start <= found.end <= max(len(text), 1)
        return
    opposite = parsed(f"-({text})")  # a mistake where it is too long, too deep or empty
    before = parsed(text[: len(text) // 2])
    for job in JOBS.values():
        if isinstance(before, Filter) and found.narrows(before):
            assert passes(before, job) >= passes(found, job)
        if isinstance(opposite, Filter) and not job.is_quasi:
            assert passes(found, job) is not passes(opposite, job)


@each(*TABLES["narrows"])
def test_more_letters_may_narrow(before: str, text: str, narrows: bool) -> None:
    assert parse(text).narrows(parse(before)) is narrows


@settings(deadline=None, max_examples=300)
@given(st.text("abn\\d.*+?()[]{}|^$,2-", max_size=20))
def test_any_regular_expression_ends(pattern: str) -> None:
    found = parsed(f"name:~{pattern}")
    assert isinstance(found, FilterError) or passes(found, SURVEY) in (True, False)


@each(*TABLES["completions"].items())
def test_completion(text: str, completions: list[str]) -> None:
    known = {"app": ["srw", "warp"], "name": ["fel scan"], "id": ["abc-d", "age<3d"]}
    assert complete(text, len(text), lambda field, begun: known.get(field, ())) == completions


@each(*TABLES["moments"])
def test_moments(text: str) -> None:
    assert [*map(to_rfc3339, some(parse_moment(text)).span(NOW))] == TABLES["moments"][text]


@each(*TABLES["times_in_a_log"].items())
def test_times_in_a_log_are_seen_from_the_line_that_is_read(text: str, at: str) -> None:
    found = [time_near(text, here, NOW) for here in (before(2 * 86_400 - 4_469), NOW)]
    words = ["" if one is None else to_rfc3339(one) for one in found]
    assert " ".join(dict.fromkeys(words) if looks_like_time(text) else ("no time",)).strip() == at


@settings(deadline=None, max_examples=200)
@given(
    st.text("0123456789:-+TZwdhms. todayesr", max_size=24) | st.text(max_size=12), st.integers(-86400, 86400)
)
def test_any_text_may_be_typed_as_a_time(text: str, offset_s: int) -> None:
    parse_duration(text)
    moment = parse_moment(text)
    span = None if moment is None else moment.span(NOW, offset_s)
    assert span is None or span.start <= span.end


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 10**7))
def test_shown_lengths_can_be_read_again(seconds: int) -> None:
    for words in (age, duration):
        again = some(parse_duration(words(seconds)))
        assert (again <= seconds, words(again)) == (True, words(seconds))


HEAD = "Nov 20 20:34:01 7 0 a/b.py:1:f "


def lines_of(*texts: str, origin: str = "x.log") -> list[LogLine]:
    return [
        LogLine(position=nth, end=nth + 1, text=text, size=1, level=level_of(text), origin=origin)
        for nth, text in enumerate(texts)
    ]


@each(*ROWS["lines that may be folded"])
def test_goes_on_tells_which_lines_fold(before: str, line: str, is_one: bool) -> None:
    head, after = lines_of(before, line)
    assert goes_on(head, head, after) is is_one
    (elsewhere,) = lines_of(line, origin="y.log")
    assert goes_on(head, head, elsewhere) is (is_one and "GET" in before)
    assert not continues(head, elsewhere)


def test_values_are_counted_by_record_and_chosen() -> None:
    failed = f"{HEAD}op=run status=error", "  because of status=odd"
    lines = lines_of(*failed, f"{HEAD}op=run status=ok", f"{HEAD}op=x idle")
    found = {one.facet: one.records for one in count_facets(lines)}
    assert found[Facet("op", "run")] == 2
    assert found[Facet("status", "ok")] == 1
    assert Facet("status", "odd") not in found  # it is not the first line of its record
    assert Facet("log", "x.log") not in found  # all have it
    runs, error = Facet("op", "run"), Facet("level", "error")
    shown = keeper([Condition(runs, keeps=True), Condition(error, keeps=False)])
    assert [shown(line) for line in lines] == [False, False, True, False]
    either = keeper([Condition(runs, keeps=True), Condition(Facet("op", "x"), keeps=True)])
    assert [either(line) for line in lines] == [True, False, True, True]
