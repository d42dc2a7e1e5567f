"""Panes of text: broken after blanks where that can be, scrolled by keys and by the wheel."""

from jobtui.render.spans import Paragraph, Span, rows
from jobtui.widgets.text_pane import SpanPane, TextPane
from tests.widgets.widget_app import WidgetApp


def test_a_line_is_broken_after_a_blank_near_the_end_of_a_row() -> None:
    line = (Span("sbatch "), Span("--time=10 x", "accent"), Span("y" * 12))
    broken = ["".join(span.text for span in row) for row in rows(line, 10)]
    assert broken == ["sbatch --t", "ime=10 xyy", "yyyyyyyyyy"]
    assert len(rows((Span("a b " * 400),), 10, 3)) == 3


async def test_the_wheel_scrolls_as_far_up_as_down() -> None:
    texts, spans = TextPane(), SpanPane()
    async with WidgetApp(texts).run_test(size=(40, 10)) as pilot:
        await pilot.app.mount(spans)
        await pilot.pause()
        texts.set_text(Paragraph(str(number)) for number in range(100))
        spans.set_lines([(Span(str(number)),) for number in range(100)])
        for pane in (texts, spans):
            pane.scroll_rows(6)
            pane.scroll_rows(-3)
            assert pane.top == 3
