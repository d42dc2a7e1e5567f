"""The dashboard as `jobtui` runs it, that tells what it knows when it is asked.

    python -m benchmarks.soak_dashboard DIRECTORY [ARGUMENT of jobtui ...]

On SIGUSR1 it writes DIRECTORY/told.json: the jobs and ops in its store and what it is made of. Whatever is
logged as a warning or worse, raised in a thread, or shown as a toast of an error goes to DIRECTORY/noted.log.
"""

import asyncio
import gc
import json
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from jobtui import app as dashboard
from jobtui import cli

TOLD, NOTED = "told.json", "noted.log"
log = logging.getLogger(__name__)


class TellingApp(dashboard.JobtuiApp):
    """The dashboard that answers a signal."""

    place = Path()

    def on_ready(self) -> None:
        """Listen for the signal."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, self.tell)

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
            "sources": [
                [source.name, source.state, source.skipped, source.error] for source in store.sources()
            ],
            "screens": [type(screen).__name__ for screen in self.screen_stack],
            "listeners": len(store._listeners),
            "tasks": len(asyncio.all_tasks()),
            "threads": sorted(thread.name for thread in threading.enumerate()),
            "objects": len(gc.get_objects()),
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
