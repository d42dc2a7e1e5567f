"""A shell of this machine, for programs that could as well run on another one."""

import getpass
from collections.abc import Mapping, Sequence

from jobtui.backends.base import SourceError, SourceUnreachable
from jobtui.backends.journal import faults
from jobtui.backends.journal.process import Running
from jobtui.backends.journal.shell import command_line

START_S = 10.0


class LocalShell:
    """A `Shell` of this machine. `known` are the faults of what is run."""

    start_s = START_S

    def __init__(
        self,
        name: str,
        known: Sequence[faults.Fault] = faults.JOURNALCTL,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._known = known
        self._environment = environment or {}

    async def run(self, line: str) -> Running:
        """Run a line. Raises SourceError."""
        try:
            return Running(["/bin/sh", "-c", line], self._environment)
        except (OSError, ValueError) as error:
            raise SourceError(f"{self.name}: no program can be run: {error}") from error

    def fault(self, said: str, code: int, printed: str) -> SourceError:
        """What it means that the program ended so."""
        account = getpass.getuser()
        values = {
            "name": self.name,
            "host": "this machine",
            "there": "",
            "user": account,
            "usermod": command_line(["sudo", "usermod", "-aG", "systemd-journal", account]),
        }
        told = faults.in_words(said) or printed
        known = faults.known_fault(self._known, said, values)
        return known or SourceError(
            f"{self.name}: the program ended with {code}{f': {told}' if told else ''}"
        )

    def silence(self, seconds: float) -> SourceError:
        """Nothing came for so long."""
        return SourceUnreachable(f"{self.name}: no answer within {seconds:g} s")
