"""The terminal of the dashboard: it ends the program when it is gone, and wakes it for keys only.

With Textual 8.2.8 a program goes on when its terminal is gone. The writing thread dies of the first error, so
later output fills a queue until everything waits for room in it; the end of the input is taken for no input,
again and again without a pause; and SIGCONT, which the kernel sends along with SIGHUP, starts a second set of
threads, and the first is never told to end. It also looks for keys ten times a second. This file uses
internals of the Textual version that pyproject.toml pins.
"""

import _thread
import os
import re
import select
import signal
import socket
import termios
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import chain
from threading import Event
from typing import IO, TYPE_CHECKING, Any

from textual._time import get_time
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

from jobtui.model.health import contained
from jobtui.render.text import fit

if TYPE_CHECKING:
    from textual.app import App

SIGNAL_CODE = 128
"""Added to the number of the signal that ended the program, as shells do."""
ENDING = (signal.SIGTERM, signal.SIGHUP)
GRACE_S = 3.0
"""How long an orderly end may take before the program is ended without one."""
READ_BYTES = 4_096
_OFF = ("2004", "2048", "1000", "1003", "1015", "1006", "1004")  # paste, sizes, mouse, focus
LEAVE = "".join((*(f"\x1b[?{mode}l" for mode in _OFF), "\x1b[?7h\x1b[<u\x1b[?1049l\x1b[?25h")).encode()
"""The sequences that undo all that the dashboard sets on a terminal."""
KEEP_TITLE = "\x1b[22;2t"
GIVE_TITLE_BACK = "\x1b]2;\x07\x1b[23;2t"
"""Empties the title and restores the saved one; if a terminal saves none, the shell sets it again."""
WITHOUT_TITLE = frozenset({"linux", "dumb", "ansi", "vt100", "vt220"})
"""Terminals without a title, some of which would show it."""
TITLE_CELLS = 60
PASTE_BEGINS, PASTE_MARK = "\x1b[200~", re.compile(r"(\x1b\[20[01]~)")
PART_OF_MARK = re.compile(r"\x1b(?:\[(?:2(?:01?)?)?)?\Z")


class TypedText:
    """What was typed, with `␛` for each escape character of a pasted text.

    Textual takes what follows an escape character for keys, also in a paste; one of these may be `q`.
    """

    def __init__(self) -> None:
        self._is_pasted, self._held = False, ""

    def shown(self, text: str) -> str:
        """The text that was read; of the mark of the end of a paste, of which a part was read, none yet."""
        parts, self._held = PASTE_MARK.split(self._held + text), ""
        for nth, part in enumerate(parts):
            if nth % 2:
                self._is_pasted = part == PASTE_BEGINS
            elif self._is_pasted:
                whole = PART_OF_MARK.sub("", part) if nth == len(parts) - 1 else part
                parts[nth], self._held = whole.replace("\x1b", "␛"), part[len(whole) :]
        return "".join(parts)


def window_title(title: str, environment: Mapping[str, str]) -> str:
    """The title of the window: program, profile and host; "" if there is no title to set."""
    if environment.get("TERM", "dumb") in WITHOUT_TITLE:
        return ""
    return fit(f"{title} {socket.gethostname()}", TITLE_CELLS).rstrip()


class TerminalOutput:
    """The output file of the dashboard. After a failed write `lost` is called and output dropped."""

    def __init__(self, file: IO[str] | None, lost: Callable[[], None]) -> None:
        self._file = file if file is not None else open(os.devnull, "w")  # noqa: SIM115 - closed by the caller
        self._lost = lost
        self._works = True

    def write(self, text: str) -> None:
        self._try(partial(self._file.write, text))

    def flush(self) -> None:
        self._try(self._file.flush)

    def fileno(self) -> int:
        return self._file.fileno()

    def _try(self, call: Callable[[], object]) -> None:
        if not self._works:
            return
        try:
            call()
        except (OSError, ValueError):  # ValueError: it was closed
            self._works = False
            self._lost()


class Bell(Event):
    """An event that can also be waited for with `select`: `fileno` can be read while it is set."""

    def __init__(self) -> None:
        super().__init__()
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def fileno(self) -> int:
        return self._reader

    def set(self) -> None:
        if not self.is_set():
            super().set()
            os.write(self._writer, b"!")

    def clear(self) -> None:
        if self.is_set():
            super().clear()
            os.read(self._reader, READ_BYTES)


class TerminalDriver(LinuxDriver):
    """Keys, output and signals of the terminal the dashboard runs in.

    SIGTERM, SIGHUP and the loss of the terminal end the app as `q` does, with the exit code that shells give
    for the signal; when that takes longer than `GRACE_S`, whatever for, the process ends anyway.
    """

    def __init__(self, app: "App[object]", **named: Any) -> None:
        super().__init__(app, **named)
        self._outlet = TerminalOutput(self._file, self._lose)
        self._file = self._outlet  # type: ignore[assignment]  # it has all that is used of a file
        self.exit_event = self._bell = Bell()
        self._is_lost = False
        self._ends = False
        self._has_title = False

    def start_application_mode(self) -> None:
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                signal.signal(number, lambda number, _: self._end(SIGNAL_CODE + number))
        try:
            super().start_application_mode()  # type: ignore[no-untyped-call]
        except BaseException:  # for example if no thread can be started any more
            with suppress(Exception):
                self.close()  # all that was written before goes out first
            self._restore()
            raise
        if title := getattr(self._app, "window_title", ""):
            self._has_title = True
            self.write(f"{KEEP_TITLE}\x1b]2;{title}\x07")
        if self._writer_thread is None or not self._writer_thread.is_alive():
            self._lose()

    def stop_application_mode(self) -> None:
        if self._has_title:
            self._has_title = False
            self.write(GIVE_TITLE_BACK)
        super().stop_application_mode()

    def _get_terminal_size(self) -> tuple[int, int]:
        return tuple(self._app.console.size)  # type: ignore[return-value]  # where there is none, the app's

    def write(self, data: str) -> None:
        if not self._is_lost:
            super().write(data)

    def toggle_mouse(self) -> bool:
        """Take the mouse, or leave it to the terminal. True if it is used now."""
        if self._mouse:
            self._disable_mouse_support()
        self._mouse = not self._mouse
        if self._mouse:
            self._enable_mouse_support()
        return self._mouse

    def run_input_thread(self) -> None:
        """Pass on keys and other input of the terminal until asked to end, or until there is no more."""
        decode = getincrementaldecoder("utf-8")("replace").decode
        parser, typed = XTermParser(self._debug), TypedText()
        poll = select.poll()
        poll.register(self.fileno, select.POLLIN)
        poll.register(self._bell, select.POLLIN)
        while not self.exit_event.is_set():
            # How long to wait for the rest of what may be the beginning of a key; None: forever
            until = parser._timeout_time
            ready = poll.poll(None if until is None else max(0.0, (until - get_time()) * 1_000))
            text = ""
            if any(descriptor == self.fileno for descriptor, _ in ready):
                if (data := self._read()) is None:
                    self._lose()
                    return
                # "" for a part of a character, which a parser would take as the end
                text = typed.shown(decode(data))
            with contained("reading what was typed") as reading:
                for event in chain(parser.feed(text) if text else (), parser.tick()):
                    with contained("passing on what was typed"):
                        self.process_message(event)
            if reading.fault is not None:
                parser = XTermParser(self._debug)

    def _read(self) -> bytes | None:
        """What was typed; None at the end of the input."""
        try:
            data = os.read(self.fileno, READ_BYTES)
            if not data:
                termios.tcgetattr(
                    self.fileno
                )  # raises when the terminal hung up; ^D in a cooked one does not
        except (OSError, termios.error):
            return None
        return data

    def _sigcont_application(self, *_: object) -> None:
        """Take the terminal again after a stop. Without a stop, as at a hang-up, all is running already."""
        if not self._auto_restart or self._ends:
            return
        if self._key_thread is None or not self._key_thread.is_alive():
            self.resume_application_mode()
        else:
            self._loop.call_soon_threadsafe(self._restart_output)

    def _restart_output(self) -> None:
        if not self._ends:
            self.suspend_application_mode()
            self._must_signal_resume = True
            self.resume_application_mode()

    def _lose(self) -> None:
        self._is_lost = True
        self._end(SIGNAL_CODE + signal.SIGHUP)

    def _end(self, code: int) -> None:
        """Begin an orderly end. Called in any thread, and in signal handlers: takes no lock."""
        if self._ends:
            return
        self._ends = True
        if self._auto_restart:  # otherwise a pager has the terminal, and ends first
            _thread.start_new_thread(self._insist, (code,))
        try:
            self._loop.call_soon_threadsafe(partial(self._app.exit, return_code=code))
        except RuntimeError:
            return  # the loop has ended

    def _insist(self, code: int) -> None:
        time.sleep(GRACE_S)
        if not self._is_lost:
            self._restore()
        os._exit(code)

    def _restore(self) -> None:
        try:
            if self.attrs_before is not None:
                termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)
            if select.select((), (self._outlet,), (), 0)[1]:
                os.write(self._outlet.fileno(), LEAVE + GIVE_TITLE_BACK.encode() * self._has_title)
        except (OSError, termios.error):
            return
