"""The dashboard as `jobtui` runs it, that tells what it knows when it is asked.

    python -m benchmarks.soak_dashboard DIRECTORY [ARGUMENT of jobtui ...]

On SIGUSR1 it writes DIRECTORY/told.json: the jobs and ops in its store and what it is made of. Whatever is
logged as a warning or worse, raised in a thread, or shown as a toast of an error goes to DIRECTORY/noted.log.
On SIGUSR2 its clock jumps: an hour ahead, at the next one an hour behind, at the third one back.
"""

import asyncio
import ctypes
import gc
import itertools
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from textual.screen import Screen

from jobtui import app as dashboard
from jobtui import cli
from jobtui.model.clock import SECOND, Nanos, SystemClock
from jobtui.screens.trace import TraceScreen
from jobtui.screens.traces import TracesScreen

TOLD, NOTED = "told.json", "noted.log"
JUMPS_S = (3_600, -3_600, 0)
"""How far the clock is off after each jump."""
log = logging.getLogger(__name__)


class JumpingClock:
    """The clock of this machine, or one that is off."""

    def __init__(self) -> None:
        self._off = 0
        self._jumps = itertools.cycle(JUMPS_S)

    def now(self) -> Nanos:
        """The time it shows."""
        return Nanos(time.time_ns() + self._off)

    def jump(self) -> None:
        """Show another time from now on."""
        self._off = next(self._jumps) * SECOND


class TellingApp(dashboard.JobtuiApp):
    """The dashboard that answers a signal."""

    place = Path()

    def on_ready(self) -> None:
        """Listen for the signal."""
        loop, clock = asyncio.get_running_loop(), JumpingClock()
        loop.add_signal_handler(signal.SIGUSR1, self.tell)
        loop.add_signal_handler(signal.SIGUSR2, clock.jump)
        SystemClock.now = lambda self: clock.now()  # type: ignore[method-assign]

    def tell(self) -> None:
        """Write what is known, in one go."""
        store = self._session.store
        told = {
            "at": time.time(),
            "jobs": {job.id: job.native_status for job in store.jobs.values()},
            "ops": [
                [op.op, op.name, op.jid, op.agent, op.sends, op.replies, op.updates]
                for op in store.correlation.ops()
            ],
            "dropped": store.correlation.dropped_ops,
            "sources": [
                [source.name, source.state, source.skipped, source.error] for source in store.sources()
            ],
            "records": {source.name: source.records for source in store.sources()},
            "traces": {one: store.traces.size(one) for one in store.traces.ids()},
            **traces_on(self.screen),
            "screens": [type(screen).__name__ for screen in self.screen_stack],
            "listeners": len(store._listeners),
            "tasks": len(asyncio.all_tasks()),
            "threads": sorted(thread.name for thread in threading.enumerate()),
            "objects": len(gc.get_objects()),
            "blocks": sys.getallocatedblocks(),
            "heap_mb": heap_mb(),
        }
        draft = self.place / f"{TOLD}.new"
        draft.write_text(json.dumps(told))
        os.replace(draft, self.place / TOLD)

    def notify(self, message: str, *, severity: Any = "information", **more: Any) -> None:
        """Show a toast, and keep one of an error."""
        if severity == "error":
            log.error("toast: %s", message)
        super().notify(message, severity=severity, **more)

    def _fatal_error(self) -> None:
        log.critical("the dashboard ended by an error", exc_info=True)
        super()._fatal_error()


def traces_on(screen: Screen[Any]) -> dict[str, Any]:
    """The trace that is open, and the traces that are listed with how many spans are known of each."""
    listed = screen._lister.traces if isinstance(screen, TracesScreen) else ()
    return {
        "trace": screen.trace_id if isinstance(screen, TraceScreen) else None,
        "listed": {one.told.trace_id: one.told.spans for one in listed},
    }


class Heap(ctypes.Structure):
    """What the C library says of its memory (mallinfo2(3), of glibc)."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd",
            "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


def heap_mb() -> int:
    """Megabytes that the C library has given out. What is smaller than 512 bytes Python keeps apart."""
    heap = _mallinfo2()()
    return int(heap.uordblks + heap.hblkhd) >> 20


@cache
def _mallinfo2() -> Callable[[], Heap]:
    found = ctypes.CDLL(None).mallinfo2
    found.restype = Heap
    return found


def main() -> int:
    """Run it."""
    TellingApp.place = Path(sys.argv[1])
    logging.basicConfig(filename=TellingApp.place / NOTED, level=logging.WARNING)
    logging.captureWarnings(True)
    threading.excepthook = lambda raised: log.critical("raised in a thread", exc_info=raised.exc_value)
    sys.unraisablehook = lambda raised: log.critical("raised unseen", exc_info=raised.exc_value)
    dashboard.JobtuiApp = TellingApp  # type: ignore[misc]
    return cli.main(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
