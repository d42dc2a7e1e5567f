"""What befalls a site and its dashboard in the endurance run, one after the other; each is mended again.

Sources fault as real ones do: records torn and replaced, logs rotated and cut, directories gone, a server
that fails or does not answer. The program is stopped and goes on, its clock jumps, its terminal is resized.
"""

import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.balsam_server import BalsamServer, Mood
from benchmarks.site import Site, held
from benchmarks.site_logs import WAYS
from benchmarks.telling import JUMP
from benchmarks.terminal import Terminal

RECORDS = 40
"""So many records at once are torn, replaced, or cannot be read."""
LASTS_S = 4.0
RESIZES = 2_000
RESIZE_S = 0.002
NULS = 1 << 16
SIZES = ((80, 24), (40, 10), (132, 43), (20, 5), (200, 60), (1, 1))


class Place(NamedTuple):
    """What faults can befall. `wait` goes on reading the terminal for so many seconds, `order` tells
    the program something."""

    site: Site
    server: BalsamServer
    terminal: Terminal
    wait: Callable[[float], None]
    order: Callable[[str], None]


def torn(path: Path, data: bytes) -> None:
    path.write_bytes(data[: len(data) // 2])


def another(path: Path, data: bytes) -> None:
    """Something else for a while: not JSON, another job's, bytes."""
    others = (b"[]", b'{"computeJid": "x"}', b"\xff\xfe\x00", b"{" * 1000)
    path.write_bytes(others[len(data) % len(others)])


def a_pipe(path: Path, data: bytes) -> None:
    """What cannot be read: a pipe that nobody writes into."""
    path.unlink()
    os.mkfifo(path)


def _rotated(place: Place, way: str) -> None:
    place.site.rotate(way)


def rotated_twice(place: Place) -> None:
    os.kill(place.terminal.pid, signal.SIGSTOP)
    for way in ("numbered", "packed"):
        time.sleep(LASTS_S / 2)
        place.site.rotate(way)
    os.kill(place.terminal.pid, signal.SIGCONT)


def directory_gone(place: Place) -> None:
    away = (records := place.site.records()).with_name("away")
    with held(place.site, at_rest=False):
        records.rename(away)
        place.wait(LASTS_S)
        away.rename(records)


def clock_jumps(place: Place) -> None:
    for _ in range(3):
        place.order(JUMP)
        place.wait(LASTS_S)


def suspended(place: Place) -> None:
    os.kill(place.terminal.pid, signal.SIGSTOP)
    time.sleep(LASTS_S)
    os.kill(place.terminal.pid, signal.SIGCONT)


def resized(place: Place) -> None:
    for number in range(RESIZES):
        place.terminal.set_size(*SIZES[number % len(SIZES)])
        place.wait(RESIZE_S)


FAULTS: Mapping[str, Callable[[Place], None]] = {
    "records torn": lambda place: _changed(place, torn),
    "records replaced": lambda place: _changed(place, another),
    "records unreadable": lambda place: _changed(place, a_pipe),
    **{f"logs rotated: {way}": partial(_rotated, way=way) for way in WAYS},
    "logs rotated twice at once": rotated_twice,
    "a run of NULs in the logs": lambda place: place.site.break_off(),
    "directory gone": directory_gone,
    "server answers 500": lambda place: _in_mood(place, Mood.FAILS),
    "server hangs": lambda place: _in_mood(place, Mood.HANGS),
    "server breaks off": lambda place: _in_mood(place, Mood.BREAKS),
    "clock jumps": clock_jumps,
    "suspended, resumed": suspended,
    "resized over and over": resized,
}
"""In the order in which they come, over and over."""


def _changed(place: Place, change: Callable[[Path, bytes], object]) -> None:
    with held(place.site, at_rest=True):
        kept = {path: path.read_bytes() for path in place.site.idle_records(RECORDS)}
        for path, data in kept.items():
            change(path, data)
        place.wait(LASTS_S)
        for path, data in kept.items():
            with suppress(FileNotFoundError):
                path.unlink()
            draft = path.with_suffix(".new")
            draft.write_bytes(data)
            draft.replace(path)


def _in_mood(place: Place, mood: Mood) -> None:
    place.server.mood = mood
    place.wait(LASTS_S)
    place.server.mood = Mood.WELL
