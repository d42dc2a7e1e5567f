"""Masking of secrets in a text of many lines that belong together, such as a script."""

import re
from collections.abc import Iterable, Iterator

from jobtui.model.secrets import MASK, mask_text

_PRIVATE_BEGIN, _PRIVATE_END = re.compile("-----BEGIN [A-Z ]*PRIVATE KEY"), re.compile("-----END ")


def masked_lines(lines: Iterable[str]) -> Iterator[str]:
    """The same lines with what is secret in them masked, private keys as a whole."""
    is_private = False
    for line in lines:
        if is_private and not _PRIVATE_END.search(line):
            yield MASK
            continue
        is_private = _PRIVATE_BEGIN.search(line) is not None
        yield mask_text(line)
