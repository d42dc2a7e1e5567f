"""The filter language for jobs: one for the table, the one-shot commands and the palette.

Quasi jobs, which are only records of compute calls, are hidden unless the filter asks for them: with
`quasi:`, `flag:quasi`, a comparison of `id` or `model`, or a whole id. `FilterError` explains a mistake.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from os.path import commonprefix

from jobtui.analysis.filter_fields import (
    FIELD_BY_NAME,
    FIELDS,
    RECORD_ONLY,
    STATUS_WORDS,
    STUCK,
    VALUE_WORDS,
    FilterContext,
    Test,
    make_test,
)
from jobtui.analysis.filter_syntax import (
    All,
    Comparison,
    FilterError,
    Node,
    Value,
    Word,
    compile_node,
    leaves,
    parse_nodes,
)
from jobtui.analysis.flags import Flag, needs_person
from jobtui.model.clock import Nanos
from jobtui.model.ids import is_quasi_jid, jid_of_run_dir, split_container, split_jid
from jobtui.model.jobs import Job

__all__ = ["Filter", "FilterContext", "FilterError", "complete", "ids_beginning", "parse", "token_span"]

_NOTHING_KNOWN: Mapping[str, Iterable[str]] = {}
# patterns that few filters need are kept as text: `re` compiles each when it is used first, and remembers it
_VALUE_HEAD = r"(?P<head>(?P<field>\w+|%)(?:!=|<=|>=|[:=<>])(?:[^,\"]*,)*)(?P<begun>[^,\"]*)"
_PLAIN_VALUE = r"[\w.@/+\-]+"
_WORDS = r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+|[^\W_]"
"""The words of a text, also of one joinedLikeThis."""
_MAX_ABBREVIATED = 200
LEAST_ID = 3
MOST_OFFERED = 200
STATE_WORDS = frozenset(
    {"pending", "queued", "waiting", "running", "completed", "done", "failed", "canceled", "cancelled"}
)
"""Words that alone also mean a state. In quotes they are only searched for."""
_SHOW_QUASI_FIELDS = frozenset({"quasi", "id", "model"})


class Filter:
    """A parsed filter. Its `str` parses to an equal filter."""

    __slots__ = ("_node", "_test", "shows_quasi")

    def __init__(self, node: Node) -> None:
        self._node = node
        self._test: Test = compile_node(node, _word_test, make_test)
        self.shows_quasi = any(_asks_for_quasi(leaf) for leaf, negated in leaves(node) if not negated)

    @property
    def is_empty(self) -> bool:
        return self._node == All(())

    def matches(self, job: Job, now: Nanos, context: FilterContext = RECORD_ONLY) -> bool:
        if job.is_quasi and not self.shows_quasi:
            return False
        return self._test(job, context.now_at(job.source, now), context)

    def select(self, jobs: Iterable[Job], now: Nanos, context: FilterContext = RECORD_ONLY) -> list[Job]:
        return [job for job in jobs if self.matches(job, now, context)]

    def __str__(self) -> str:
        return str(self._node)

    def __repr__(self) -> str:
        return f"Filter({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filter) and self._node == other._node

    def __hash__(self) -> int:
        return hash(self._node)


def parse(text: str) -> Filter:
    """The filter of a text. Raises FilterError and nothing else."""
    return Filter(parse_nodes(text))


def token_span(text: str, cursor: int) -> tuple[int, int]:
    cursor = min(max(cursor, 0), len(text))
    start = cursor
    while start > 0 and not text[start - 1].isspace() and text[start - 1] not in "(":
        start -= 1
    return (start + 1, cursor) if text[start:cursor].startswith("-") else (start, cursor)


def complete(text: str, cursor: int, known: Mapping[str, Iterable[str]] = _NOTHING_KNOWN) -> list[str]:
    """The completions of the token that ends at `cursor`: fields, or values of the field before it.

    `known` are values to offer for fields with free text, by the field's name: apps, users, hosts.
    """
    start, end = token_span(text, cursor)
    token = text[start:end]
    found = re.fullmatch(_VALUE_HEAD, token, re.ASCII)
    if found is None:
        names = [name + ":" for field in FIELDS for name in field.names if name.startswith(token.lower())]
        return names or ids_beginning(token, known)
    field = FIELD_BY_NAME.get(found["field"].lower())
    if field is None:
        return []
    begun = found["begun"].lower()
    words = VALUE_WORDS.get(field.kind) or known.get(field.name, ())
    fitting = islice((word for word in words if word.lower().startswith(begun)), MOST_OFFERED)
    plain = re.compile(_PLAIN_VALUE)
    values = (word if plain.fullmatch(word) else str(Value(word, quoted=True)) for word in fitting)
    return [found["head"] + value for value in values]


def ids_beginning(text: str, known: Mapping[str, Iterable[str]]) -> list[str]:
    """Known ids that begin so; none for fewer than LEAST_ID characters, as most would be chance."""
    ids = known.get("id", ()) if len(text) >= LEAST_ID else ()
    return [*islice((one for one in ids if one.startswith(text) and one.isprintable()), MOST_OFFERED)]


def _word_test(node: Word) -> Test:
    word = node.value.text
    if job_id := word if split_jid(word) else jid_of_run_dir(word):
        return lambda job, now, context: job.id == job_id
    if container := split_container(word):
        return lambda job, now, context: job.owner == container.uid
    low = word.lower()
    if node.value.quoted:
        return lambda job, now, context: low in _haystack(job)
    if low == STUCK:
        return lambda job, now, context: needs_person(job, now) or low in _haystack(job)
    states = STATUS_WORDS[low] if low in STATE_WORDS else frozenset()
    texts_of = attrgetter("model", "app", "name")

    def test(job: Job, now: Nanos, context: FilterContext) -> bool:
        if job.status in states or low in _haystack(job):
            return True
        # ids are left out: nearly anything can be found in random letters
        return any(text and _is_abbreviation(low, text) for text in texts_of(job))

    return test


def _haystack(job: Job) -> str:
    return f"{job.id}\n{job.owner}\n{job.name or ''}\n{job.app}\n{job.model}".lower()


@lru_cache(maxsize=32768)
def _is_abbreviation(low: str, text: str) -> bool:
    """Whether `low` is made of beginnings of words of a text, in order: "hwr" of heightWeightReport."""
    at = -1
    text_low = text.lower()
    for char in low:  # most texts lack a letter, which is found out cheaply
        at = text_low.find(char, at + 1)
        if at < 0:
            return False
    reached = {0}
    for word in re.findall(_WORDS, text[:_MAX_ABBREVIATED]):
        for start in sorted(reached, reverse=True):
            shared = commonprefix((low[start:], word.lower()))  # noqa: RUF071 - of words, which are no paths
            reached.update(range(start + 1, start + len(shared) + 1))
    return len(low) > 1 and len(low) in reached


def _asks_for_quasi(leaf: Word | Comparison) -> bool:
    if isinstance(leaf, Word):
        return is_quasi_jid(leaf.value.text) and split_jid(leaf.value.text) is not None
    if leaf.op in ("!=", "!~"):
        return False
    name = FIELD_BY_NAME[leaf.field.text.lower()].name
    if name == "flag":
        return any(value.text.lower() == Flag.QUASI for value in leaf.values)
    return name in _SHOW_QUASI_FIELDS
