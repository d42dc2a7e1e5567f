"""What is asked about an ad of HTCondor, and what comes of it: an expression, and its value.

An expression is written with nothing but what `formats.ad_expressions` lets through.
"""

import msgspec


class AdQuestion(msgspec.Struct, frozen=True, gc=False):
    """An expression, and those that it refers to, by name."""

    expression: str
    scope: tuple[tuple[str, str], ...] = ()


class AdAnswer(msgspec.Struct, frozen=True, gc=False):
    """The value of an expression.

    `text` is the value as it is written in ads, `undefined` and `error` among them. `holds` says whether it
    counts as true, None where it is no truth. `rest` is what remains to be known of an expression whose value
    depends on more than its ad. `failed` says why there is no value, "" where there is one.
    """

    text: str = ""
    holds: bool | None = None
    rest: str = ""
    failed: str = ""
