"""The grammar of filters: text to nodes, and nodes to tests. Fields and values are handed in.

filter := group { "or" group }
group  := term { ["and"] term }
term   := ("not" | "-") term | "(" filter ")" | word | field op values
op     := ":" "=" "!=" "<" "<=" ">" ">=" ":~" "!~"
values := value { "," value }          one regular expression after :~ and !~
word, value may be "quoted", with \" and \\ inside
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from jobtui.model.spelling import nearest

MAX_LENGTH = 4000
MAX_DEPTH = 40

_SPACE = re.compile(r"\s*")
_FIELD = re.compile(r"(?P<field>[A-Za-z_]\w*|%)(?P<op>!=|<=|>=|:~|!~|=~|~|:(?!//)|=|<|>)", re.ASCII)
_OPS = {"~": ":~", "=~": ":~"}
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\])')


class FilterError(Exception):
    """A mistake in a filter: what it is, its range in the text, and the nearest correct word."""

    def __init__(self, start: int, end: int, message: str, nearest: str | None = None) -> None:
        super().__init__(message)
        self.start = start
        self.end = end
        self.message = message
        self.nearest = nearest

    def __str__(self) -> str:
        return f"{self.message}; did you mean {self.nearest}?" if self.nearest else self.message


class Value(NamedTuple):
    """One word or value as written, without its quotes."""

    text: str
    quoted: bool = False
    start: int = 0
    end: int = 0


class Word(NamedTuple):
    """A word to be found somewhere in the job."""

    value: Value


class FieldComparison(NamedTuple):
    field: Value
    op: str
    values: tuple[Value, ...]


class Not(NamedTuple):
    node: "Node"


class All(NamedTuple):
    """Everything that matches all of `nodes`; everything if there are none."""

    nodes: tuple["Node", ...]


class Any(NamedTuple):
    """Everything that matches at least one of `nodes`."""

    nodes: tuple["Node", ...]


Node = Word | FieldComparison | Not | All | Any


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def parse_nodes(text: str) -> Node:
    """The nodes of a filter. Raises FilterError and nothing else."""
    if len(text) > MAX_LENGTH:
        raise FilterError(MAX_LENGTH, len(text), f"a filter has at most {MAX_LENGTH} characters")
    reader = _Reader(text)
    node = reader.read_any(0)
    if not reader.at_end():
        raise FilterError(reader.at, reader.at + 1, "this ) has no (")
    return node


def leaves(node: Node) -> Iterator[tuple[Word | FieldComparison, bool]]:
    stack: list[tuple[Node, bool]] = [(node, False)]
    while stack:
        node, negated = stack.pop()
        if isinstance(node, Not):
            stack.append((node.node, not negated))
        elif isinstance(node, All | Any):
            stack.extend((part, negated) for part in node.nodes)
        else:
            yield node, negated


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0
        self._skip_space()

    def at_end(self) -> bool:
        return self.at >= len(self._text)

    def read_any(self, depth: int) -> Node:
        nodes = [self._read_all(depth)]
        while (start := self.at) is not None and self._take_keyword("or"):
            nodes.append(self._read_all(depth))
            if not all(_has_terms(node) for node in nodes[-2:]):
                raise FilterError(start, start + 2, "nothing on one side of or")
        return nodes[0] if len(nodes) == 1 else Any(tuple(nodes))

    def _read_all(self, depth: int) -> Node:
        nodes: list[Node] = []
        while not self.at_end() and self._text[self.at] != ")" and not self._sees_keyword("or"):
            if nodes and self._take_keyword("and") and self.at_end():
                break
            nodes.append(self._read_term(depth))
        return nodes[0] if len(nodes) == 1 else All(tuple(nodes))

    def _read_term(self, depth: int) -> Node:
        start = self.at
        negated = False
        while self._take_negation():
            negated = not negated
        if self.at_end() or self._text[self.at] == ")" or (self.at > start and self._sees_keyword("or")):
            raise FilterError(start, max(self.at, start + 1), "nothing after not")
        node = self._read_group(depth) if self._text[self.at] == "(" else self._read_simple()
        self._skip_space()
        return Not(node) if negated else node

    def _read_group(self, depth: int) -> Node:
        start = self.at
        if depth >= MAX_DEPTH:
            raise FilterError(start, start + 1, f"at most {MAX_DEPTH} ( may be open")
        self.at += 1
        self._skip_space()
        node = self.read_any(depth + 1)
        if self.at_end():
            raise FilterError(start, start + 1, "this ( is not closed")
        if not _has_terms(node):
            raise FilterError(start, self.at + 1, "nothing in these ( )")
        self.at += 1
        return node

    def _read_simple(self) -> Node:
        field = _FIELD.match(self._text, self.at)
        if field is None:
            return Word(self._read_value(stop_at_comma=False))
        name = Value(field["field"], start=field.start("field"), end=field.end("field"))
        op = _OPS.get(field["op"], field["op"])
        self.at = field.end()
        is_pattern = op.endswith("~")
        values = [self._read_value(stop_at_comma=not is_pattern)]
        while not is_pattern and self._text.startswith(",", self.at):
            self.at += 1
            values.append(self._read_value(stop_at_comma=True))
        for value in values:
            if not value.text and not value.quoted:
                end, message = max(value.end, field.end()), f"a value is missing after {name.text}{op}"
                raise FilterError(field.start(), end, message)
        return FieldComparison(name, op, tuple(values))

    def _read_value(self, *, stop_at_comma: bool) -> Value:
        if self._text.startswith('"', self.at):
            found = _QUOTED.match(self._text, self.at)
            if found is None:
                raise FilterError(self.at, len(self._text), "this quote is not closed")
            self.at = found.end()
            return Value(_ESCAPED.sub(r"\1", found[1]), quoted=True, start=found.start(), end=found.end())
        start = self.at
        open_brackets = 0
        while self.at < len(self._text):
            char = self._text[self.at]
            if char.isspace() or (char == "," and stop_at_comma) or (char == ")" and not open_brackets):
                break
            open_brackets += (char == "(") - (char == ")")
            self.at += 1
        return Value(self._text[start : self.at], start=start, end=self.at)

    def _take_negation(self) -> bool:
        if self._take_keyword("not"):
            return True
        after = self._text[self.at + 1 : self.at + 2]
        if not self._text.startswith("-", self.at) or not after or after.isspace():
            return False
        self.at += 1
        return True

    def _sees_keyword(self, word: str) -> bool:
        end = self.at + len(word)
        if self._text[self.at : end].lower() != word:
            return False
        return end >= len(self._text) or self._text[end].isspace() or self._text[end] in "()"

    def _take_keyword(self, word: str) -> bool:
        if not self._sees_keyword(word):
            return False
        self.at += len(word)
        self._skip_space()
        return True

    def _skip_space(self) -> None:
        found = _SPACE.match(self._text, self.at)
        self.at = found.end() if found else self.at


def _has_terms(node: Node) -> bool:
    return not isinstance(node, All) or bool(node.nodes)


Record = TypeVar("Record")
Test = Callable[[Record], bool]
Texts = Callable[[Record], Iterable[str]]
TEXT_OPS = (":", "=", "!=")
YES_NO_WORDS: Mapping[str, bool] = {"yes": True, "true": True, "no": False, "false": False}


def compile_node(
    node: Node, word: Callable[[Word], Test[Record]], comparison: Callable[[FieldComparison], Test[Record]]
) -> Test[Record]:
    """The test of a record. Raises FilterError where `word` or `comparison` does."""
    if isinstance(node, Word):
        return word(node)
    if isinstance(node, FieldComparison):
        return comparison(node)
    if isinstance(node, Not):
        return negated(compile_node(node.node, word, comparison))
    tests = [compile_node(part, word, comparison) for part in node.nodes]
    if isinstance(node, Any) or len(tests) == 1:
        return any_of(tests)
    if len(tests) == 2:  # most have two words at the most, and this takes half as long
        first, second = tests
        return lambda record: first(record) and second(record)
    return lambda record: all(test(record) for test in tests)


def negated(test: Test[Record]) -> Test[Record]:
    return lambda record: not test(record)


def any_of(tests: Sequence[Test[Record]]) -> Test[Record]:
    return tests[0] if len(tests) == 1 else lambda record: any(test(record) for test in tests)


def word_test(node: Word, texts: Texts[Record]) -> Test[Record]:
    low = node.value.text.lower()
    return lambda record: any(low in text.lower() for text in texts(record))


def text_test(texts: Texts[Record], op: str, words: Sequence[str]) -> Test[Record]:
    if op == ":":
        return lambda record: any(word in text.lower() for text in texts(record) for word in words)
    found: Test[Record] = lambda record: any(text.lower() in words for text in texts(record))  # noqa: E731
    return found if op == "=" else lambda record: not found(record)


def check_text_op(node: FieldComparison, what: str) -> None:
    """Raise FilterError when something is asked of a text that only numbers can answer."""
    if node.op not in TEXT_OPS:
        message = f"{node.op} does not apply to {what}"
        raise FilterError(node.field.end, node.values[0].start, message, f"{node.field.text}:")


class TextFields(NamedTuple, Generic[Record]):
    """The fields of records that are texts, by name; `what` is what the records are called in mistakes.

    `others` are fields that are no texts, each with what makes the test of a comparison. `word` makes that of
    a word, which else is found in any of the texts. `attribute` gives the texts of a field that is not named.
    """

    what: str
    texts: Mapping[str, Texts[Record]]
    others: Mapping[str, Callable[[FieldComparison], Test[Record]]] = {}
    word: Callable[[Word], Test[Record]] | None = None
    attribute: Callable[[str], Texts[Record]] | None = None

    def parse(self, text: str) -> Test[Record]:
        """The test of a filter. Raises FilterError and nothing else."""
        word = self.word or (lambda node: word_test(node, self.said))
        return compile_node(parse_nodes(text), word, self.test)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.texts, *self.others)))

    def said(self, record: Record) -> Iterator[str]:
        for texts in self.texts.values():
            yield from texts(record)

    def values(self, name: str, records: Iterable[Record]) -> set[str]:
        texts = self.texts.get(name)
        return {text for record in records for text in texts(record) if text} if texts is not None else set()

    def test(self, node: FieldComparison) -> Test[Record]:
        """The test of a comparison. Raises FilterError."""
        name = node.field.text.lower()
        if (other := self.others.get(name)) is not None:
            return other(node)
        texts = self.texts.get(name)
        if texts is None:
            near = nearest(name, self.names)
            if self.attribute is None or near is not None:
                message = f"{self.what} have no field {node.field.text}"
                raise FilterError(node.field.start, node.field.end, message, near)
            texts = self.attribute(node.field.text)
        check_text_op(node, node.field.text)
        return text_test(texts, node.op, [value.text.lower() for value in node.values])
