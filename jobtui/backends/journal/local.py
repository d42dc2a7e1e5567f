"""Journals on this machine: through libsystemd where systemd-python is installed, else through journalctl."""

import getpass
import os

from jobtui.backends.base import SourceError
from jobtui.backends.journal import faults, libsystemd
from jobtui.backends.journal.contract import JournalReader
from jobtui.backends.journal.journalctl import JournalctlReader
from jobtui.backends.journal.native import NativeJournal
from jobtui.backends.journal.process import Running
from jobtui.backends.journal.shell import command_line
from jobtui.model.specs import LOCAL_JOURNAL

START_S = 10.0


def local_journal(target: str) -> JournalReader:
    """A reader of `local`, or of a directory of journal files. Opens nothing yet."""
    directory = None if target == LOCAL_JOURNAL else os.path.expanduser(target)
    if libsystemd.is_installed():
        return NativeJournal(target, directory)
    return LocalJournalctl(target, directory)


class LocalShell:
    """A `Shell` of this machine."""

    start_s = START_S

    def __init__(self, name: str) -> None:
        self.name = name

    async def run(self, line: str) -> Running:
        """Run a line. Raises SourceError."""
        try:
            return Running(["/bin/sh", "-c", line], {})
        except (OSError, ValueError) as error:
            raise SourceError(f"{self.name}: no program can be run: {error}") from error

    def fault(self, said: str, code: int, printed: str) -> SourceError:
        """What it means that journalctl ended so."""
        values = {
            "name": self.name,
            "host": "this machine",
            "there": "",
            "user": getpass.getuser(),
            "usermod": command_line(["sudo", "usermod", "-aG", "systemd-journal", getpass.getuser()]),
        }
        known = faults.known_fault(faults.JOURNALCTL, said, values)
        told = faults.in_words(said) or printed
        return known or SourceError(f"{self.name}: journalctl ended with {code}{f': {told}' if told else ''}")

    def silence(self, seconds: float) -> SourceError:
        """Nothing came for so long."""
        return SourceError(f"{self.name}: journalctl gave nothing within {seconds:g} s")


class LocalJournalctl(JournalctlReader):
    """A `JournalReader` over the journalctl of this machine, for where systemd-python is not installed."""

    def __init__(self, name: str, directory: str | None) -> None:
        super().__init__(LocalShell(name), directory or "")
