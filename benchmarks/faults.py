"""What befalls a site and its dashboard in the endurance run, one after the other; each is mended again.

Sources fault as real ones do: records torn and replaced, logs rotated and cut, directories gone, a server
that fails or does not answer. The program is stopped and goes on, its clock jumps, its terminal is resized.
"""

import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from benchmarks.balsam_stand_in import BalsamStandIn
from benchmarks.moody_server import Mood
from benchmarks.rush_apart import AnyRush
from benchmarks.terminal import Terminal

RECORDS = 40
"""So many records at once are torn, replaced, or cannot be read."""
LASTS_S = 4.0
RESIZES = 10_000
RESIZE_S = 0.002
NULS = 1 << 16
SIZES = ((80, 24), (40, 10), (132, 43), (20, 5), (200, 60), (1, 1))


class Place(NamedTuple):
    """What faults can befall. `wait` goes on reading the terminal for so many seconds."""

    site: AnyRush
    server: BalsamStandIn
    terminal: Terminal
    wait: Callable[[float], None]


def torn_records(place: Place) -> None:
    """Records of which only a half is written for a while."""
    _changed(place, lambda path, data: path.write_bytes(data[: len(data) // 2]))


def other_records(place: Place) -> None:
    """Records that are something else for a while: not JSON, another job's, bytes."""
    others = (b"[]", b'{"computeJid": "x"}', b"\xff\xfe\x00", b"{" * 1000)
    _changed(place, lambda path, data: path.write_bytes(others[len(data) % len(others)]))


def unreadable_records(place: Place) -> None:
    """Records in whose place there is for a while what cannot be read: a pipe that nobody writes into."""

    def replace(path: Path, data: bytes) -> None:
        path.unlink()
        os.mkfifo(path)

    _changed(place, replace)


def rotated_log(place: Place) -> None:
    """Logs are moved away, new ones begun, as logrotate does; what was moved is written to until then."""
    with place.site.lock:
        for path in place.site.logs.values():
            path.replace(path.with_suffix(".log.1"))


def truncated_log(place: Place) -> None:
    """Logs are copied and cut to nothing (copytruncate), when all of them has been read."""
    with place.site.at_rest():
        place.wait(LASTS_S)
        for path in place.site.logs.values():
            os.truncate(path, 0)
        place.wait(1.0)


def nul_run(place: Place) -> None:
    """A hole in a log, as a crash of its host leaves it."""
    with place.site.lock:
        for path in place.site.logs.values():
            with path.open("ab") as file:
                file.write(b"\0" * NULS + b"\n")


def directory_gone(place: Place) -> None:
    """The directory of the records is not there for a while, as when a mount is lost."""
    away = place.site.records.with_name("away")
    with place.site.lock:
        place.site.records.rename(away)
        place.wait(LASTS_S)
        away.rename(place.site.records)


def server_fails(place: Place) -> None:
    """The server answers each request with 500."""
    _in_mood(place, Mood.FAILS)


def server_hangs(place: Place) -> None:
    """The server takes each request and does not answer."""
    _in_mood(place, Mood.HANGS)


def server_gone(place: Place) -> None:
    """The server breaks off each connection."""
    _in_mood(place, Mood.BREAKS)


def clock_jumps(place: Place) -> None:
    """The clock is an hour ahead, then an hour behind, then right."""
    for _ in range(3):
        os.kill(place.terminal.pid, signal.SIGUSR2)
        place.wait(LASTS_S)


def suspended(place: Place) -> None:
    """The program is stopped, and goes on."""
    os.kill(place.terminal.pid, signal.SIGSTOP)
    time.sleep(LASTS_S)
    os.kill(place.terminal.pid, signal.SIGCONT)


def resized(place: Place) -> None:
    """The terminal gets another size over and over."""
    for number in range(RESIZES):
        place.terminal.set_size(*SIZES[number % len(SIZES)])
        place.wait(RESIZE_S)


FAULTS: Mapping[str, Callable[[Place], None]] = {
    "records torn": torn_records,
    "records replaced": other_records,
    "records unreadable": unreadable_records,
    "logs rotated": rotated_log,
    "logs truncated": truncated_log,
    "a run of NULs in the logs": nul_run,
    "directory gone": directory_gone,
    "server answers 500": server_fails,
    "server hangs": server_hangs,
    "server breaks off": server_gone,
    "clock jumps": clock_jumps,
    "suspended, resumed": suspended,
    "resized 10,000 times": resized,
}
"""In the order in which they come, over and over."""


def _changed(place: Place, change: Callable[[Path, bytes], object]) -> None:
    """Let records be something else for a while, and then what they were."""
    with place.site.at_rest():
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
