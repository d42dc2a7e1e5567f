"""Masking of secrets in any text or document that is shown, exported or put into an error.

The rule (design.md, Rules 3): the value of every key whose name contains one of `SECRET_WORDS` is masked, and
agent ids are cut to four characters. Keys are found in dict reprs, JSON at any depth of escaping, shell
assignments and options, headers, query strings and `user:password@host`; prose is left alone. Log text is
cut and glued anywhere, so a value without an end is masked up to the next record or the end of its line.
Masking twice changes nothing more. Op ids are no secrets.
"""

import re
from collections.abc import Mapping

FULL_ID_LENGTH = 32
MASK = "***"
CUT = "…"
MAX_DEPTH = 100
"""Documents nested deeper are masked from there on, so that no input can exhaust the stack."""

AGENT_WORD = "agent[_-]?id"
SECRET_WORDS = f"token|secret|passw|otp|private|{AGENT_WORD}|api[_-]?key|authorization|credential"

_SECRET_KEY = re.compile(SECRET_WORDS, re.IGNORECASE | re.ASCII)
_AGENT_GATE = re.compile(r"agent(?:[_-]?id|-local/|\\*['\"]?[:=])", re.ASCII)
_KEY_GATE = re.compile("api[_-]?key")


def mask_text(text: str) -> str:
    """`text` with every secret in it masked. Never raises."""
    # the scan is imported where it is needed first: its patterns are a good part of what starting costs
    low = text.lower()
    if "srj-" in low or "'" in low[: FULL_ID_LENGTH + 2]:
        from jobtui.model.secret_scan import without_torn

        text = without_torn(text)
    # plain substring tests, because nearly every line ends here and a pattern takes twice as long
    if (
        "cre" in low  # secret, credential
        or "token" in low
        or "otp" in low
        or "passw" in low
        or "private" in low
        or "authoriz" in low
        or "://" in low
        or "bearer" in low
        or ("agent" in low and _AGENT_GATE.search(low))
        or ("key" in low and _KEY_GATE.search(low))
    ):
        from jobtui.model.secret_scan import masked

        return masked(text)
    return text


def mask_document(value: object) -> object:
    """A copy of a decoded JSON document: values under secret keys masked, all text through `mask_text`.

    Also knows lists of `{"name": key, "value": ...}` and `{"key": key, "value": ...}`, in which environments
    and attributes are often kept.
    """
    return _mask_value(value, 0)


def is_secret_key(key: str) -> bool:
    """Whether the value of a key with this name is a secret."""
    return _SECRET_KEY.search(key) is not None


def _mask_value(value: object, depth: int) -> object:
    if isinstance(value, str):
        return mask_text(value)
    if not isinstance(value, Mapping | list | tuple):
        return value
    if depth >= MAX_DEPTH:
        return MASK
    if isinstance(value, Mapping):
        return {
            _mask_value(key, depth): _mask_entry(_key_name(value, key), entry, depth + 1)
            for key, entry in value.items()
        }
    entries = (_mask_value(entry, depth + 1) for entry in value)
    return tuple(entries) if isinstance(value, tuple) else list(entries)


def _key_name(mapping: Mapping[object, object], key: object) -> str:
    """The name that says whether the entry is secret: its key, or what stands beside it as name or key."""
    name = mapping.get("name", mapping.get("key")) if key == "value" else key
    return name if isinstance(name, str) else ""


def _mask_entry(name: str, value: object, depth: int) -> object:
    if not is_secret_key(name):
        return _mask_value(value, depth)
    if value is None or isinstance(value, bool):
        return value
    if not isinstance(value, str):
        return MASK
    from jobtui.model.secret_scan import replacement

    return replacement(value, name)
