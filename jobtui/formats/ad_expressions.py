"""Expressions in ads of HTCondor: their words, their clauses, and which of them may be evaluated.

An ad is written by any user. So an expression is handed to nobody unless it is short, flat and calls only
functions that compute, itself and all it refers to; and it is handed over written anew, out of the words
that were understood here.
The language: https://htcondor.readthedocs.io/en/latest/classads/classad-mechanism.html
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from jobtui.formats.class_ads import ENVIRONMENTS
from jobtui.model.ad_values import AdQuestion
from jobtui.model.secrets import is_secret_key

MOST_CHARACTERS = 4_096
"""Of one expression."""
MOST_WRITTEN_OUT = 32_768
"""Characters of an expression in which each name was replaced by what it stands for."""
DEEPEST = 64
"""Parentheses within each other, and names that stand for names."""
FUNCTIONS = frozenset({
    "allcompare", "anycompare", "avg", "bool", "ceiling", "floor", "identicalmember",
    "ifthenelse", "int", "interval", "isboolean", "iserror", "isinteger", "islist", "isreal",
    "isstring", "isundefined", "max", "member", "min", "pow", "quantize", "real", "regexp",
    "regexpmember", "round", "size", "strcat", "strcmp", "stricmp", "string", "substr", "sum", "time",
    "tolower", "toupper", "versioncmp", "versioneq", "versionge", "versiongt", "versionle", "versionlt",
})  # fmt: skip
"""What computes, and neither looks outside nor makes more of a text than there was."""
WORDS = frozenset(["true", "false", "undefined", "error", "is", "isnt"])
OTHER_ADS = frozenset({"target", "other"})
OWN_AD = "my"
_WHOLE_ADS = frozenset(["self", "parent", "root", "toplevel"])
_CLOCK = "currenttime"
_OPENING, _CLOSING = frozenset("({"), frozenset(")}")
_WORD = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?)(?![\w.])|(?P<name>[A-Za-z_]\w*)"
    r'|(?P<string>"(?:[^"\\\0]|\\[^\0])*")'
    r"|(?P<sign>=\?=|=!=|>>>|==|!=|<=|>=|&&|\|\||<<|>>|\?:|[-+*/%<>!~&|^?:(){},.]))\s*",
    re.ASCII,
)


class Unfit(Exception):
    """An expression that is not handed over; the text says why."""


class Word(NamedTuple):
    """A word of an expression. `kind` is that of `_WORD`; it stands at `begin` up to `end`."""

    kind: str
    text: str
    begin: int
    end: int


def words_of(expression: str) -> tuple[Word, ...]:
    """The words of an expression. Raises Unfit."""
    if len(expression) > MOST_CHARACTERS:
        raise Unfit(f"is longer than {MOST_CHARACTERS:,} characters")
    if not expression.isascii() and any("\ud800" <= char <= "\udfff" for char in expression):
        raise Unfit("has characters that are none")
    words = tuple(_words(expression))
    _check_depth(words)
    return words


def _words(expression: str) -> Iterator[Word]:
    at = 0
    while at < len(expression):
        found = _WORD.match(expression, at)
        if found is None or found.lastgroup is None:
            raise Unfit(f"is not understood at its character {at + 1}")
        yield Word(found.lastgroup, found[found.lastgroup], *found.span(found.lastgroup))
        at = found.end()


def _check_depth(words: Sequence[Word]) -> None:
    depth = 0
    for word in words:
        depth += (word.text in _OPENING) - (word.text in _CLOSING)
        if depth > DEEPEST:
            raise Unfit(f"has more than {DEEPEST} parentheses within each other")


def is_plain(expression: str) -> bool:
    """Whether an expression is a value already."""
    try:
        words = words_of(expression)
    except Unfit:
        return False
    signed = words[1:] if words and words[0].text == "-" else words
    return len(signed) == 1 and (signed[0].kind != "name" or signed[0].text.lower() in WORDS)


def clauses_of(words: Sequence[Word], sign: str) -> list[Sequence[Word]]:
    """The parts between which a sign, `&&` or `||`, stands, without the parentheses around them."""
    words = _bared(words)
    levels = list(_levels(words))
    places = [at for at, word in enumerate(words) if not levels[at] and word.text == sign]
    weaker = ("?", "?:", "||") if sign == "&&" else ("?", "?:")
    if not places or any(not levels[at] and word.text in weaker for at, word in enumerate(words)):
        return [words]
    parts = (words[a + 1 : b] for a, b in zip([-1, *places], [*places, len(words)], strict=True))
    return [clause for part in parts for clause in clauses_of(part, sign)]


def _bared(words: Sequence[Word]) -> Sequence[Word]:
    while len(words) > 2 and words[0].text == "(" and words[-1].text == ")":
        if 0 in list(_levels(words))[1:-1]:
            break
        words = words[1:-1]
    return words


def _levels(words: Sequence[Word]) -> Iterator[int]:
    """How many parentheses are around each word; those that stand outermost have none around them."""
    level = 0
    for word in words:
        level -= word.text in _CLOSING
        yield level
        level += word.text in _OPENING


class Ad:
    """The expressions of one ad. `now` is what its clock shows, in seconds since the epoch."""

    def __init__(self, expressions: Mapping[str, str], now: int) -> None:
        self.expressions = {name.lower(): expression for name, expression in expressions.items()}
        self._now = now
        self._known: dict[str, tuple[Word, ...]] = {}

    def words(self, name: str) -> tuple[Word, ...]:
        """The words of an attribute that it has. Raises Unfit."""
        if name not in self._known:
            self._known[name] = words_of(self.expressions[name])
        return self._known[name]

    def question(self, words: Sequence[Word]) -> AdQuestion:
        """What is to be asked to have the value of an expression. Raises Unfit."""
        sizes: dict[str, int] = {}
        self._size(words, (), sizes)
        scope = ((name, self._written(self.words(name))) for name in sorted(sizes))
        return AdQuestion(self._written(words), tuple(scope))

    def _size(self, words: Sequence[Word], path: tuple[str, ...], sizes: dict[str, int]) -> int:
        """How long an expression is, written out; `sizes` has that of each name that it refers to."""
        total = len(self._written(words))
        for name in self._references(words):
            if name in path:
                raise Unfit("refers to itself")
            if len(path) >= DEEPEST:
                raise Unfit(f"has more than {DEEPEST} names that stand for names")
            if name not in sizes:
                try:
                    sizes[name] = self._size(self.words(name), (*path, name), sizes)
                except Unfit as error:
                    raise error if path else Unfit(f"refers to {name}, which {error}") from None
            total += sizes[name]
            if total > MOST_WRITTEN_OUT:
                raise Unfit(f"is longer than {MOST_WRITTEN_OUT:,} characters with all it refers to")
        return total

    def _references(self, words: Sequence[Word]) -> Iterator[str]:
        """The attributes of its own that an expression refers to."""
        for at, word in enumerate(words):
            if word.kind != "name":
                if word.text == "." and (not at or words[at - 1].text.lower() not in (*OTHER_ADS, OWN_AD)):
                    raise Unfit("looks into an ad within the ad")
                continue
            if (name := word.text.lower()) in WORDS:
                continue
            after = words[at + 1].text if at + 1 < len(words) else ""
            of = words[at - 2].text.lower() if at > 1 and words[at - 1].text == "." else OWN_AD
            if name in _WHOLE_ADS:
                raise Unfit("takes an ad as a whole")
            if after == "(":
                if name not in FUNCTIONS:
                    raise Unfit(f"calls {word.text}, which is not evaluated here")
            elif after != "." and of == OWN_AD and name in self.expressions:
                if name in ENVIRONMENTS or is_secret_key(word.text):
                    raise Unfit(f"refers to {word.text}, which may hold secrets")
                yield name

    def _written(self, words: Sequence[Word]) -> str:
        """An expression anew: the same words, the time where it is asked for."""
        texts = [str(self._now) if word.text.lower() == _CLOCK else word.text for word in words]
        for at, word in enumerate(words[:-2]):
            if word.text.lower() == "time" and words[at + 1].text == "(" and words[at + 2].text == ")":
                texts[at : at + 3] = str(self._now), "", ""
        return " ".join(filter(None, texts))
