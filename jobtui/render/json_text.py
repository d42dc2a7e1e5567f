"""A decoded JSON document, or the text of one, as lines to be read. Masked and safe."""

import json
from collections.abc import Iterator

from jobtui.model.secrets import mask_document
from jobtui.render.text import show

MOST_LINES = 5_000
INDENT = 2


def document_lines(document: object, most: int = MOST_LINES) -> Iterator[str]:
    """The lines of a document, and a last one that says how many more there are."""
    try:
        text = json.dumps(mask_document(document), indent=INDENT, ensure_ascii=False, default=str)
    except (ValueError, RecursionError) as error:
        yield f"cannot be shown: {show(str(error))}"
        return
    lines = text.split("\n")
    yield from map(show, lines[:most])
    if len(lines) > most:
        yield f"… {len(lines) - most:,} more lines"


def formatted(text: str, most: int = MOST_LINES) -> list[str] | None:
    """The text of a JSON document, formatted anew; None when it is none."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return list(document_lines(document, most))
