"""What may be meant by a word that nothing is called."""

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the nearest right one, or nothing when none is near."""
    from difflib import get_close_matches  # only ever needed on the way out

    found = get_close_matches(word, list(known), n=1, cutoff=0.55)
    return f'; did you mean "{found[0]}"?' if found else ""
