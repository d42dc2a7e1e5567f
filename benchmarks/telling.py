"""The dashboard as `jobtui` runs it, that does what the endurance run orders.

    python -m benchmarks.telling DIRECTORY [ARGUMENT of jobtui ...]

On SIGUSR1 it does what is in DIRECTORY/order and removes that: TELL writes DIRECTORY/told.json, the jobs and
ops in its store and what it is made of; JUMP lets its clock jump, an hour ahead, then an hour behind, then
back; the name of a stage lets that stage raise an exception once. Whatever is logged as a warning or worse,
raised in a thread, or shown as a toast of an error goes to DIRECTORY/noted.log.
"""

import asyncio
import itertools
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jobtui import app as dashboard
from jobtui import cli
from jobtui.analysis.correlation.correlator import Correlator
from jobtui.backends.logfile import LogFile
from jobtui.formats.parser import LogParser
from jobtui.model.clock import SECOND, Nanos, SystemClock
from jobtui.model.health import FAULTS
from jobtui.session import Session
from jobtui.session.evidence import Gatherer
from jobtui.store.poller import Poller
from jobtui.store.store import Store
from jobtui.widgets.row_view import RowView

ORDER, TOLD, NOTED = "order", "told.json", "noted.log"
TELL, JUMP = "tell", "jump"
JUMPS_S = (3_600, -3_600, 0)
"""How far the clock is off after each jump."""
log = logging.getLogger(__name__)


class JumpingClock:
    def __init__(self) -> None:
        self._off = 0
        self._jumps = itertools.cycle(JUMPS_S)

    def now(self) -> Nanos:
        return Nanos(time.time_ns() + self._off)

    def jump(self) -> None:
        self._off = next(self._jumps) * SECOND


class TellingApp(dashboard.JobtuiApp):
    place = Path()

    def on_ready(self) -> None:
        self._jumping = jumping = JumpingClock()
        SystemClock.now = lambda self: jumping.now()  # type: ignore[method-assign]
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, self.obey)
        # The dashboard alone has no such pipe: a full one, while the loop is busy, is not its fault.
        signal.set_wakeup_fd(signal.set_wakeup_fd(-1), warn_on_full_buffer=False)

    def obey(self) -> None:
        order = (self.place / ORDER).read_text()
        if order == TELL:
            self.tell()
        elif order == JUMP:
            self._jumping.jump()
        else:
            STAGES[order](self._session)
        (self.place / ORDER).unlink()

    def tell(self) -> None:
        store = self._session.store
        told = {
            "jobs": {job.id: job.native_status for job in store.jobs.values()},
            "ops": [
                [op.op, op.name, op.jid, op.agent, op.sends, op.replies, op.updates]
                for op in store.correlation.ops()
            ],
            "dropped": store.correlation.dropped_ops,
            "sources": [
                [source.name, source.state, source.error, source.read_at] for source in store.sources()
            ],
            "screens": [type(screen).__name__ for screen in self.screen_stack],
            "listeners": len(store._listeners),
            "tasks": len(asyncio.all_tasks()),
            "faults": [[one.kind, one.stage, one.location, one.count] for one in FAULTS.all()],
            "threads": sorted(thread.name for thread in threading.enumerate()),
        }
        draft = self.place / f"{TOLD}.new"
        draft.write_text(json.dumps(told))
        os.replace(draft, self.place / TOLD)

    def notify(self, message: str, *, severity: Any = "information", **more: Any) -> None:
        if severity == "error":
            log.error("toast: %s", message)
        super().notify(message, severity=severity, **more)

    def _handle_exception(self, error: Exception) -> None:
        log.critical("a fault of the dashboard", exc_info=error)
        super()._handle_exception(error)


class Injected(Exception):
    """What the endurance run lets a stage raise."""


def raise_once(
    owner: Any, name: str, when: Callable[..., bool] = lambda *_: True, *, after: bool = False
) -> None:
    """Let a method raise once, when it is called next and this holds; `after`: when it has done its work."""
    work, once = getattr(owner, name), threading.Lock()

    def raising(*arguments: Any, **named: Any) -> Any:
        if not when(*arguments) or not once.acquire(blocking=False):
            return work(*arguments, **named)
        setattr(owner, name, work)
        if after:
            work(*arguments, **named)
        raise Injected("with what a job's user wrote")

    setattr(owner, name, raising)


def break_listener(session: Session) -> None:
    def listen(changes: object) -> None:
        stop()
        raise Injected

    stop = session.store.subscribe(listen)


class BrokenRecorder:
    """A recorder that keeps nothing, and raises once for each source that is polled while it is there."""

    def __init__(self, poller: Poller) -> None:
        self._poller = poller

    def delivered(self, source: object, batch: object) -> None:
        self._poller._observer = None
        raise Injected


def break_recorder(session: Session) -> None:
    poller = session._pollers[-1]
    poller._observer = BrokenRecorder(poller)  # type: ignore[assignment]


def is_of_server(parser: LogParser, *_: object) -> bool:
    return "server" in parser._source


def is_api_call(_: object, record: Any) -> bool:
    return bool(record.shape == "api_called")


STAGES: Mapping[str, Callable[[Session], None]] = {
    "reader": lambda _: raise_once(LogFile, "_poll", after=True),
    "parser": lambda _: raise_once(LogParser, "_read", is_of_server),
    "correlator": lambda _: raise_once(Correlator, "_read", is_api_call),
    "store": lambda _: raise_once(Store, "apply"),
    "store listener": break_listener,
    "explainer": lambda _: raise_once(Gatherer, "gather"),
    "widget": lambda _: raise_once(RowView, "line"),
    "recorder": break_recorder,
}
"""Where an exception can be injected. A line or record that this costs is one that no op is known by."""


def main() -> int:
    TellingApp.place = Path(sys.argv[1])
    logging.basicConfig(filename=TellingApp.place / NOTED, level=logging.WARNING)
    logging.captureWarnings(True)
    threading.excepthook = lambda raised: log.critical("raised in a thread", exc_info=raised.exc_value)
    sys.unraisablehook = lambda raised: log.critical("raised unseen", exc_info=raised.exc_value)
    dashboard.JobtuiApp = TellingApp  # type: ignore[misc]
    return cli.main(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
