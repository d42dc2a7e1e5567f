"""The widgets that are a line or two of words, and the text pane."""

import pytest

from jobtui.actions import Hint
from jobtui.analysis.counts import Counts
from jobtui.model.clock import FixedClock
from jobtui.model.jobs import JobStatus
from jobtui.render.spans import Paragraph, width_of
from jobtui.render.text import safe, width, wrapped
from jobtui.widgets.frame import Header, KeyLine, RuleLine
from jobtui.widgets.job_facts import JobFacts
from jobtui.widgets.row_view import Move
from jobtui.widgets.text_pane import TextPane
from tests.builders import HOSTILE, a_job, ago, job_id
from tests.widgets.widget_app import WidgetApp, text_of

COUNTS = Counts({status: 0 for status in JobStatus} | {JobStatus.RUNNING: 12, JobStatus.PENDING: 3}, 7)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (120, ["12 running", "3 pending", "2 need attention", "7 failed 1h", "21:00:00Z"]),
        (60, ["●12", "○3", "!2", "✗7", "21:00:00Z"]),
        (30, ["●12", "○3", "!2", "✗7"]),
        (8, ["jobtui"]),
        (4, ["jo…"]),
    ],
)
async def test_the_header_says_what_there_is_room_for(clock: FixedClock, cells: int, said: list[str]) -> None:
    header = Header(clock.now, "jobtui")
    async with WidgetApp(header).run_test(size=(cells, 3)) as pilot:
        header.set_counts(COUNTS, 2, more="+")
        await pilot.pause()
        text = text_of(header)[0]
        assert text.count("+") == 4 * ("12" in text)
        header.set_counts(COUNTS, 2)
        await pilot.pause()
        text = text_of(header)[0]
        assert all(words in text for words in said)
        assert width_of(header.line(0)) == cells


async def test_keys_that_matter_most_stay_longest() -> None:
    words = (("1", "jobs", 5), ("↵", "open", 2), ("/", "filter", 2), ("?", "keys", 1), ("q", "quit", 2))
    keys = KeyLine([Hint(*one) for one in words])
    async with WidgetApp(keys).run_test(size=(60, 3)) as pilot:
        for cells, line in (
            (60, " 1 jobs  ↵ open  / filter  ? keys  q quit"),
            (26, " ↵ open  / filter  ? keys"),
            (8, " ? keys"),
        ):
            await pilot.resize_terminal(cells, 3)
            await pilot.pause()
            assert text_of(keys) == [line]


async def test_a_rule_has_words_as_far_as_they_fit() -> None:
    line = RuleLine("1,204 jobs")
    async with WidgetApp(line).run_test(size=(30, 3)) as pilot:
        assert text_of(line) == ["──────────────── 1,204 jobs ──"]
        line.words = "a long filter that does not fit at all"
        await pilot.pause()
        assert width_of(line.line(0)) == 30
        assert "…" in text_of(line)[0]


@pytest.mark.parametrize(
    ("cells", "first"), [(120, "jobs › EPRSqtUW-00000000-heightWeightReport"), (40, "EPRSqtUW…")]
)
async def test_the_facts_of_a_job(clock: FixedClock, cells: int, first: str) -> None:
    facts = JobFacts(lambda _: clock.now(), job_id())
    async with WidgetApp(facts).run_test(size=(cells, 5)) as pilot:
        facts.set_job(
            a_job(status=JobStatus.FAILED, error="no such breed", ended_at=ago(60), runs=3), absolute=False
        )
        await pilot.pause()
        lines = text_of(facts)
        assert lines[0].strip().startswith(first)
        assert "✗ failed" in lines[0]
        assert lines[1] == " no such breed"
        assert "myapp" in lines[2]
        assert ("run 3 of 3" in lines[0]) is (cells == 120)
        facts.set_job(None, absolute=False)
        await pilot.pause()
        assert "no source has a record" in text_of(facts)[1]


async def test_text_is_wrapped_and_scrolled() -> None:
    pane = TextPane()
    async with WidgetApp(pane).run_test(size=(20, 4)) as pilot:
        pane.set_text(
            [Paragraph("one two three four five six seven"), Paragraph(), Paragraph("x" * 45, "error")]
        )
        await pilot.pause()
        assert text_of(pane) == [" one two three four", " five six seven", "", " " + "x" * 18]
        pane.move(Move.DOWN)
        assert text_of(pane)[0] == " five six seven"
        pane.move(Move.BOTTOM)
        assert text_of(pane)[3] == " " + "x" * 9
        pane.move(Move.TOP)
        await pilot.resize_terminal(60, 4)
        await pilot.pause()
        assert text_of(pane)[0] == " one two three four five six seven"


def test_wrapping_keeps_blanks_inside_and_hangs() -> None:
    assert wrapped("key   words that go on", 14, hang=6) == ["key   words", "      that go", "      on"]
    assert wrapped("", 10) == [""]
    assert wrapped("ab cdefgh", 4) == ["ab", "cdef", "gh"]
    assert wrapped("表格表格", 4) == ["表格", "表格"]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_wrapped_lines_are_never_too_wide(text: str) -> None:
    for cells in (2, 7, 40):
        lines = wrapped(safe(text), cells, hang=3)
        assert all(width(line) <= cells for line in lines)
        assert sum(map(len, lines)) >= len(safe(text).replace(" ", ""))
