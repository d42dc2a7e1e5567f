"""Tests of any kind of record out of the nodes of a filter: what words and fields mean is handed in."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from jobtui.analysis.filter_syntax import All, Comparison, FilterError, Node, Not, Word

Record = TypeVar("Record")
Test = Callable[[Record], bool]
Texts = Callable[[Record], Iterable[str]]
TEXT_OPS = (":", "=", "!=")


def compile_node(
    node: Node, word: Callable[[Word], Test[Record]], comparison: Callable[[Comparison], Test[Record]]
) -> Test[Record]:
    """What tells whether a record passes. Raises FilterError where `word` or `comparison` does."""
    if isinstance(node, Word):
        return word(node)
    if isinstance(node, Comparison):
        return comparison(node)
    if isinstance(node, Not):
        inner = compile_node(node.node, word, comparison)
        return lambda record: not inner(record)
    tests = [compile_node(part, word, comparison) for part in node.nodes]
    if isinstance(node, All):
        return lambda record: all(test(record) for test in tests)
    return lambda record: any(test(record) for test in tests)


def word_test(node: Word, texts: Texts[Record]) -> Test[Record]:
    """Whether a word is found in one of the texts, in any case of letters."""
    low = node.value.text.lower()
    return lambda record: any(low in text.lower() for text in texts(record))


def text_test(texts: Texts[Record], op: str, words: Sequence[str]) -> Test[Record]:
    """Whether one of the texts holds one of the words, which are in small letters, is one, or is none."""
    if op == ":":
        return lambda record: any(word in text.lower() for text in texts(record) for word in words)
    found: Test[Record] = lambda record: any(text.lower() in words for text in texts(record))  # noqa: E731
    return found if op == "=" else lambda record: not found(record)


def check_text_op(node: Comparison, what: str) -> None:
    """Raise FilterError when something is asked of a text that only numbers can answer."""
    if node.op not in TEXT_OPS:
        message = f"{node.op} cannot be asked of {what}"
        raise FilterError(node.field.end, node.values[0].start, message, f"{node.field.text}:")
