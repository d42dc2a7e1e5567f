"""Incidents as lines of text and as JSON documents."""

from collections.abc import Iterator, Sequence

from jobtui.analysis.incidents import EarlierFailures, Incident, Incidents, SharedFact
from jobtui.analysis.times import age, duration
from jobtui.model.clock import Nanos, seconds_between, to_rfc3339
from jobtui.model.numbers import counted
from jobtui.render.json_output import fields_of
from jobtui.render.memory import seen_record, seen_words
from jobtui.render.spans import Paragraph, bars
from jobtui.render.table import paint
from jobtui.render.text import show
from jobtui.render.verdicts import INDENT, code

INCIDENT_COLUMNS = ("verdict", "count", "first_at", "last_at", "error", "first", "jobs")
SHARED = "name value count=jobs elsewhere elsewhere_of=good"
LABEL_CELLS = len("verdicts ")
JOBS_NAMED = 200
RATE_CELLS = 10
"""The width of the sparkline of a group's failures."""


def incident_lines(one: Incident, now: Nanos) -> Iterator[str]:
    """A group: how many, since when, why, what they share, which to look at first."""
    count = len(one.jobs)
    style = "error" if one.is_ongoing(now) else "warning"
    yield paint(f"{count:,} × {one.verdict.code}  {_span(one, now)}".rstrip(), style)
    yield f"{INDENT}{_why(one)}"
    if doubt := _doubt(one):
        yield f"{INDENT}{doubt}"
    if len(one.codes) > 1:
        yield f"{INDENT}verdicts: {_codes(one)}"
    yield from (f"{INDENT}{shared_words(one, fact)}" for fact in one.shared if count > 1)
    if one.seen is not None:
        yield f"{INDENT}{seen_words(one.seen, now)}"
    yield f"{INDENT}first: {show(one.first)}"


def _why(one: Incident) -> str:
    """One line that says why; how many of several jobs it is of, where that is not all."""
    text, count, of = one.cause
    if len(one.jobs) == 1:  # the line and its place, without the words before it
        text, claim = text.removesuffix("."), one.verdict.claim
        _, found, rest = claim.partition(f": {text}")
        return show((text + rest).removesuffix(".") if found else text if text in claim else claim)
    part = f"{count:,} of {of:,}" if of == len(one.jobs) else f"in {count:,} of {counted(of, 'output')} read"
    return show(text) + (f" ({part})" if count < len(one.jobs) else "")


def none_words(found: Incidents, within: str) -> str:
    """Says that nothing failed, as surely as the sources let it be known."""
    return f"{'nothing failed' if found.is_well else 'nothing is known to have failed'} {within}"


def shared_words(one: Incident, fact: SharedFact) -> str:
    """A shared fact: how many of the group have it, and which part of the good jobs."""
    words = f"{fact.name} {show(fact.value)}: {fact.jobs:,} of {len(one.jobs):,}"
    part = 100 * fact.elsewhere / max(1, fact.good)
    elsewhere = f", elsewhere {'under 1' if 0 < part < 1 else f'{part:.0f}'} % of {fact.good:,}"
    return words + (elsewhere if fact.good else "")


def earlier_words(window_s: float, earlier: EarlierFailures, shown: Sequence[Incident]) -> str:
    """Says that nothing failed in a window, how many jobs failed before, and which of them are shown."""
    before = max(earlier.jobs, sum(len(one.jobs) for one in shown))
    wide = earlier.window_s
    if shown:
        where = ":" if wide is None else f"; those of {period(wide)}:"
    else:
        where = "" if wide is None else f" (try --since {duration(wide)})"
    return f"no failures in the last {period(window_s)}; {before:,} before{where}"


def period(seconds: float) -> str:
    """A window of time, in whole hours or days if it can be: `24 h`, `7 days`."""
    for unit, words, most in ((3_600, "h", 48), (86_400, "days", 1_000)):
        if not seconds % unit and seconds / unit <= most:
            return f"{seconds / unit:,.0f} {words}"
    return duration(seconds)


def _codes(one: Incident) -> str:
    return ", ".join(f"{number:,} {show(code)}" for code, number in one.codes)


def _doubt(one: Incident) -> str:
    """What is doubtful about a single one, or how many of several are in doubt."""
    if len(one.jobs) == 1:
        return show("; ".join(one.verdict.doubts))
    return f"not sure of {one.doubtful:,} of them" if one.doubtful else ""


def _span(one: Incident, now: Nanos) -> str:
    if not one.times:
        return ""
    first, last = (age(max(0.0, seconds_between(at, now))) for at in (one.times[0], one.times[-1]))
    words = f"{first} ago" if first == last else f"from {first} to {last} ago"
    state = ", ongoing" if one.is_ongoing(now) else ", over" if len(one.jobs) > 1 else ""
    return words + state


def incident_record(one: Incident, now: Nanos) -> dict[str, object]:
    return {
        "verdict": one.verdict.code,
        "verdicts": dict(one.codes),
        "count": len(one.jobs),
        **fields_of(one.verdict, "sentence"),
        "confidence": round(one.confidence, 2),
        **fields_of(one, "doubtful error"),
        "cause": fields_of(one.cause, "text count=jobs of"),
        "ongoing": one.is_ongoing(now),
        "first_at": to_rfc3339(one.times[0]) if one.times else None,
        "last_at": to_rfc3339(one.times[-1]) if one.times else None,
        "shape": [mark.name.lower() for mark in one.shape],
        "shared": [fields_of(fact, SHARED) for fact in one.shared],
        "seen_before": seen_record(one.seen),
        "first": one.first,
        "jobs": list(one.jobs),
    }


def common_words(one: Incident) -> str:
    """The facts that the jobs of a group share, then why they failed."""
    shared = [shared_words(one, fact) for fact in one.shared[:1] if len(one.jobs) > 1]
    return " · ".join((*shared, _why(one)))


def rate_bars(one: Incident, now: Nanos) -> str:
    counts = one.rate(now, RATE_CELLS) if len(one.times) > 1 else []
    return bars(counts, max(counts, default=0))


def incident_facts(one: Incident, now: Nanos) -> Iterator[Paragraph]:
    count = len(one.jobs)
    yield Paragraph(_why(one), "error" if one.is_ongoing(now) else "warning", LABEL_CELLS)
    if doubt := _doubt(one):
        yield Paragraph(doubt, "warning", LABEL_CELLS)
    if len(one.codes) > 1:
        yield _labelled("verdicts", _codes(one))
    if times := _span(one, now):
        yield _labelled("when", f"{times}  {rate_bars(one, now)}".rstrip())
    for at, fact in enumerate(one.shared if count > 1 else ()):
        yield _labelled("" if at else "shared", shared_words(one, fact))
    if one.seen is not None:
        yield _labelled("seen", seen_words(one.seen, now))
    for at, job_id in enumerate(one.jobs[:JOBS_NAMED]):
        yield _labelled("" if at else "jobs", show(job_id), "" if at else "accent")
    if count > JOBS_NAMED:
        yield _labelled("", f"and {count - JOBS_NAMED:,} more", "dim")


def _labelled(label: str, words: str, style: str = "") -> Paragraph:
    return Paragraph(label.ljust(LABEL_CELLS) + words, style, LABEL_CELLS)


def incident_report(one: Incident, now: Nanos) -> Iterator[str]:
    yield f"# {len(one.jobs):,} × {code(one.verdict.code)}, {to_rfc3339(now)}"
    yield ""
    for part in incident_facts(one, now):
        yield f"- {code(' '.join(part.text.split()))}"
