from base64 import b64decode

import pytest

from jobtui.render.terminal import MAX_ENCODED, TooLong, clipboard_sequence, notification_sequence


def test_the_text_is_in_the_sequence() -> None:
    sequence = clipboard_sequence("EPRSqtUW-IVh7w74d-x \u8868", {})
    assert sequence.startswith("\x1b]52;c;")
    assert sequence.endswith("\x07")
    assert b64decode(sequence[7:-1]).decode() == "EPRSqtUW-IVh7w74d-x \u8868"


def test_tmux_hands_it_on() -> None:
    plain = clipboard_sequence("abc", {})
    wrapped = clipboard_sequence("abc", {"TMUX": "/tmp/tmux"})
    assert wrapped == "\x1bPtmux;\x1b" + plain + "\x1b\\"


def test_hostile_text_is_only_data() -> None:
    assert "\x1b" not in clipboard_sequence("\x1b]52;c;x\x07\x9c", {})[1:-1]
    assert clipboard_sequence("\ud800", {})


def test_what_no_terminal_takes_is_refused() -> None:
    longest = MAX_ENCODED // 4 * 3
    assert len(clipboard_sequence("x" * longest, {})) <= MAX_ENCODED + 8
    with pytest.raises(TooLong, match="74,994"):
        clipboard_sequence("x" * (longest + 3), {})


def test_the_desktop_is_notified_as_the_terminal_can() -> None:
    assert notification_sequence("abc", {"TERM": "xterm-kitty"}) == "\x1b]9;abc\x07"
    assert notification_sequence("abc", {"TERM": "foot"}) == "\x1b]777;notify;jobtui;abc\x07"
