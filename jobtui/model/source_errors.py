"""How a source as a whole fails."""


class SourceError(Exception):
    """A source as a whole could not be read. The text says what failed, where, and what to do."""


class SourceMissing(SourceError):
    """The source is not there."""


class SourceDenied(SourceError):
    """The source is there and may not be read."""


class SourceUnreachable(SourceError):
    """The source did not answer, or broke off."""
