"""Tests made of the comparisons in a filter. Each is a function of a job, the time and the context."""

import re
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import eq, ge, gt, le, lt
from typing import TypeVar

from jobtui.analysis.filter_fields import (
    ANY_FLAG,
    DISPUTED,
    FIELD_BY_NAME,
    FLAG_WORDS,
    STATUS_WORDS,
    STUCK,
    YES_NO_WORDS,
    Field,
    FilterContext,
    Kind,
)
from jobtui.analysis.filter_syntax import Comparison, FilterError, Value
from jobtui.analysis.flags import LATE, flags_of, needs_person
from jobtui.analysis.moments import parse_moment
from jobtui.analysis.near import nearest
from jobtui.analysis.time_words import age, parse_duration
from jobtui.model.clock import Nanos
from jobtui.model.jobs import Job

T = TypeVar("T")
Test = Callable[[Job, Nanos, FilterContext], bool]

MAX_PATTERN = 200
MAX_SUBJECT = 300
"""Of a longer text only the start is looked at with a regular expression."""
MAX_REPEATS = 4
"""How many `*` and `+` a regular expression may have: each multiplies the worst case by the length."""

_ORDER: Mapping[str, Callable[[float, float], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge, "=": eq}
_IN_SPAN: Mapping[str, Callable[[int, int, int], bool]] = {
    "<": lambda at, start, end: at < start,
    "<=": lambda at, start, end: at <= start,
    ">": lambda at, start, end: at > start,
    ">=": lambda at, start, end: at >= start,
    "=": lambda at, start, end: start <= at < end or at == start,
}
"""How a time stands to the one written, which spans a day, a minute, a second or nothing."""
_OF_DAY = {**_IN_SPAN, "<=": lambda at, start, end: at < end, ">": lambda at, start, end: at >= end}
"""The same for a day, which as a whole comes before and after; "after 14:00" begins at 14:00:00."""
_ORDERED_KINDS = frozenset({Kind.NUMBER, Kind.DURATION, Kind.TIME})
_PATTERN_PART = (
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<open>\()|(?P<close>\))|(?P<alternative>\|)"
    r"|(?P<repeat>[*+]|\{\d*,\d*\}|\{\d{2,}\})|(?P<other>.)"
)


def make_test(comparison: Comparison) -> Test:
    """The test that a comparison stands for. Raises FilterError."""
    field = _field_named(comparison.field)
    op, values = comparison.op, comparison.values
    if op in (":~", "!~"):
        test = _pattern_test(field, values[0])
        return _negated(test) if op == "!~" else test
    if op == "!=":
        return _negated(_any_of([_MAKERS[field.kind](field, "=", value) for value in values]))
    if op in ("<", "<=", ">", ">="):
        if field.kind not in _ORDERED_KINDS:
            name = comparison.field
            raise FilterError(name.start, values[0].start, f"{field.name} has no order", f"{field.name}:")
        if len(values) > 1:
            raise FilterError(values[1].start, values[-1].end, f"only one value may follow {op}")
    return _any_of([_MAKERS[field.kind](field, op, value) for value in values])


def _field_named(name: Value) -> Field:
    field = FIELD_BY_NAME.get(name.text.lower())
    if field is None:
        near = nearest(name.text, FIELD_BY_NAME)
        raise FilterError(name.start, name.end, f"there is no field {name.text}", near)
    return field


def _negated(test: Test) -> Test:
    return lambda job, now, context: not test(job, now, context)


def _any_of(tests: list[Test]) -> Test:
    if len(tests) == 1:
        return tests[0]
    return lambda job, now, context: any(test(job, now, context) for test in tests)


def _text_test(field: Field, op: str, value: Value) -> Test:
    get, wanted = field.get, value.text.lower()
    if not wanted:
        return lambda job, now, context: not get(job, now, context)
    if op == "=":
        return lambda job, now, context: str(get(job, now, context) or "").lower() == wanted
    return lambda job, now, context: wanted in str(get(job, now, context) or "").lower()


def _words_test(field: Field, op: str, value: Value) -> Test:
    """Whether one of some words is meant, or begins so before its colon."""
    get, wanted = field.get, value.text.lower()

    def test(job: Job, now: Nanos, context: FilterContext) -> bool:
        words = str(get(job, now, context) or "").lower().split(" ")
        return any(word == wanted or word.startswith(f"{wanted}:") for word in words)

    return test


def _number_test(field: Field, op: str, value: Value) -> Test:
    try:
        number = float(value.text.removesuffix("%"))
    except ValueError:
        raise FilterError(value.start, value.end, f"{value.text} is no number") from None
    return _ordered(field, op, number)


def _duration_test(field: Field, op: str, value: Value) -> Test:
    seconds = parse_duration(value.text)
    if seconds is None:
        raise FilterError(value.start, value.end, f"{value.text} is no length of time", "10m")
    if op != "=":
        return _ordered(field, op, seconds)
    get, shown = field.get, age(seconds)
    return lambda job, now, context: age(get(job, now, context)) == shown  # type: ignore[arg-type]


def _ordered(field: Field, op: str, wanted: float) -> Test:
    get, compare = field.get, _ORDER[field.colon if op == ":" else op]

    def test(job: Job, now: Nanos, context: FilterContext) -> bool:
        value = get(job, now, context)
        return value is not None and compare(value, wanted)  # type: ignore[arg-type]

    return test


def _time_test(field: Field, op: str, value: Value) -> Test:
    moment = parse_moment(value.text)
    if moment is None:
        raise FilterError(value.start, value.end, f"{value.text} is no time", "14:00")
    if op == ":":
        op = ">=" if moment.ago is not None and field.colon == "=" else field.colon
    span = lru_cache(maxsize=1)(moment.span)
    get, compare = field.get, (_OF_DAY if moment.is_day else _IN_SPAN)[op]

    def test(job: Job, now: Nanos, context: FilterContext) -> bool:
        at = get(job, now, context)
        return isinstance(at, int) and compare(at, *span(now, context.offset_s))

    return test


def _status_test(field: Field, op: str, value: Value) -> Test:
    wanted = _meaning(value, STATUS_WORDS, "status")
    if len(wanted) == 1:
        (only,) = wanted
        return lambda job, now, context: job.status is only
    return lambda job, now, context: job.status in wanted


def _flag_test(field: Field, op: str, value: Value) -> Test:
    wanted = _meaning(value, FLAG_WORDS, "flag")
    if wanted == STUCK:
        return lambda job, now, context: needs_person(job, now)
    if wanted == DISPUTED:
        return lambda job, now, context: context.is_disputed(job)
    if wanted == LATE:
        return lambda job, now, context: context.is_late(job)
    if wanted == ANY_FLAG:
        return lambda job, now, context: (
            bool(flags_of(job, now)) or context.is_disputed(job) or context.is_late(job)
        )
    return lambda job, now, context: wanted in flags_of(job, now)


def _yes_no_test(field: Field, op: str, value: Value) -> Test:
    get, wanted = field.get, _meaning(value, YES_NO_WORDS, "yes or no")
    return lambda job, now, context: get(job, now, context) is wanted


def _meaning(value: Value, words: Mapping[str, T], what: str) -> T:
    """What a word means; its beginning will do as long as it is clear."""
    low = value.text.lower()
    if low in words:
        return words[low]
    meanings = [meaning for word, meaning in words.items() if low and word.startswith(low)]
    if meanings and all(meaning == meanings[0] for meaning in meanings):
        return meanings[0]
    raise FilterError(value.start, value.end, f"{value.text or 'nothing'} is no {what}", nearest(low, words))


def _pattern_test(field: Field, value: Value) -> Test:
    if field.kind not in (Kind.TEXT, Kind.WORDS, Kind.STATUS):
        raise FilterError(value.start, value.end, f"{field.name} is no text to match with ~")
    find, get = _compile(value).search, field.get
    return lambda job, now, context: find(str(get(job, now, context) or "")[:MAX_SUBJECT]) is not None


def _compile(value: Value) -> re.Pattern[str]:
    """The regular expression, if it is one and cannot take for ever. Raises FilterError."""
    if len(value.text) > MAX_PATTERN:
        raise FilterError(
            value.start, value.end, f"a regular expression has at most {MAX_PATTERN} characters"
        )
    if complaint := _danger(value.text):
        raise FilterError(value.start, value.end, complaint)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(value.text, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        raise FilterError(value.start, value.end, f"no regular expression: {error}") from error


def _danger(pattern: str) -> str | None:
    """Why a regular expression could take for ever, None when it cannot.

    Repeating what itself repeats or chooses takes time exponential in the text's length; repeats beside each
    other a power of it.
    """
    open_groups: list[bool] = []
    closed_branching = branching = False
    repeats = 0
    for part in re.finditer(_PATTERN_PART, pattern, re.DOTALL):
        if part["repeat"]:
            if closed_branching:
                return "repeating a group that repeats or chooses could take for ever"
            repeats += 1
            branching = True
        closed_branching = False
        if part["open"]:
            open_groups.append(branching)
            branching = False
        elif part["close"]:
            closed_branching = branching
            branching = branching or (open_groups.pop() if open_groups else False)
        elif part["alternative"]:
            branching = True
    return f"more than {MAX_REPEATS} repeats could take for ever" if repeats > MAX_REPEATS else None


_MAKERS: Mapping[Kind, Callable[[Field, str, Value], Test]] = {
    Kind.TEXT: _text_test,
    Kind.WORDS: _words_test,
    Kind.NUMBER: _number_test,
    Kind.DURATION: _duration_test,
    Kind.TIME: _time_test,
    Kind.STATUS: _status_test,
    Kind.FLAG: _flag_test,
    Kind.YES_NO: _yes_no_test,
}
