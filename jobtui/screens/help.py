"""All keys, out of the table of actions."""

from collections.abc import Iterator

from jobtui.actions import Action, Keymap, Place, Topic
from jobtui.screens.base import Board, Taken
from jobtui.screens.command_table import COMMANDS
from jobtui.screens.reading import ReadingScreen
from jobtui.widgets.text_pane import Paragraph

KEY_CELLS = 14

FILTERS = (
    "status:failed  user:vn9m  app:srw,warp  age<10m  dur>1h  %>=90",
    "words are looked for in id, user, name, app and model; -word leaves out; or, ( ) group",
)


class HelpScreen(ReadingScreen):
    """The keys and the filter language."""

    def __init__(self, board: Board, place: Place) -> None:
        super().__init__(board, "keys", help_text(place), Taken("", "jobtui --help"))


def help_text(place: Place) -> Iterator[Paragraph]:
    """Every action: first those of the screen one comes from, then the others under their topics."""
    here = [action for action in Keymap.actions if action.is_of(place)]
    if here:
        yield Paragraph(f"On this screen ({place})", "title")
        yield from (_paragraph(action, "") for action in here)
        yield Paragraph("")
    for topic in Topic:
        others = [action for action in Keymap.actions if action.topic is topic and action not in here]
        if others:
            yield Paragraph(str(topic), "title")
            yield from (_paragraph(action, f" ({action.where})" if action.where else "") for action in others)
            yield Paragraph("")
    yield Paragraph("Commands, behind :", "title")
    for command in COMMANDS:
        words = f"{command.name} {command.argument}"
        yield Paragraph(f"{words:<{KEY_CELLS}}{command.help}", hang=KEY_CELLS)
    yield Paragraph("")
    yield Paragraph("Filter", "title")
    yield from map(Paragraph, FILTERS)


def _paragraph(action: Action, where: str) -> Paragraph:
    return Paragraph(f"{action.shown_keys:<{KEY_CELLS}}{action.help}{where}", hang=KEY_CELLS)
