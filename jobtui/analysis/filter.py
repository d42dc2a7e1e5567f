"""The filter language for jobs (one for the table, the one-shot commands and the palette) and for agents.

Quasi jobs, which are only records of compute calls, are hidden unless the filter asks for them: with
`quasi:`, `flag:quasi`, a comparison of `id` or `model`, or a whole id. `FilterError` explains a mistake.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from functools import lru_cache, partial
from itertools import islice
from operator import attrgetter, eq, ge, gt, le, lt
from os.path import commonprefix
from typing import Any, NamedTuple, TypeVar

from jobtui.analysis.filter_syntax import (
    YES_NO_WORDS,
    All,
    FieldComparison,
    FilterError,
    Node,
    TextFields,
    Value,
    Word,
    any_of,
    check_text_op,
    compile_node,
    leaves,
    negated,
    parse_nodes,
    quoted,
    text_test,
)
from jobtui.analysis.flags import LATE, Flag, JobContext, flags_of, needs_person
from jobtui.analysis.times import age, parse_duration, parse_moment
from jobtui.model.clock import DAY, SECOND
from jobtui.model.ids import is_quasi_jid, jid_of_run_dir, split_container, split_jid
from jobtui.model.jobs import SLURM, Job, JobStatus, age_s, first_seen, last_active, status_since
from jobtui.model.numbers import real
from jobtui.model.ops import Agent, AgentState
from jobtui.model.spelling import nearest


class Kind(Enum):
    TEXT = auto()
    WORDS = auto()
    NUMBER = auto()
    DURATION = auto()
    TIME = auto()
    STATUS = auto()
    FLAG = auto()
    YES_NO = auto()


class Field(NamedTuple):
    """One field: its names, its kind, its value of a job, and the meaning of `:` if that is not equality.

    `get` is given the job; for a duration or a time also what the clock of its source shows.
    """

    names: tuple[str, ...]
    kind: Kind
    about: str
    get: Callable[..., Any] = lambda job: None
    colon: str = "="

    @property
    def name(self) -> str:
        return self.names[0]


FIELDS: tuple[Field, ...] = (
    Field(("status", "state"), Kind.STATUS, "pending, running, completed, failed, ...", attrgetter("status")),
    Field(("native",), Kind.TEXT, "status in the words of its system", attrgetter("native_status")),
    Field(("id", "jid"), Kind.TEXT, "id of the job", attrgetter("id")),
    Field(("user", "owner", "uid"), Kind.TEXT, "user who owns it", attrgetter("owner")),
    Field(("name",), Kind.TEXT, "name given by the user", attrgetter("name")),
    Field(("app",), Kind.TEXT, "application", attrgetter("app")),
    Field(("model",), Kind.TEXT, "model that the application computes", attrgetter("model")),
    Field(("mode",), Kind.TEXT, "sequential, parallel, sbatch", attrgetter("mode")),
    Field(("host",), Kind.TEXT, "where it runs", attrgetter("host")),
    Field(("driver",), Kind.TEXT, "what starts its agent", attrgetter("driver")),
    Field(("system",), Kind.TEXT, "the system it belongs to", attrgetter("system")),
    Field(("source",), Kind.TEXT, "the source it was read from", attrgetter("source")),
    Field(("plan",), Kind.TEXT, "the user's plan", attrgetter("plan")),
    Field(("error",), Kind.TEXT, "why it failed", attrgetter("error")),
    Field(("reason",), Kind.TEXT, "reason in the words of its system", attrgetter("reason")),
    Field(("exit",), Kind.TEXT, "how its program ended, CODE:SIGNAL", attrgetter("exit")),
    Field(
        ("partition", "queue"), Kind.TEXT, "partition of Slurm", lambda j: j.app if j.system == SLURM else ""
    ),
    Field(("message",), Kind.TEXT, "what it waits for", attrgetter("message")),
    Field(("alert",), Kind.TEXT, "warning shown to its user", attrgetter("alert")),
    Field(("tag", "tags"), Kind.WORDS, "a tag it has, KEY:VALUE or KEY", attrgetter("tags")),
    Field(("batch", "scheduler"), Kind.WORDS, "id of its allocation", attrgetter("allocation")),
    Field(("to", "passed"), Kind.WORDS, "a state that it entered", attrgetter("passed")),
    Field(("from", "left"), Kind.WORDS, "a state it left", lambda job: job.passed.rpartition(" ")[0]),
    Field(("age",), Kind.DURATION, "time in its current state", age_s, "<="),
    Field(("dur", "elapsed"), Kind.DURATION, "how long it runs or ran", Job.elapsed_s, ">="),
    Field(("wait", "waited"), Kind.DURATION, "how long it waited", Job.waited_s, ">="),
    Field(("percent", "%"), Kind.NUMBER, "share that is done", attrgetter("percent")),
    Field(("runs",), Kind.NUMBER, "how often it was run", attrgetter("runs")),
    Field(("frames",), Kind.NUMBER, "frames written", attrgetter("frames")),
    Field(("queued",), Kind.TIME, "when it was submitted", lambda job, now: job.queued_at),
    Field(("started",), Kind.TIME, "when it started", lambda job, now: job.started_at),
    Field(("ended",), Kind.TIME, "when it ended", lambda job, now: job.ended_at),
    Field(("updated",), Kind.TIME, "last change of its record", lambda job, now: job.updated_at),
    Field(("since",), Kind.TIME, "active at this time or later", last_active, ">="),
    Field(("until",), Kind.TIME, "submitted at this time or earlier", lambda job, now: first_seen(job), "<="),
    Field(("flag", "is"), Kind.FLAG, "needs attention: stuck, over_limit, alert, contradiction, ..."),
    Field(("quasi",), Kind.YES_NO, "records that are not simulations", attrgetter("is_quasi")),
)
FIELD_BY_NAME: Mapping[str, Field] = {name: field for field in FIELDS for name in field.names}

STATUS_WORDS: Mapping[str, frozenset[JobStatus]] = {
    **{status.value: frozenset({status}) for status in JobStatus},
    "queued": frozenset({JobStatus.PENDING}),
    "waiting": frozenset({JobStatus.PENDING}),
    "done": frozenset({JobStatus.COMPLETED}),
    "ok": frozenset({JobStatus.COMPLETED}),
    "error": frozenset({JobStatus.FAILED}),
    "cancelled": frozenset({JobStatus.CANCELED}),
    "job_run_purged": frozenset({JobStatus.PURGED}),
    "live": frozenset(status for status in JobStatus if status.is_live),
    "final": frozenset(status for status in JobStatus if not status.is_live),
}
STUCK = "stuck"
ANY_FLAG = "any"
FLAG_WORDS: Mapping[str, str] = {word: word for word in (STUCK, ANY_FLAG, LATE, *map(str, Flag))}

VALUE_WORDS: Mapping[Kind, tuple[str, ...]] = {
    Kind.STATUS: tuple(STATUS_WORDS),
    Kind.FLAG: tuple(FLAG_WORDS),
    Kind.YES_NO: tuple(YES_NO_WORDS),
}


T = TypeVar("T")
JobTest = Callable[[Job], bool]


MAX_PATTERN = 200
MAX_SUBJECT = 300
"""A regular expression is applied to this many characters of a text."""
MAX_REPEATS = 4
"""The most `*` and `+` in a regular expression: each multiplies the worst case by the length."""

_ORDER: Mapping[str, Callable[[float, float], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge, "=": eq}
_IN_SPAN: Mapping[str, Callable[[int, int, int], bool]] = {
    "<": lambda at, start, end: at < start,
    "<=": lambda at, start, end: at <= start,
    ">": lambda at, start, end: at > start,
    ">=": lambda at, start, end: at >= start,
    "=": lambda at, start, end: start <= at < end or at == start,
}
"""The comparison of a time with a typed one, which spans a day, a minute, a second or an instant."""
_OF_DAY = {**_IN_SPAN, "<=": lambda at, start, end: at < end, ">": lambda at, start, end: at >= end}
"""The same for a typed day, which is compared as a whole; "after 14:00" begins at 14:00:00."""
_NEGATED = {"!=": "=", "!~": ":~"}
_ORDERED_KINDS = frozenset({Kind.NUMBER, Kind.DURATION, Kind.TIME})
_TOLD_BY_LOGS = frozenset({"host", "driver"})
_TIMED_KINDS = frozenset({Kind.DURATION, Kind.TIME, Kind.FLAG})
_PATTERN_PART = (
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<open>\()|(?P<close>\))|(?P<alternative>\|)"
    r"|(?P<repeat>[*+]|\{\d*,\d*\}|\{\d{2,}\})|(?P<other>.)"
)


def _comparison_test(comparison: FieldComparison, look: JobContext) -> JobTest:
    """The test of a comparison. Raises FilterError."""
    name = comparison.field
    field = FIELD_BY_NAME.get(name.text.lower())
    if field is None:
        near = nearest(name.text, FIELD_BY_NAME)
        raise FilterError(name.start, name.end, f"unknown field {name.text}", near)
    op, values = comparison.op, comparison.values
    if field.name in _TOLD_BY_LOGS:
        get, with_agent = field.get, look.with_agent
        field = field._replace(get=lambda job: get(with_agent(job)))
    if op in _NEGATED:
        return negated(_comparison_test(comparison._replace(op=_NEGATED[op]), look))
    if op == ":~":
        return _pattern_test(field, values[0])
    if op in ("<", "<=", ">", ">="):
        if field.kind not in _ORDERED_KINDS:
            raise FilterError(name.start, values[0].start, f"{field.name} has no order", f"{field.name}:")
        if len(values) > 1:
            raise FilterError(values[1].start, values[-1].end, f"expected one value after {op}")
    return any_of([_MAKERS[field.kind](field, op, value, look) for value in values])


def _text_test(field: Field, op: str, value: Value, look: JobContext) -> JobTest:
    get, wanted = field.get, value.text.lower()
    if op == "=" or not wanted:
        return lambda job: (get(job) or "").lower() == wanted
    return lambda job: wanted in (get(job) or "").lower()


def _words_test(field: Field, op: str, value: Value, look: JobContext) -> JobTest:
    get, wanted = field.get, value.text.lower()
    begun = f"{wanted}:"
    return lambda job: any(word == wanted or word.startswith(begun) for word in get(job).lower().split(" "))


def _number_test(field: Field, op: str, value: Value, look: JobContext) -> JobTest:
    number = real(value.text.removesuffix("%"))
    if number is None:
        raise FilterError(value.start, value.end, f"{value.text} is not a number")
    get, compare = field.get, _ORDER[field.colon if op == ":" else op]
    return lambda job: (found := get(job)) is not None and compare(found, number)


def _duration_test(field: Field, op: str, value: Value, look: JobContext) -> JobTest:
    seconds = parse_duration(value.text)
    if seconds is None:
        raise FilterError(value.start, value.end, f"{value.text} is not a duration", "10m")
    get, time_of, shown = field.get, look.time_of, age(seconds)
    if op == "=":
        return lambda job: age(get(job, time_of(job.source))) == shown
    compare, nanos = _ORDER[field.colon if op == ":" else op], seconds * SECOND
    if get is age_s:  # which most filters by time ask for
        return lambda job: (at := status_since(job)) is not None and compare(time_of(job.source) - at, nanos)
    return lambda job: (found := get(job, time_of(job.source))) is not None and compare(found, seconds)


def _time_test(field: Field, op: str, value: Value, look: JobContext) -> JobTest:
    moment = parse_moment(value.text)
    if moment is None:
        raise FilterError(value.start, value.end, f"{value.text} is not a time", "14:00")
    if op == ":":
        op = ">=" if moment.ago is not None and field.colon == "=" else field.colon
    span, offset_s, time_of = lru_cache(maxsize=1)(moment.span), look.offset_s, look.time_of
    get, compare = field.get, (_OF_DAY if moment.length == DAY else _IN_SPAN)[op]

    def test(job: Job) -> bool:
        at = get(job, now := time_of(job.source))
        return at is not None and compare(at, *span(now, offset_s))

    return test


def _status_test(field: Field, op: str, value: Value, look: JobContext) -> JobTest:
    wanted = _meaning(value, STATUS_WORDS, "unknown status {}")
    return lambda job: job.status in wanted


def _flag_test(field: Field, op: str, value: Value, look: JobContext) -> JobTest:
    wanted, time_of, context = _meaning(value, FLAG_WORDS, "unknown flag {}"), look.time_of, look
    disputed, late = context.is_disputed, lambda job: context.late_of(job) is not None
    flagged: JobTest = lambda job: wanted in flags_of(job, time_of(job.source))  # noqa: E731
    others: dict[str, JobTest] = {
        STUCK: lambda job: needs_person(job, time_of(job.source)),
        LATE: late,
        Flag.CONTRADICTION: any_of([flagged, disputed]),
        ANY_FLAG: any_of([lambda job: bool(flags_of(job, time_of(job.source))), disputed, late]),
    }
    return others.get(wanted, flagged)


def _yes_no_test(field: Field, op: str, value: Value, look: JobContext) -> JobTest:
    get, wanted = field.get, _meaning(value, YES_NO_WORDS, "{} is neither yes nor no")
    return lambda job: get(job) is wanted


def _meaning(value: Value, words: Mapping[str, T], complaint: str) -> T:
    low = value.text.lower()
    if low in words:
        return words[low]
    meanings = [meaning for word, meaning in words.items() if low and word.startswith(low)]
    if meanings and all(meaning == meanings[0] for meaning in meanings):
        return meanings[0]
    raise FilterError(value.start, value.end, complaint.format(value.text or "nothing"), nearest(low, words))


def _pattern_test(field: Field, value: Value) -> JobTest:
    """The test of a regular expression, if its run time is bounded. Raises FilterError."""
    complaint = danger_of(value.text)
    if field.kind not in (Kind.TEXT, Kind.WORDS, Kind.STATUS):
        complaint = f"{field.name} is not text, which ~ needs"
    elif len(value.text) > MAX_PATTERN:
        complaint = f"a regular expression has at most {MAX_PATTERN} characters"
    if complaint:
        raise FilterError(value.start, value.end, complaint)
    find, get = re.compile(value.text, re.IGNORECASE).search, field.get
    return lambda job: find((get(job) or "")[:MAX_SUBJECT]) is not None


def danger_of(pattern: str) -> str | None:
    """Why a regular expression is none, or could take too long; None if it is good.

    A repeat of a repeat or of a choice takes time exponential in the length of the text, repeats in a row a
    power of it.
    """
    open_groups: list[bool] = []
    closed_branching = branching = False
    repeats = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        return f"not a regular expression: {error}"
    for part in re.finditer(_PATTERN_PART, pattern, re.DOTALL):
        if part["repeat"]:
            if closed_branching:
                return "a repeated group that repeats or has choices could run forever"
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
    return f"more than {MAX_REPEATS} repeats could run forever" if repeats > MAX_REPEATS else None


_MAKERS: Mapping[Kind, Callable[[Field, str, Value, JobContext], JobTest]] = {
    Kind.TEXT: _text_test, Kind.WORDS: _words_test, Kind.NUMBER: _number_test,
    Kind.DURATION: _duration_test, Kind.TIME: _time_test, Kind.STATUS: _status_test, Kind.FLAG: _flag_test,
    Kind.YES_NO: _yes_no_test,
}  # fmt: skip


# The filter of agents: `state:lost host:v4 -kind:sequential op:pb5u`; a word is found in any field.


def _known(*texts: str | None) -> tuple[str, ...]:
    return tuple(text for text in texts if text)


AGENT_FIELDS: TextFields[Agent] = TextFields("agents", {
    "state": lambda agent: _known(agent.state.value.replace("_", " "), agent.state.value),
    "user": lambda agent: _known(agent.uid),
    "host": lambda agent: _known(agent.host),
    "driver": lambda agent: _known(agent.driver),
    "kind": lambda agent: _known(agent.kind),
    "container": lambda agent: _known(agent.container, agent.container_id),
    "agent": lambda agent: _known(agent.agent),
    "op": lambda agent: (text for op in agent.ops for text in _known(op.op, op.name)),
    "job": lambda agent: _known(*(op.jid for op in agent.ops)),
    "why": lambda agent: _known(agent.why),
}, {"state": lambda node: _state_test(node)})  # fmt: skip


def _state_test(node: FieldComparison) -> Callable[[Agent], bool]:
    check_text_op(node, node.field.text)
    states = [state.value for state in AgentState]
    for value in node.values:
        low = value.text.lower().replace(" ", "_")
        if not any(state.startswith(low) for state in states):
            message = f"agents have no state {value.text}"
            raise FilterError(value.start, value.end, message, nearest(low, states))
    return text_test(AGENT_FIELDS.texts["state"], node.op, [value.text.lower() for value in node.values])


KnownWords = Callable[[str, str], Iterable[str]]
"""Gives the values to offer for a field of the filter language that may begin so."""
# patterns that few filters need are kept as text: `re` compiles each when it is used first, and remembers it
_VALUE_HEAD = r"(?P<head>(?P<field>\w+|%)(?:!=|<=|>=|[:=<>])(?:[^,\"]*,)*)(?P<begun>[^,\"]*)"
_PLAIN_VALUE = r"[\w.@/+\-]+"
_WORDS = r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+|[^\W_]"
"""The words of a text, also of one joinedLikeThis."""
_MAX_ABBREVIATED = 200
_MOST_KNOWN = 10_000
LEAST_ID = 3
MOST_OFFERED = 200
STATE_WORDS = frozenset(
    {"pending", "queued", "waiting", "running", "completed", "done", "failed", "canceled", "cancelled"}
)
"""Words that alone also mean a state. In quotes they are only searched for."""
_SHOW_QUASI_FIELDS = frozenset({"quasi", "id", "model"})


class Filter:
    """A parsed filter. `asks_logs` tells whether it compares what only logs know, `asks_time` whether what
    passes depends on the time too.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        names = [leaf.field.text.lower() for leaf, _ in leaves(node) if isinstance(leaf, FieldComparison)]
        words = [leaf.value.text.lower() for leaf, _ in leaves(node) if isinstance(leaf, Word)]
        self.test(JobContext(), hidden=True)  # which finds mistakes
        self.asks_logs = any(name in _TOLD_BY_LOGS for name in names)
        self.asks_time = STUCK in words or any(FIELD_BY_NAME[name].kind in _TIMED_KINDS for name in names)
        self.shows_quasi = any(_asks_for_quasi(leaf) for leaf, negated in leaves(node) if not negated)

    def test(self, look: JobContext, *, hidden: bool = False) -> JobTest:
        """Whether a job passes, perhaps with jobs that are else hidden. It is made for many jobs."""
        test = compile_node(self._node, partial(_word_test, look=look), partial(_comparison_test, look=look))
        return test if hidden or self.shows_quasi else lambda job: not job.is_quasi and test(job)

    def narrows(self, before: "Filter") -> bool:
        """Whether it is plain that what passes also passed `before`, which has fewer letters or terms."""
        mine, theirs = _terms(self._node), _terms(before._node)
        at, may_change = len(theirs) - 1, self.asks_time or self.asks_logs
        if may_change or self.shows_quasi or not 0 <= at < len(mine) or mine[:at] != theirs[:at]:
            return False
        begun, now = _plain_word(theirs[at]), _plain_word(mine[at])
        return mine[at] == theirs[at] or (begun != "" and now.startswith(begun))


def _terms(node: Node) -> list[Node]:
    return [*node.nodes] if isinstance(node, All) else [node]


def _plain_word(node: Node) -> str:
    """A word that stands for nothing but itself, in lower case; else ""."""
    word = node.value.text if isinstance(node, Word) and not node.value.quoted else ""
    means_more = word.lower() in STATE_WORDS | {STUCK} or split_jid(word) or split_container(word)
    return "" if means_more or jid_of_run_dir(word) else word.lower()


def parse(text: str) -> Filter:
    """The filter of a text. Raises FilterError and nothing else."""
    return Filter(parse_nodes(text))


def token_span(text: str, cursor: int) -> tuple[int, int]:
    cursor = min(max(cursor, 0), len(text))
    start = cursor
    while start > 0 and not text[start - 1].isspace() and text[start - 1] not in "(":
        start -= 1
    return (start + 1, cursor) if text[start:cursor].startswith("-") else (start, cursor)


def completed(token: str, names: Iterable[str], values: Callable[[str, str], Iterable[str]]) -> list[str]:
    """What a token may become: the name of a field with a colon, or one of the values of its field."""
    found = re.fullmatch(_VALUE_HEAD, token, re.ASCII)
    if found is None:
        return [f"{name}:" for name in names if name.startswith(token.lower())]
    begun = found["begun"].lower()
    words = (word for word in values(found["field"].lower(), begun) if word.lower().startswith(begun))
    written = (word if re.fullmatch(_PLAIN_VALUE, word) else quoted(word) for word in words)
    return [found["head"] + word for word in islice(written, MOST_OFFERED)]


def complete(text: str, cursor: int, known: KnownWords = lambda field, begun: ()) -> list[str]:
    """The completions of the token that ends at `cursor`: fields, or values of the field before it.

    `known` gives values to offer for fields with free text: apps, users, hosts.
    """

    def values(name: str, begun: str) -> Iterable[str]:
        field = FIELD_BY_NAME.get(name)
        return VALUE_WORDS.get(field.kind) or known(field.name, begun) if field else ()

    token = text[slice(*token_span(text, cursor))]
    return completed(token, FIELD_BY_NAME, values) or ids_beginning(token, known)


def ids_beginning(text: str, known: KnownWords) -> list[str]:
    """Known ids that begin so; none for fewer than LEAST_ID characters, as most would be chance."""
    ids = known("id", text) if len(text) >= LEAST_ID and not re.match(r"\w+[!:=<>]", text) else ()
    return [*islice((one for one in ids if one.startswith(text) and one.isprintable()), MOST_OFFERED)]


def _word_test(node: Word, look: JobContext) -> JobTest:
    word = node.value.text
    if job_id := word if split_jid(word) else jid_of_run_dir(word):
        return lambda job: job.id == job_id
    if container := split_container(word):
        return lambda job: job.owner == container.uid
    low, last, time_of = word.lower(), word[-1:].lower(), look.time_of
    means = (lambda text: low in text.lower()) if node.value.quoted else abbreviation_test(low)
    is_kind = lru_cache(_MOST_KNOWN)(lambda model, app: means(model) or means(app))
    # In ids and owners nearly anything can be found as beginnings of words: their letters are random
    test: JobTest = lambda job: (  # noqa: E731
        low in job.owner.lower()
        or is_kind(job.model, job.app)
        or low in job.id.lower()
        or (last in (name := job.name or "").lower() and means(name))
    )
    if low == STUCK and not node.value.quoted:
        return any_of([lambda job: needs_person(job, time_of(job.source)), test])
    if low in STATE_WORDS and not node.value.quoted:
        return any_of([_status_test(FIELDS[0], ":", node.value, look), test])
    return test


def abbreviation_test(low: str) -> Callable[[str], bool]:
    """Whether a text holds `low`, or `low` is made of the beginnings of its words, in their order: "hwr" of
    heightWeightReport.
    """
    letters = map(re.escape, low[:_MAX_ABBREVIATED])
    # Most texts lack a letter, which is found out cheaply
    has_letters = re.compile("".join(f"[^{one}]*+{one}" for one in letters), re.DOTALL).match
    numbers = re.compile("(?!)" if re.search(r"\d", low) else r"\d+")
    is_abbreviation = lru_cache(_MOST_KNOWN)(partial(_is_abbreviation, low))

    def test(text: str) -> bool:
        if has_letters(text_low := text.lower()) is None:
            return False
        # Names that only their numbers tell apart are many
        return low in text_low or is_abbreviation(numbers.sub("0", text[:_MAX_ABBREVIATED]))

    return test


def _is_abbreviation(low: str, text: str) -> bool:
    reached = {0}
    for word in re.findall(_WORDS, text):
        for start in sorted(reached, reverse=True):
            shared = commonprefix((low[start:], word.lower()))  # noqa: RUF071 - of words, which are no paths
            reached.update(range(start + 1, start + len(shared) + 1))
    return len(low) > 1 and len(low) in reached


def _asks_for_quasi(leaf: Word | FieldComparison) -> bool:
    if isinstance(leaf, Word):
        return is_quasi_jid(leaf.value.text) and split_jid(leaf.value.text) is not None
    if leaf.op in ("!=", "!~"):
        return False
    name = FIELD_BY_NAME[leaf.field.text.lower()].name
    if name == "flag":
        return any(value.text.lower() == Flag.QUASI for value in leaf.values)
    return name in _SHOW_QUASI_FIELDS
