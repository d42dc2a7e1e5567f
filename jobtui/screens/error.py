"""The full text of an error, over the screen it belongs to."""

from jobtui.model.secrets import mask_text
from jobtui.render.text import safe
from jobtui.screens.base import Board
from jobtui.screens.reading import ReadingScreen
from jobtui.widgets.text_pane import Paragraph


class ErrorScreen(ReadingScreen):
    """Scrolled and copied like all that is read; what lies below is seen around it where there is room."""

    def __init__(self, board: Board, title: str, text: str) -> None:
        lines = mask_text(text).splitlines() or [""]
        super().__init__(
            board, title, (Paragraph(safe(line), "error" if not at else "") for at, line in enumerate(lines))
        )
