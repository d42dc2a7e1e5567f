"""The JSON contract of the commands, as `tests/fixtures/contract.toml` has it, as a checker."""

from types import GenericAlias
from typing import Annotated, Any, Literal, Optional

from msgspec import Meta, convert, defstruct

from jobtui.model.jobs import Category
from jobtui.model.verdicts import Code
from tests.rows import table

TABLES = table("contract")
WHOLE: Any = Annotated[int, Meta(ge=0)]
KINDS: dict[str, Any] = {
    "text": str, "number": float, "mapping": dict, "counts": dict[str, WHOLE], "whole": WHOLE,
    "share": Annotated[float, Meta(ge=0, le=1)], "verdict": Code, "category": Category,
    "time": Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")],
}  # fmt: skip
"""A time is RFC 3339 in UTC, with `Z`."""


def kind_of(told: Any) -> Any:
    if isinstance(told, dict):
        return defstruct("Record", [(name, kind_of(one)) for name, one in told.items()])
    if isinstance(told, list):
        return GenericAlias(list, (kind_of(told[0]),))
    words = told.removesuffix("?")
    found = KINDS.get(words) or (kind_of(TABLES[words]) if words in TABLES else Literal[tuple(words.split())])
    return found if words == told else Optional[found]  # noqa: UP045 - it is no type for mypy


def check_document(document: dict[str, Any], command: str) -> None:
    """Raises msgspec.ValidationError unless all of these are in it, of these kinds; others may be."""
    names = list(document)
    assert (names[0], names[-1]) == ("schema", "sources")
    assert document["schema"] == f"jobtui/{command}/1"
    convert(document, kind_of(TABLES["commands"][command] | {"sources": ["source"]}))
