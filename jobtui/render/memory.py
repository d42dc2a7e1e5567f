"""Answers of the memory in words, as JSON documents, and as a table."""

from collections.abc import Iterator
from math import exp

from msgspec import to_builtins

from jobtui.analysis.times import age
from jobtui.model.clock import Nanos, seconds_between, utc_of
from jobtui.model.memory import Deviation, JobMemory, MemoryOverview, PeriodChange, SecondsRange, Seen, Share
from jobtui.model.numbers import counted
from jobtui.render.columns import Cells, TableColumn, TimeLook, count_column, fixed, text_column, time_column
from jobtui.render.json_output import Document, fields_of
from jobtui.render.spans import bars
from jobtui.render.text import show

SEEN_CSV = ("signature", "count", "users", "first", "last", "days", "example", "job")
CHANGE_CSV = ("what", "field", "value", "count", "of", "share", "before", "low", "high")


def percent(share: float) -> str:
    value = 100 * share
    return f"{value:.0f}" if value >= 9.95 or value == 0 else f"{max(value, 0.1):.1f}".removesuffix(".0")


def _within(interval: tuple[float, float]) -> str:
    return f"{percent(interval[0])}-{percent(interval[1])} %"


def share_words(share: Share) -> str:
    """A fact that runs with a failure share: "38 of 41 on host v7 (80-97 %), of other runs 6 %"."""
    on = "of" if share.field == "user" else "on" if share.field in ("host", "node") else "with"
    usual = f"of other runs {percent(share.usual_share)} %"
    return (
        f"{share.count:,} of {share.of:,} {on} {show(share.field)} {show(share.value)} "
        f"({_within(share.interval)}), {usual}"
    )


def host_words(share: Share) -> str:
    """A host or node on which more fail: "host v7: 31 % of 120 failed (23-40 %), elsewhere 4 %"."""
    return (
        f"{show(share.field)} {show(share.value)}: {percent(share.share)} % of {share.of:,} failed "
        f"({_within(share.interval)}), elsewhere {percent(share.usual_share)} %"
    )


def seen_words(seen: Seen, now: Nanos) -> str:
    """Whether a failure was seen before: since when, how often, and what these runs share."""
    first, last = (age(max(0.0, seconds_between(at, now))) for at in (seen.first, seen.last))
    since = f"new since {utc_of(seen.first):%A}" if seen.is_new else f"first seen {first} ago"
    users = f", {counted(seen.users, 'user')}" if seen.users else ""
    again = f"{counted(seen.count, 'time')}{users}, last {last} ago" if seen.count > 1 else f"once{users}"
    return "; ".join((f"{since}, {again}", *map(share_words, seen.where)))


def _range_words(what: str, expected: SecondsRange) -> str:
    low, high = (age(max(0.0, seconds)) for seconds in (expected.low_s, expected.high_s))
    held = f"such ranges were right for {percent(expected.held / expected.of)} % of the last {expected.of:,}"
    return f"may {what} in {low} to {high}; {held}"


def memory_lines(remembered: JobMemory | None) -> Iterator[str]:
    """Facts of the memory about a job, one line each; safe to show."""
    if remembered is None:
        return
    if remembered.seen is not None:
        yield seen_words(remembered.seen, remembered.at)
    if remembered.start is not None:
        yield _range_words("start", remembered.start)
    if remembered.end is not None:
        yield _range_words("end", remembered.end)


def sites_words(sites: tuple[Deviation, ...]) -> str:
    words = []
    for one in sites:
        where, since = f"{show(one.field)} {show(one.value)}", f"since {utc_of(one.since):%A %Y-%m-%d}"
        if one.rule == "failures":
            usual = f"usually {percent(one.usual)} %"
            words.append(f"{where}: {percent(one.now)} % of its runs fail {since}, {usual}")
        else:
            times = f"{exp(one.now - one.usual):.1f} times"
            words.append(f"{where}: runs wait {times} as long as usual {since}")
    return "; ".join(words)


def change_words(change: PeriodChange) -> str:
    one, what = change.now, change.what
    name = show(one.value) if one.field == "signature" else f"{show(one.field)} {show(one.value)}".strip()
    if what == "slower":
        low, high = one.interval
        return f"{name}: takes {one.share:.1f} times as long ({low:.1f}-{high:.1f})"
    now = f"{one.count:,} of {one.of:,} runs ({_within(one.interval)})"
    before = f", before {percent(one.usual_share)} %"
    if one.field == "signature":
        return f"{what}: {name}: {now}{'' if what == 'new' else before}"
    return f"{name}: {what} failures, {now}{before}"


def share_record(share: Share) -> Document:
    return fields_of(share, "field value count of share usual_share interval")


def seen_record(seen: Seen | None) -> Document | None:
    """A known failure in the form of the JSON contract, texts masked."""
    if seen is None:
        return None
    where = list(map(share_record, seen.where))
    return {**fields_of(seen, "signature first last count users"), "where": where}


def listed_record(seen: Seen) -> Document:
    return {**(seen_record(seen) or {}), "new": seen.is_new, **fields_of(seen, "days example job")}


def expected_record(remembered: JobMemory | None) -> Document | None:
    """When a job may start and end, in seconds from now; null if too little is known."""
    if remembered is None or (remembered.start is None and remembered.end is None):
        return None
    return {"start": to_builtins(remembered.start), "end": to_builtins(remembered.end)}


def overview_record(overview: MemoryOverview) -> Document:
    return {
        "signatures": list(map(listed_record, overview.signatures)),
        "places": list(map(share_record, overview.shares)),
        "sites": [fields_of(one, "field value rule now usual since") for one in overview.sites],
    }


def change_record(one: PeriodChange) -> Document:
    low, high = one.now.interval
    fields = fields_of(one.now, "field value count of share before=usual_share")
    return {"what": one.what, **fields, "low": low, "high": high}


SEEN_COLUMNS: tuple[TableColumn[Seen, TimeLook], ...] = (
    count_column("count", "TIMES", lambda seen: seen.count, Cells(5, 7, 9), 100),
    TableColumn("trend", "14 DAYS", lambda seen, look: bars(seen.days, max(seen.days, default=0)), fixed(14),
                60, sort=lambda seen: -sum(seen.days)),
    count_column("users", "USERS", lambda seen: seen.users, Cells(5, 5, 7), 50),
    time_column("first", "FIRST", lambda seen: seen.first, Cells(6, 8, 10), 40),
    time_column("last", "LAST", lambda seen: seen.last, Cells(6, 8, 10), 70),
    text_column("signature", "FAILURE", lambda seen: seen.signature, Cells(16, 40, 200), 90),
    TableColumn("with", "IN COMMON", lambda seen, look: "; ".join(map(share_words, seen.where)),
                Cells(12, 40, 120), 30),
)  # fmt: skip
