"""Runs the command that the user wants run on new trouble: its words as configured, and never a shell."""

import os
import subprocess
from collections.abc import Mapping, Sequence

from jobtui.backends.base import Batch
from jobtui.model.settings import KIND
from jobtui.store.store import Store
from jobtui.transport.worker import Worker

TIMEOUT_S = 30.0
"""A command that takes longer is ended."""


class AlarmCommand:
    """The command; once it has failed it is listed among the sources of `store`.

    One runs at a time, in a thread of its own.
    """

    def __init__(self, command: Sequence[str], store: Store, timeout_s: float = TIMEOUT_S) -> None:
        self.name = f"on trouble: {os.path.basename(command[0])}"
        self._command = tuple(command)
        self._store = store
        self._timeout_s = timeout_s
        self._worker = Worker("alarm")
        self._has_failed = False

    async def run(self, facts: Mapping[str, str]) -> None:
        """Run it with these variables beside those of this program, and note how it ended."""
        problem = await self._worker.run(lambda: run_quietly(self._command, facts, self._timeout_s))
        if problem is not None:
            self._has_failed = True
            self._store.add_source(self.name, KIND)
            self._store.fail(
                self.name, f"{self._command[0]}: {problem}; see [alarm] in the configuration file"
            )
        elif self._has_failed:
            self._store.apply(self.name, Batch(cursor="", count=1))


def run_quietly(command: Sequence[str], facts: Mapping[str, str], timeout_s: float) -> str | None:
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **facts},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=timeout_s,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"was ended after {timeout_s:g} s"
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    if done.returncode < 0:
        return f"was ended by signal {-done.returncode}"
    return None if done.returncode == 0 else f"ended with exit code {done.returncode}"
