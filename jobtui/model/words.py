"""Numbers in words."""


def counted(count: int, word: str) -> str:
    """So many of what a word names: "1 span", "2,000 spans"."""
    return f"{count:,} {word}{'s' * (count != 1)}"
