"""How a source as a whole fails."""

from collections.abc import Mapping


class SourceError(Exception):
    """A source as a whole could not be read. The text says what failed, where, and what to do."""


class SourceMissing(SourceError):
    """The source is not there."""


class SourceDenied(SourceError):
    """The source is there and may not be read."""


class SourceUnreachable(SourceError):
    """The source did not answer, or broke off."""


KINDS: Mapping[str, type[SourceError]] = {
    "denied": SourceDenied, "missing": SourceMissing, "unreachable": SourceUnreachable, "error": SourceError,
}  # fmt: skip
"""By their words in tables."""
