"""Which lines of a log say the same, which go on from others, and how often values occur."""

import pytest

from jobtui.analysis.log_shapes import (
    Condition,
    Facet,
    continues,
    count_facets,
    goes_on,
    keeper,
    shape_of,
)
from jobtui.formats.levels import level_of
from jobtui.model.pages import LogLine

HEAD = "Nov 20 20:34:01 7 0 a/b.py:1:f "


def lines_of(*texts: str, origin: str = "x.log") -> list[LogLine]:
    return [
        LogLine(place=nth, end=nth + 1, text=text, size=1, level=level_of(text), origin=origin)
        for nth, text in enumerate(texts)
    ]


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        (f"{HEAD}_Op(run, pb5u) sent", "_Op(run, #) sent"),
        (f"{HEAD}_Op(run, kJWc) sent", "_Op(run, #) sent"),
        (f"{HEAD}new status=running u=EPRSqtUW", "new status=running u=#"),
        (f"{HEAD}GET /api/3 'a b' 200 0.3ms", "GET # # # #"),
        (f"{HEAD}LocalDriver idle", "LocalDriver idle"),
        ("no head, 7 words", "no head, # words"),
    ],
)
def test_a_shape_leaves_out_what_varies(text: str, shape: str) -> None:
    assert shape_of(lines_of(text)[0]) == shape


@pytest.mark.parametrize(
    ("before", "line", "is_one"),
    [
        (f"{HEAD}failed", "Traceback (most recent call last):", True),
        (f"{HEAD}GET /a/1", f"{HEAD}GET /a/2", True),
        (f"{HEAD}GET /a/1", f"{HEAD}end uri=/a/1 status=200", True),
        (f"{HEAD}GET /a/1", f"{HEAD}got a/1", False),
        (f"{HEAD}op 1 idle", f"{HEAD}op 2 idle", True),
        (f"{HEAD}error=1 of 2", f"{HEAD}error=1 of 3", False),
        (f"{HEAD}HOME=/x", f"{HEAD}PATH=/y", True),
        ("HOME=/x", "export PATH=/y", True),
        (f"{HEAD}srj-s-PZGlnRfC export A='1'", f"{HEAD}srj-s-PZGlnRfC export B='x'", True),
        ("Traceback (most recent call last):", "  File 'x'", True),
        ("one", "other", False),
    ],
)
def test_which_lines_may_be_folded(before: str, line: str, is_one: bool) -> None:
    head, after = lines_of(before, line)
    assert goes_on(head, head, after) is is_one
    (elsewhere,) = lines_of(line, origin="y.log")
    assert goes_on(head, head, elsewhere) is (is_one and "GET" in before)
    assert not continues(head, elsewhere)


def test_values_are_counted_by_record_and_chosen() -> None:
    lines = lines_of(
        f"{HEAD}op=run status=error", "  because of status=odd", f"{HEAD}op=run status=ok", f"{HEAD}op=x idle"
    )
    found = {one.facet: one.records for one in count_facets(lines)}
    assert found[Facet("op", "run")] == 2
    assert found[Facet("status", "ok")] == 1
    assert Facet("status", "odd") not in found  # it is not the first line of its record
    assert Facet("log", "x.log") not in found  # all have it
    runs, error = Facet("op", "run"), Facet("level", "error")
    shown = keeper([Condition(runs, keeps=True), Condition(error, keeps=False)])
    assert [shown(line) for line in lines] == [False, False, True, False]
    either = keeper([Condition(runs, keeps=True), Condition(Facet("op", "x"), keeps=True)])
    assert [either(line) for line in lines] == [True, False, True, True]
