"""Finds names with a similar spelling, also among very many ids."""

from collections.abc import Iterable

_PIECE = 4
_STRIDE = 2
_MOST_COMPARED = 200
_LEAST_ALIKE = 0.5
_LEAST_ALIKE_WORD = 0.6
_MAX_LENGTH = 100
_CONTAINED = 0.9
"""The least similarity of an id that contains the typed text."""


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The word that was meant, whole or begun; of equally near ones the first. None if none is near."""
    from difflib import get_close_matches  # only a mistake needs it

    low, known = word.lower()[:_MAX_LENGTH], {one.lower(): one for one in words}
    alike = get_close_matches(low, known, n=len(known) or 1, cutoff=_LEAST_ALIKE_WORD)
    return min(
        (known[one] for one in known if one in alike), key=lambda one: _slips(low, one.lower()), default=None
    )


def _slips(typed: str, word: str) -> int:
    """How many letters to add, drop, change or swap so that `typed` is a word or its beginning."""
    older, before = list[int](), list(range(len(word) + 1))
    for row, char in enumerate(typed, 1):
        now = [row]
        for at, other in enumerate(word, 1):
            least = min(before[at] + 1, now[-1] + 1, before[at - 1] + (char != other))
            is_swap = min(row, at) > 1 and (char, typed[row - 2]) == (word[at - 2], other)
            now.append(min(least, older[at - 2] + 1) if is_swap else least)
        older, before = before, now
    return min(before[1:])


def near(thing: str, ids: Iterable[str], n: int = 3) -> tuple[tuple[str, float], ...]:
    """The up to `n` ids spelled most like `thing`, best first, with how much, from 0 to 1.

    `thing` may be an id with typing errors, a part of one, or one that was cut. Ids are long and random, so
    the one that is meant shares some pieces of four characters with what was typed; only those that share
    the most are compared in full. Takes tens of milliseconds for 100,000 ids.
    """
    low = thing.strip().lower()[:_MAX_LENGTH]
    pieces = _pieces(low)
    shared: dict[int, list[str]] = {}
    for id_ in ids:
        id_low = id_.lower()
        count = 0
        for piece in pieces:
            if piece in id_low:
                count += 1
        if count:
            shared.setdefault(count, []).append(id_)
    compared: list[str] = []
    for count in sorted(shared, reverse=True):
        compared += shared[count][: _MOST_COMPARED - len(compared)]
    scored = [(id_, _alike(low, id_.lower())) for id_ in compared]
    good = [item for item in scored if item[1] >= _LEAST_ALIKE]
    return tuple(sorted(good, key=lambda item: (-item[1], item[0]))[:n])


def _pieces(text: str) -> frozenset[str]:
    """Overlapping pieces of the parts; of an id with several only of the first two, which are random."""
    parts = [part for part in text.split("-") if part][:2]
    return frozenset(
        part[at : at + _PIECE] for part in parts for at in range(0, max(len(part) - _PIECE, 0) + 1, _STRIDE)
    )


def _alike(low: str, id_low: str) -> float:
    """How much `low` is like an id or some part of it, from 0 to 1."""
    if low in id_low:
        return _CONTAINED + (1 - _CONTAINED) * len(low) / len(id_low)
    others = {id_low, id_low[: len(low)], *(id_low.split("-") if "-" not in low else ())}
    from difflib import SequenceMatcher  # only a mistake needs it

    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(low)
    best = 0.0
    for other in others:
        matcher.set_seq1(other)
        if matcher.real_quick_ratio() >= _LEAST_ALIKE and matcher.quick_ratio() >= _LEAST_ALIKE:
            best = max(best, matcher.ratio())
    return best
