import pytest

from jobtui.terminal.app import erases_in_color


@pytest.mark.parametrize(
    ("environment", "erases"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "alacritty"}, True),
        ({"TERM": "tmux-256color"}, False),
        ({"TERM": "xterm-256color", "TMUX": "/tmp/tmux-0/default,1,0"}, False),
        ({"TERM": "screen-256color"}, False),
        ({"TERM": "screen", "STY": "1.pts-0"}, False),
        ({"TERM": "xterm", "STY": "1.pts-0"}, False),
        ({"TERM": "vt220"}, False),
        ({}, False),
    ],
)
def test_which_terminals_erase_in_colour(environment: dict[str, str], erases: bool) -> None:
    assert erases_in_color(environment) is erases
