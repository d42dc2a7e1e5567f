"""Journals on this machine: through libsystemd where systemd-python is installed, else through journalctl."""

import os

from jobtui.backends.journal import libsystemd
from jobtui.backends.journal.contract import JournalReader
from jobtui.backends.journal.journalctl import JournalctlReader
from jobtui.backends.journal.local_shell import LocalShell
from jobtui.backends.journal.native import NativeJournal
from jobtui.model.specs import LOCAL_JOURNAL


def local_journal(target: str) -> JournalReader:
    """A reader of `local`, or of a directory of journal files. Opens nothing yet."""
    directory = None if target == LOCAL_JOURNAL else os.path.expanduser(target)
    if libsystemd.is_installed():
        return NativeJournal(target, directory)
    return LocalJournalctl(target, directory)


class LocalJournalctl(JournalctlReader):
    """A `JournalReader` over the journalctl of this machine, for where systemd-python is not installed."""

    def __init__(self, name: str, directory: str | None) -> None:
        super().__init__(LocalShell(name), directory or "")
