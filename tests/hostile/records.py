"""Records of every kind with hostile text in each of their fields, new ones too: they are made of types."""

from collections.abc import Callable
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, NewType, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from jobtui.model.ids import JobId
from tests.builders import ago

AnyRecord = TypeVar("AnyRecord")
hints_of: Callable[[Any], dict[str, Any]] = cache(get_type_hints)
DEEPEST = 3
"""Records within records that are filled too."""


def hostile(kind: type[AnyRecord], text: str, /, **fields: Any) -> AnyRecord:
    """A record of this kind: `text` in every field that takes one, lists with an item, times a while ago."""
    return _filled(kind, text, 0, fields)


def _filled(kind: type[AnyRecord], text: str, depth: int, fields: dict[str, Any]) -> AnyRecord:
    hints = hints_of(kind)
    names = _field_names(kind)
    values = {name: _value(hints[name], text, depth) for name in names if name not in fields}
    return kind(**values, **fields)


def _field_names(kind: type[object]) -> tuple[str, ...]:
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_fields__
    return tuple(getattr(kind, "_fields", ()))


def _value(hint: Any, text: str, depth: int) -> Any:
    """Something of this type, as hostile as it can be."""
    if isinstance(hint, NewType):
        if hint is JobId:
            return JobId(f"balsam/{text}")
        return text if hint.__supertype__ is str else ago(100)
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _value(next(part for part in get_args(hint) if part is not NoneType), text, depth)
    if origin is tuple:
        return _items(get_args(hint), text, depth)
    if origin in (list, frozenset, set):
        return origin([_value(get_args(hint)[0], text, depth)])
    if origin is dict or (isinstance(origin, type) and issubclass(origin, dict)):
        return {text: _value(get_args(hint)[1], text, depth)}
    return _plain(hint, text, depth)


def _items(parts: tuple[Any, ...], text: str, depth: int) -> tuple[Any, ...]:
    if len(parts) == 2 and parts[1] is Ellipsis:
        is_deep = depth >= DEEPEST and isinstance(parts[0], type) and bool(_field_names(parts[0]))
        return () if is_deep else (_value(parts[0], text, depth),)
    return tuple(_value(part, text, depth) for part in parts)


def _plain(hint: Any, text: str, depth: int) -> Any:
    if hint is Any or hint is object or hint is str:
        return text
    if hint in (int, float):
        return hint(3)
    if hint is bool:
        return False
    if hint is bytes:
        return text.encode("utf-8", "surrogatepass")
    if issubclass(hint, Enum):
        return next(iter(hint))
    return _filled(hint, text, depth + 1, {})
