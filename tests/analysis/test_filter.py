"""Filters of jobs: what is understood, what each means, its words completed, and moments in it."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.filter import Filter, FilterContext, FilterError, complete, parse, token_span
from jobtui.analysis.filter_fields import FIELDS
from jobtui.analysis.times import age, duration, parse_duration, parse_moment
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from tests.analysis.filter_texts import ANY_FILTER_TEXT

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


def parsed(text: str) -> Filter | FilterError:
    try:
        return parse(text)
    except FilterError as error:
        return error


def chosen(text: str, context: FilterContext | None = None) -> str:
    found = parse(text)
    context = context or FilterContext()
    picked = [name for name, job in JOBS.items() if found.matches(job, NOW, context)]
    assert [JOBS[name] for name in picked] == found.select(JOBS.values(), NOW, context)
    return " ".join(picked)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", REAL),
        ("   ", REAL),
        # statuses and their synonyms
        ("status:failed", "failed"),
        ("status:error", "failed"),
        ("state=done", "heights"),
        ("status:COMPLETED", "heights"),
        ("status:comp", "heights"),
        ("status:live", "survey scan"),
        ("status:final", "heights failed"),
        ("status:pending,running", "survey scan"),
        ("status!=pending,running", "heights failed"),
        ("native:error", "failed"),
        # texts
        ("user:vn9m", "survey failed"),
        ("owner=vn9m3ezw", "survey failed"),
        ("uid=vn9m", ""),
        ("app:srw,warp", "survey scan failed"),
        ("-app:srw", "scan heights"),
        ("model:~Anim", "survey scan"),
        ("model:~^anim.*n$", "scan"),
        ("model!~Anim", "heights failed"),
        ("model~(anim|report)", REAL),
        ('name:"beamline 7"', "survey failed"),
        ('name:~"line \\d t"', "failed"),
        ("source:old", "failed"),
        ("error:crystal", "failed"),
        ('error:""', "survey scan heights"),
        ("system:sirepo", REAL),
        ("plan:basic", "survey"),
        ("mode:par", "survey scan"),
        ("host:v3", "scan"),
        ("host!=v3", "survey heights failed"),
        # numbers
        ("%>=90", "scan"),
        ("percent:98", "scan"),
        ("percent<98%", ""),
        ("runs>1", "scan heights"),
        ("runs:1,3", "survey scan failed"),
        ("runs!=1", "scan heights"),
        # lengths of time
        ("age<10m", "survey heights"),
        ("age:2h", "survey scan heights"),
        ("age=6m12s", "survey"),
        ("age>1d", "failed"),
        ("dur>1h", "scan"),
        ("dur:5s", "scan heights"),
        ("wait>1m", "survey"),
        ("wait>=1m", "survey scan"),
        # times
        ("started>19:00", "scan heights"),
        ("started>=19:41:31", "scan heights"),
        ("started:19:41:31", "scan"),
        ("started:19:41", "scan"),
        ("started>19:41", "scan heights"),
        ("started<=19:41", "failed"),
        ("started<=19:42", "scan failed"),
        ("queued:2026-11-20", "survey scan heights"),
        ("queued<2026-11-20", "failed"),
        ("queued:today", "survey scan heights"),
        ("ended:2026-11-17", "failed"),
        ("ended>2026-11-20T20:43Z", "heights"),
        ("ended>2026-11-20T21:43+01:00", "heights"),
        ("since:14:00", "survey scan heights"),
        ("since:2m", "survey scan heights"),
        ("since:1m", "survey scan"),
        ("until:19:00", "failed"),
        ("queued:1h", "survey heights"),
        ("since:23:00", "survey scan heights"),
        # flags
        ("flag:stuck", "survey scan"),
        ("is:no_progress", "survey"),
        ("flag:over", "scan"),
        ("flag:alert", "heights"),
        ("flag:any", "survey scan heights"),
        # words
        ("beamline", "survey failed"),
        ("BEAMLINE", "survey failed"),
        ("beamline survey", "survey"),
        ('"7 s"', "survey"),
        ("hwr", "heights"),
        ("heiwei", "heights"),
        ("mea", "survey"),
        ("b7s", "survey"),
        ("hgt", ""),
        ("IVh7", "scan"),
        ("EPRSqtUW-IVh7w74d-animation", "scan"),
        ("/srv/db/user/EPRSqtUW/warp/IVh7w74d/animation", "scan"),
        ("srj-p-EPRSqtUW", "scan"),
        ("None", ""),
        # together
        ("beamline status:failed", "failed"),
        ("beamline and status:failed", "failed"),
        ("app:warp or app:myapp", "scan heights"),
        ("app:srw status:failed or app:warp", "scan failed"),
        ("app:srw (status:failed or status:running)", "failed"),
        ("not app:srw", "scan heights"),
        ("NOT (app:srw or app:warp)", "heights"),
        ("-(app:srw status:failed)", "survey scan heights"),
        ("--app:srw", "survey failed"),
        ("not -app:srw", "survey failed"),
        ("(app:srw)", "survey failed"),
        ('"or"', "heights failed"),
        ("queued>2026-11-19", "survey scan heights"),
        ("queued>2026-11-20", ""),
        ("queued<=2026-11-17", "failed"),
        # quasi jobs only on demand
        ("quasi:yes", "quasi"),
        ("quasi:no", REAL),
        ("flag:quasi", "quasi"),
        ("vn9m3eZW-_1_stlss-statelessCompute", "quasi"),
        ("model:stateless", "quasi"),
        ("stateless", ""),
        ("-model:animation", "heights failed"),
        ("status:missing", ""),
        ("status:missing or quasi:yes", "quasi"),
    ],
)
def test_filter(text: str, names: str) -> None:
    assert chosen(text) == names


def test_host_and_driver_may_come_from_the_logs() -> None:
    context = FilterContext(host_of=lambda job: "cori", driver_of=lambda job: "DockerDriver")
    assert chosen("host:cori driver:docker", context) == REAL
    assert chosen("host:v3", context) == ""


def test_times_without_a_zone_are_in_that_of_the_context() -> None:
    # 19:41:31 UTC is 01:11:31 of the next day there
    assert chosen("started:01:11", FilterContext(offset_s=19800)) == "scan"
    assert chosen("queued:2026-11-21", FilterContext(offset_s=19800)) == "survey scan heights"
    assert chosen("started:19:41Z", FilterContext(offset_s=19800)) == "scan"


@pytest.mark.parametrize(
    ("text", "marked", "message", "nearest"),
    [
        ("stauts:failed", "stauts", "there is no field stauts", "status"),
        ("app:srw mdoel:x", "mdoel", "there is no field mdoel", "model"),
        ("status:faild", "faild", "faild is no status", "failed"),
        ("status:failed,runing", "runing", "runing is no status", "running"),
        ("status:p", "p", "p is no status", None),
        ("age<soon", "soon", "soon is no length of time", "10m"),
        ("age<10m,1h", "1h", "only one value may follow <", None),
        ("%>=many", "many", "many is no number", None),
        ("since:25:00", "25:00", "25:00 is no time", "14:00"),
        ("since:2026-02-30", "2026-02-30", "2026-02-30 is no time", "14:00"),
        ("user>abc", "user>", "user has no order", "user:"),
        ("status:", "status:", "a value is missing after status:", None),
        ("app:srw,", "app:srw,", "a value is missing after app:", None),
        ("flag:stcuk", "stcuk", "stcuk is no flag", "stuck"),
        ("quasi:maybe", "maybe", "maybe is no yes or no", None),
        ('name:"abc', '"abc', "this quote is not closed", None),
        ("(app:srw", "(", "this ( is not closed", None),
        ("app:srw)", ")", "there is no ( for this )", None),
        ("()", "()", "there is nothing in these ( )", None),
        ("app:srw or", "or", "there is nothing to choose from on one side of or", None),
        ("or app:srw", "or", "there is nothing to choose from on one side of or", None),
        ("app:srw not", "not", "there is nothing after not", None),
        ("not or x", "not ", "there is nothing after not", None),
        ("model:~a(b", "a(b", None, None),
        ("model:~[[a", "[[a", None, None),
        ("model:~(a+)+$", "(a+)+$", "repeating a group that repeats or chooses could take for ever", None),
        ("model:~(a|a)*$", "(a|a)*$", "repeating a group that repeats or chooses could take for ever", None),
        (
            "model:~((a*))*$",
            "((a*))*$",
            "repeating a group that repeats or chooses could take for ever",
            None,
        ),
        (
            "model:~(a{2,}){3,}",
            "(a{2,}){3,}",
            "repeating a group that repeats or chooses could take for ever",
            None,
        ),
        ("model:~.*.*.*.*.*x", ".*.*.*.*.*x", "more than 4 repeats could take for ever", None),
        ("model:~a{99999999999}", "a{99999999999}", None, None),
        ("age:~10", "10", "age is no text to match with ~", None),
    ],
)
def test_mistakes_are_shown_at_their_place(
    text: str, marked: str, message: str | None, nearest: str | None
) -> None:
    with pytest.raises(FilterError) as raised:
        parse(text)
    error = raised.value
    assert text[error.start : error.end] == marked
    assert error.nearest == nearest
    assert message is None or error.message == message
    assert error.message in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "a" + ")" * 5000,
        "-" * 3000 + "a",
        "not " * 900 + "a",
        "a " * 2000,
        "a" * 5000,
        "x or " * 700,
    ],
)
def test_extreme_texts_are_filters_or_mistakes(text: str) -> None:
    assert isinstance(parsed(text), Filter | FilterError)


@settings(deadline=None, max_examples=600)
@given(ANY_FILTER_TEXT)
def test_any_text_is_a_filter_that_can_be_written_again_or_a_mistake(text: str) -> None:
    found = parsed(text)
    if isinstance(found, FilterError):
        assert 0 <= found.start <= found.end <= max(len(text), 1)
        return
    again = parse(str(found))
    assert again == found
    assert str(again) == str(found)
    for job in JOBS.values():
        assert found.matches(job, NOW) == again.matches(job, NOW)


@settings(deadline=None, max_examples=300)
@given(st.text("abn\\d.*+?()[]{}|^$,2-", max_size=20))
def test_any_regular_expression_ends(pattern: str) -> None:
    try:
        found = parse(f"name:~{pattern}")
    except FilterError:
        return
    found.matches(SURVEY, NOW)


@pytest.mark.parametrize("make", [repr, str])
def test_a_filter_shows_what_it_is(make: Callable[[object], str]) -> None:
    assert "-app:srw" in make(parse("not   app:srw"))


def test_filters_are_equal_when_they_mean_the_same() -> None:
    assert parse("not  app:srw") == parse("-app:srw")
    assert parse("a") != parse("b")
    assert len({parse("a b"), parse("a  b"), parse("(a b)")}) == 1
    assert parse(" ").is_empty
    assert not parse("a").is_empty


@pytest.mark.parametrize(
    ("text", "completions"),
    [
        ("sta", ["status:", "state:", "started:"]),
        ("app:srw sou", ["source:"]),
        ("-mod", ["model:", "mode:"]),
        ("(us", ["user:"]),
        ("status:pe", ["status:pending"]),
        ("status:failed,pe", ["status:failed,pending"]),
        ("flag:no", ["flag:no_progress"]),
        ("quasi:", ["quasi:yes", "quasi:true", "quasi:no", "quasi:false"]),
        ("app:", ["app:srw", "app:warp"]),
        ("name:", ['name:"fel scan"']),
        ("nothing:", []),
        ("zzz", []),
    ],
)
def test_completion(text: str, completions: list[str]) -> None:
    known = {"app": ["srw", "warp"], "name": ["fel scan"]}
    assert complete(text, len(text), known) == completions


def test_an_empty_text_completes_to_every_field() -> None:
    assert len(complete("", 0)) == sum(len(field.names) for field in FIELDS)


def test_completion_looks_at_the_cursor() -> None:
    assert complete("sou app:srw", 3) == ["source:"]
    assert token_span("a -sou app:srw", 6) == (3, 6)


@settings(deadline=None, max_examples=200)
@given(ANY_FILTER_TEXT, st.integers(-3, 60))
def test_completion_never_raises(text: str, cursor: int) -> None:
    start, end = token_span(text, cursor)
    assert 0 <= start <= end <= len(text)
    for completion in complete(text, cursor):
        assert completion


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("14:00", "2026-11-20T14:00:00Z", "2026-11-20T14:01:00Z"),
        ("9:05", "2026-11-20T09:05:00Z", "2026-11-20T09:06:00Z"),
        ("14:00:30", "2026-11-20T14:00:30Z", "2026-11-20T14:00:31Z"),
        ("14:00:30.25", "2026-11-20T14:00:30.250000Z", "2026-11-20T14:00:30.250000Z"),
        ("23:00", "2026-11-19T23:00:00Z", "2026-11-19T23:01:00Z"),
        ("14:00Z", "2026-11-20T14:00:00Z", "2026-11-20T14:01:00Z"),
        ("14:00+05:30", "2026-11-20T08:30:00Z", "2026-11-20T08:31:00Z"),
        ("2026-11-20", "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z"),
        ("2027-01-01", "2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z"),
        ("2024-02-29T12:00", "2024-02-29T12:00:00Z", "2024-02-29T12:01:00Z"),
        ("2026-11-20 12:00", "2026-11-20T12:00:00Z", "2026-11-20T12:01:00Z"),
        ("2026-11-20T12:00:00-0100", "2026-11-20T13:00:00Z", "2026-11-20T13:00:01Z"),
        ("today", "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z"),
        ("yesterday", "2026-11-19T00:00:00Z", "2026-11-20T00:00:00Z"),
        ("Yesterday 14:00", "2026-11-19T14:00:00Z", "2026-11-19T14:01:00Z"),
        ("2h", "2026-11-20T18:45:31Z", "2026-11-20T18:45:31Z"),
        ("1d12h", "2026-11-19T08:45:31Z", "2026-11-19T08:45:31Z"),
    ],
)
def test_moments(text: str, start: str, end: str) -> None:
    moment = parse_moment(text)
    assert moment is not None
    span = moment.span(NOW)
    assert (to_rfc3339(span.start), to_rfc3339(span.end)) == (start, end)


def test_moments_without_a_zone_are_in_the_zone_given() -> None:
    moment = parse_moment("01:00")
    assert moment is not None
    # there it is 02:15:31 of the next day
    assert to_rfc3339(moment.span(NOW, 19_800).start) == "2026-11-20T19:30:00Z"
    today = parse_moment("today")
    assert today is not None
    assert to_rfc3339(today.span(NOW, 19_800).start) == "2026-11-20T18:30:00Z"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "T",
        "Z",
        "+01:00",
        "24:00",
        "12:60",
        "12:00:60",
        "2026-13-01",
        "2026-02-30",
        "0000-01-01",
        "soon",
        "14",
    ],
)
def test_no_moments(text: str) -> None:
    assert parse_moment(text) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(
            ("90s", 90),
            ("10m", 600),
            ("2h30m", 9000),
            ("1d", 86400),
            ("3d 2h", 266400),
            ("1w", 604800),
            ("0.5s", 0.5),
        ),
        *(
            ("1H", 3600),
            ("", None),
            ("m", None),
            ("10", None),
            ("-5m", None),
            ("5x", None),
            ("m10", None),
            ("30m2h", None),
        ),
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == seconds


@settings(deadline=None, max_examples=200)
@given(
    st.text("0123456789:-+TZwdhms. todayesr", max_size=24) | st.text(max_size=12), st.integers(-86400, 86400)
)
def test_anything_may_be_written(text: str, offset_s: int) -> None:
    parse_duration(text)
    moment = parse_moment(text)
    if moment is not None:
        start, end = moment.span(NOW, offset_s)
        assert start <= end


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 10**7))
def test_shown_lengths_can_be_read_again(seconds: int) -> None:
    for words in (age, duration):
        again = parse_duration(words(seconds))
        assert again is not None
        assert again <= seconds
        assert words(again) == words(seconds)
