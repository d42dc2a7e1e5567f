"""`report --plot`: the picture of a report, on a terminal and off."""

import re
from xml.etree import ElementTree

import pytest

from jobtui.analysis.reports.curves import Series, Window
from jobtui.commands.report import _chart, plot_lines
from jobtui.model.clock import SECOND, Nanos
from jobtui.render.chart_svg import chart_svg
from tests.commands.report_site import Site, site
from tests.conftest import NOW
from tests.hostile.texts import TEXTS, faults_in

__all__ = ["site"]
EVER = Window()


@pytest.fixture(autouse=True)
def columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """No terminal, and of the usual width."""
    monkeypatch.setenv("COLUMNS", "80")


def a_series(name: str, *values: float, unit: str = "jobs") -> Series:
    x = [Nanos(NOW - (len(values) - at) * 60 * SECOND) for at in range(len(values))]
    return Series(name, unit, x, list(values))


def test_utilization_is_drawn_over_what_is_available(site: Site) -> None:
    ran = site.report("utilization", "--plot", form="--plain")
    assert ran.code == 0, ran.err
    assert "utilization" in ran.out.splitlines()[0]
    assert "┄ nodes available" in ran.out
    assert "█" in ran.out
    assert "\x1b" not in ran.out
    assert all(len(line) <= 80 for line in ran.out.splitlines() if not line.startswith("note:"))


@pytest.mark.parametrize("what", ["throughput", "nodes", "states"])
def test_every_report_can_be_drawn(what: str, site: Site) -> None:
    ran = site.report(what, "--plot", form="--plain")
    assert ran.code == 0, ran.err
    assert re.search("[█▒\u2801-\u28ff]", ran.out)


@pytest.mark.parametrize("what", ["utilization", "throughput", "nodes", "states"])
def test_every_report_is_drawn_without_signs_that_ascii_has_not(
    what: str, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    ran = site.report(what, "--plot", form="--plain")
    assert ran.code == 0, ran.err
    assert ran.out.isascii()
    assert ran.out.count("\n") > 20


@pytest.mark.parametrize("what", ["utilization", "throughput", "nodes", "states"])
def test_every_report_is_a_picture_of_its_own(what: str, site: Site) -> None:
    ran = site.report(what, "--svg", form="--plain")
    assert ran.code == 0, ran.err
    picture = ElementTree.fromstring(ran.out)
    inside = {one.tag.partition("}")[2] for one in picture.iter()}
    assert {"svg", "path", "text", "line"} <= inside
    assert "href" not in ran.out
    assert "nan" not in ran.out


def test_a_picture_is_no_json(site: Site) -> None:
    ran = site.report("states", "--plot")
    assert ran.code == 2
    assert "leave out --json" in ran.err


def test_it_is_as_wide_as_columns_say(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    ran = site.report("throughput", "--plot", form="--plain")
    assert max(map(len, ran.out.splitlines()[1:-1])) == 50


def test_what_falls_below_0_is_said() -> None:
    lines = list(plot_lines([a_series("exact", 1, -2, 3)], EVER, NOW, colour=False))
    assert lines[-1] == "note: the lowest value is -2; what is below 0 is drawn at 0"


def test_nothing_to_draw_is_said() -> None:
    assert list(plot_lines([], EVER, NOW, colour=False)) == ["no points"]
    assert list(plot_lines([a_series("empty")], EVER, NOW, colour=False)) == ["empty: no points"]


def test_units_do_not_share_a_picture() -> None:
    both = [a_series("one", 1, 2), a_series("other", 3, unit="nodes")]
    heads = [
        line for line in plot_lines(both, EVER, NOW, colour=False) if line.endswith(("(jobs)", "(nodes)"))
    ]
    assert len(heads) == 2


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_names_cannot_drive_a_terminal(text: str) -> None:
    series = [a_series(text, 1, 2), a_series(f"{text}2", 2, 1)]
    for line in plot_lines(series, EVER, NOW, colour=False):
        assert not faults_in(line)
    chart, frame = _chart([a_series(text, 1, 2), a_series(f"{text}2", 2, 1)], EVER, NOW)
    drawn = "\n".join(chart_svg(chart, frame.since, frame.until))
    assert not faults_in(drawn.replace("\n", ""))
    ElementTree.fromstring(drawn)
