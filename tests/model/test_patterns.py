"""Patterns that are compiled when they are first used."""

import re
from importlib import import_module

from jobtui.model.patterns import regex
from tests.sizes import PACKAGE, modules


def test_a_pattern_is_compiled_when_it_is_first_used() -> None:
    lazy, eager = regex(r"(?P<n>\d+)a", re.IGNORECASE), re.compile(r"(?P<n>\d+)a", re.IGNORECASE)
    assert (lazy.pattern, lazy.flags, dict(lazy.groupindex)) == (eager.pattern, eager.flags, {"n": 1})
    assert [found["n"] for found in lazy.finditer("1a 22A")] == ["1", "22"]
    assert regex(rb"\d").sub(b"", b"a1") == b"a"


def test_every_constant_of_a_module_can_be_compiled() -> None:
    lazy = type(regex(""))
    for name in modules(PACKAGE):
        for one in vars(import_module(name)).values():
            assert not isinstance(one, lazy) or re.compile(one.pattern, one.flags)
