"""The contract's rig for journals: one for each program that reads them."""

import contextlib
import signal
from functools import partial
from pathlib import Path

import pytest

from jobtui.backends.base import Source
from jobtui.backends.journal import client
from jobtui.backends.journal.source import Journal
from jobtui.model.clock import Nanos
from tests.backends.journal.make import entry, make_journal, needs_journal_tools
from tests.backends.journal.readers import READERS
from tests.backends.journal.ssh_rig import signal_journalctl
from tests.backends.rigs import Rig

UNIT = "sirepo_job_supervisor.service"
LINE = "Nov 14 22:13:20     7     0 sirepo/job_supervisor.py:254:receive ServerReq(api_run{}, None)"
DROPPED = f"Suppressed 5 messages from {UNIT}"


class JournalRig(Rig):
    """A journal that systemd-journal-remote writes. Each record is an entry; what was dropped is skipped."""

    tells = True
    reconnects = True

    def __init__(self, way: str, folder: Path) -> None:
        super().__init__(folder)
        self._directory = folder / "journals"
        self._directory.mkdir()
        self._away = folder / "away"
        self._stack = contextlib.ExitStack()
        patch = self._stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(client, "RETRY_S", 0.05)
        patch.setattr(client, "RETRY_MOST_S", 0.1)
        self._is_served = way == "gatewayd"
        self._host = self._stack.enter_context(READERS[way].open(self._directory))

    def source(self) -> Source:
        return Journal(self._host().name, self._host, since=Nanos(0))

    def _write(self, message: str, **fields: str) -> None:
        self._written += 1
        make_journal(self._directory, [entry(self._written, message, **fields)])

    def add(self) -> str:
        key = f"api_run{self._written}"
        self._write(LINE.format(self._written), _SYSTEMD_UNIT=UNIT, _PID="7")
        return key

    def tear(self) -> None:
        self._write(DROPPED, SYSLOG_IDENTIFIER="systemd-journald")

    def go_away(self) -> None:
        """Be gone, and what serves those who follow, too."""
        if self._is_served:
            self._host.die()
            return
        self._directory.rename(self._away)
        signal_journalctl(signal.SIGKILL)

    def come_back(self) -> None:
        if self._is_served:
            self._host.start()
        else:
            self._away.rename(self._directory)

    def close(self) -> None:
        self._stack.close()


JOURNAL_RIGS = [
    pytest.param(
        partial(JournalRig, name), id=f"journal-{name}", marks=(needs_journal_tools, *READERS[name].needs)
    )
    for name in ("journalctl", "gatewayd")
]
"""A rig for each program: made from a folder of its own, and to be closed."""
