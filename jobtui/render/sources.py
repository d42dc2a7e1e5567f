"""How sources are named and judged on a screen: short labels, ages, what is late or dead."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from math import inf

from jobtui.analysis.counts import ProfileState
from jobtui.backends.registry import of_kind
from jobtui.model.clock import Nanos
from jobtui.model.health import FAULTS_KIND, SourceHealth, SourceState, progress
from jobtui.model.numbers import counted
from jobtui.render.spans import Line, Piece, width_of
from jobtui.render.text import age, fit, show

FRESH_S = 5.0
"""Up to this age a source that is polled every two seconds is up to date; its age is not counted up."""
LATE_S = 15.0
"""From this age on a source is late, also one that has given nothing since the start."""

SEPARATOR = Piece(" · ", "rule", 3)
REASON_CELLS = 24
"""Fewest cells for the reason why a source is down."""


def labels(sources: Sequence[SourceHealth]) -> list[str]:
    """A short name for each source, unique among them, safe to show."""
    taken: dict[str, int] = {}
    candidates = [_candidates(source) for source in sources]
    for names in candidates:
        for name in set(names):
            taken[name] = taken.get(name, 0) + 1
    return [show(next((name for name in names if taken[name] == 1), names[-1])) for names in candidates]


def extents(sources: Sequence[SourceHealth], kinds: Collection[str]) -> Iterator[str]:
    """How far each source of these kinds was read, a line each, safe to show."""
    for label, source in zip(labels(sources), sources, strict=True):
        if source.kind in kinds:
            state = source.reason if source.state is SourceState.DOWN else source.note
            usual = "not read yet" if source.read_at is None else "read completely"
            yield f"{label}: {show(state or source.skipped_words or usual)}"


def _candidates(source: SourceHealth) -> list[str]:
    parts = source.name.rstrip("/").split("/")
    label = of_kind(source.kind).label
    names = [
        *([label] if label else []),
        parts[-1] or source.name,
        "/".join(parts[-2:]),
        "/".join(parts[-3:]),
        source.name,
    ]
    return [f"{source.profile}: {name}" for name in names] if source.profile else names


def profile_line(state: ProfileState) -> Line:
    """The line of one of several profiles: sources up, jobs running, the failed share and the usual one."""
    up = f"{state.up} of {counted(state.sources, 'source')} up" if state.sources else "no source of jobs"
    spans = [Piece(f" {show(state.profile)}", "strong"), Piece("  ")]
    spans += [Piece(up, "" if state.up == state.sources else "error"), SEPARATOR]
    spans.append(Piece(f"{state.running:,} running"))
    if state.ended:
        usual = "" if state.usual_share is None else f", usually {100 * state.usual_share:.0f} %"
        words = f"{100 * state.failed / state.ended:.0f} % of {state.ended:,} failed in 1h{usual}"
        spans += [SEPARATOR, Piece(words, "warning" if state.is_unusual else "")]
    if state.longest_wait_s is not None:
        spans += [SEPARATOR, Piece(f"longest wait {age(state.longest_wait_s)}")]
    return tuple(spans)


def judge(source: SourceHealth, now: Nanos) -> Piece:
    """The age of the newest record of a source if it can be read; else what is wrong."""
    lag_s = source.lag_s(now)
    if source.state is SourceState.DOWN:
        return Piece("down" if lag_s is None else f"down, last read {age(lag_s)} ago", "error")
    if source.kind == FAULTS_KIND:
        return Piece(f"last {age(lag_s or 0.0)} ago", "warning")
    if (silent_s := source.silent_s(now)) >= LATE_S:
        return Piece(f"no answer for {age(silent_s)}", "warning")
    if source.is_first_read and (lag_s or 0.0) < LATE_S:
        return Piece(f"reading {progress((source,))}", "")
    if (pause_s := source.nothing_new_s(now)) and lag_s is not None and lag_s < LATE_S:
        return Piece(f"nothing new for {age(pause_s, coarse_from_s=0.0)}", "warning")
    if source.failing:
        more = f" and {len(source.failing) - 1} more" if len(source.failing) > 1 else ""
        return Piece(f"without {show(source.failing[0].name)}{more}", "warning")
    polled, newest_s = judge_age(lag_s), source.newest_s(now)
    if polled.style != "dim" or lag_s is None:
        return polled
    style = "warning" if source.skipped_words else "dim"
    if newest_s is None:  # the time of reading says nothing about the age of its records
        return Piece("undated" if source.records else "up", style)
    # In minutes: in seconds it would change each second, on every screen
    return Piece("<1m" if newest_s < 60.0 else age(newest_s, coarse_from_s=60.0), style)


def judge_age(lag_s: float | None) -> Piece:
    """The age of something that was read this many seconds ago; None if it was not read yet."""
    if lag_s is None:
        return Piece("starting", "dim")
    if lag_s >= LATE_S:
        return Piece(f"{age(lag_s)} late", "warning")
    return Piece(f"<{FRESH_S:.0f}s" if lag_s < FRESH_S else age(lag_s), "dim")


def judge_all(sources: Sequence[SourceHealth], now: Nanos) -> Piece:
    """The worst source, for where there is little room."""
    if not sources:
        return Piece("no sources", "warning")
    named = list(zip(labels(sources), sources, strict=True))
    down = [label for label, source in named if source.state is SourceState.DOWN]
    if down:
        return Piece(f"{down[0]} down" if len(down) == 1 else f"{len(down)} sources down", "error")
    judged = [(judge(source, now), label, source) for label, source in named]
    if loud := [one for one in judged if one[0].style != "dim"]:
        # A "warning" comes before ""
        words, label, worst = max(
            loud, key=lambda one: (one[0].style, one[2].lag_s(now) or one[2].silent_s(now))
        )
        return words._replace(text=f"{label} {words.text}{', some skipped' if worst.skipped_words else ''}")
    words, _, _ = min(judged, key=lambda one: inf if (age_s := one[2].newest_s(now)) is None else age_s)
    skipped = ", some skipped" if any(source.skipped for source in sources) else ""
    return words._replace(text=f"{words.text}{skipped}")


def strip_line(sources: Sequence[SourceHealth], now: Nanos, cells: int, faults: int = 0) -> Line:
    """All sources in one line. Where not all fit, those to look at come first, and the rest are counted.

    Only one that alone is down has its reason. `faults` counts those of jobtui, listed with the sources.
    """
    parts = [Piece(counted(faults, "fault"), "warning")] if faults else []
    down = [source for source in sources if source.state is SourceState.DOWN]
    for label, source in zip(labels(sources), sources, strict=True):
        words, style, _ = judge(source, now)
        reason = f": {show(source.reason)}" if source.error and down == [source] else ""
        skipped = f", {source.skipped:,} skipped" if source.skipped else ""
        parts.append(Piece(f"{label} {words}{skipped}{reason}", style))
    drawn = _joined(parts)
    if width_of(drawn) + 2 > cells:
        parts.sort(key=lambda part: part.style == "dim")
        drawn = _as_many_as_fit(parts, cells - 2)
    return (Piece(" ", "", 1), *drawn) if parts else (Piece(fit(" no sources", cells), "warning", cells),)


def _joined(parts: Iterable[Piece]) -> Line:
    return tuple(piece for part in parts for piece in (SEPARATOR, part))[1:]


def _as_many_as_fit(parts: Sequence[Piece], cells: int) -> Line:
    """The first parts, the last of them cut if need be, and how many are left out."""
    for kept in range(len(parts) - 1, 0, -1):
        tail = (SEPARATOR, Piece(f"{len(parts) - kept} more", "dim"))
        line = _joined(parts[:kept])
        left = cells - width_of(tail) - width_of(line[:-1])
        if line[-1].width <= left:
            return (*line, *tail)
        if left >= REASON_CELLS or kept == 1:
            return (*line[:-1], Piece(fit(line[-1].text, max(0, left)), line[-1].style), *tail)
    return (Piece(fit(parts[0].text, max(0, cells)), parts[0].style),)
