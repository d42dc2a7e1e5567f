"""Slurm's commands: their words and environment, their answers as bytes, and their errors in words.

Only `squeue`, `sacct`, `sdiag`, `scontrol show` and `scontrol write batch_script` (to standard output) are
ever run. Times come in UTC, and settings of the user that would change an answer are left out.
"""

import re
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from jobtui.formats.slurm import SACCT, SQUEUE, STEP_FIELDS, SUBMITTED
from jobtui.model.clock import Nanos, to_rfc3339
from jobtui.model.health import KINDS, SourceError, SourceMissing, SourceUnreachable
from jobtui.transport.ssh import KnownFault, LocalShell, Shell, SshShell, faults_of, in_words, printed_by


class NoAccounting(SourceError):
    """The cluster keeps no account of its jobs."""


def slurm_faults() -> tuple[KnownFault, ...]:
    return faults_of("slurm", "jobtui.backends.slurm", {**KINDS, "no_accounting": NoAccounting})


INVALID_JOB = re.compile(r"Invalid job id|\bJob \S+ not found", re.IGNORECASE)
"""What scontrol says of a job that slurmctld has dropped, or of a task that never began."""

QUEUE_S, ACCOUNT_S, SHOW_S = 30.0, 90.0, 20.0
"""How long each command may take. Slurm itself waits 10 s for a daemon, and tries several times."""
MOST_BYTES = 128 << 20
"""The most bytes that are read of one answer: some 400,000 jobs."""
REMOTE = "ssh://"
NOT_FOUND = 127
"""The exit code of a shell that does not find a command."""
USUAL_PATHS = "/opt/slurm/bin:/opt/slurm/current/bin:/usr/local/slurm/bin:/usr/local/bin:/usr/slurm/bin"
"""Where the commands are when no login shell has set the PATH."""

_SCRIPT = "; ".join(
    (
        f"TZ=UTC0 LC_ALL=C.UTF-8 SLURM_TIME_FORMAT=standard PATH=$PATH:{USUAL_PATHS}",
        "export TZ LC_ALL SLURM_TIME_FORMAT PATH",
        r"for name in $(env | sed -n 's/^\(\(SQUEUE\|SACCT\|SCONTROL\)_[A-Z_]*\)=.*/\1/p')",
        'do unset "$name"',
        "done",
        "unset SLURM_CLUSTERS SLURM_JOB_ID SLURM_BITSTR_LEN",
        'exec "$@"',
    )
)
"""Run by sh; on one line, as login shells of the C family accept only one line."""


class CommandAnswer(NamedTuple):
    """What a command printed, the separator of its fields, whether it was cut, and its error messages."""

    printed: bytes
    separator: str = ""
    is_cut: bool = False
    stderr: str = ""


def squeue_words(separator: str) -> list[str]:
    """All jobs that slurmctld knows, also those that have ended, in one answer."""
    return ["squeue", "--noheader", "--all", "--local", "--states=all",
            f"--format={''.join(field + separator for field in SQUEUE)}"]  # fmt: skip


def sacct_words(separator: str, since: Nanos) -> list[str]:
    """All jobs that existed at some time since, without steps; a requeued job once for each time."""
    begin = to_rfc3339(since).partition(".")[0].removesuffix("Z")
    return [*_sacct(separator, tuple(SACCT)), "--allusers", "--allocations", "--duplicates",
            f"--starttime={begin}", "--endtime=now"]  # fmt: skip


def _sacct(separator: str, fields: Sequence[str]) -> list[str]:
    return [
        "sacct",
        "--local",
        "--noheader",
        "--parsable",
        f"--delimiter={separator}",
        f"--format={','.join(fields)}",
    ]


class Commands:
    """Runs the commands, here or where an address says. Whatever is asked raises SourceError."""

    def __init__(self, target: str, shell: Shell | None = None) -> None:
        remote = target.startswith(REMOTE)
        self._shell: Shell = shell or ((SshShell if remote else LocalShell)(target, slurm_faults()))
        self.name = self._shell.name

    async def queue(self) -> CommandAnswer:
        return await self._table(squeue_words, QUEUE_S)

    async def accounted(self, since: Nanos) -> CommandAnswer:
        return await self._table(partial(sacct_words, since=since), ACCOUNT_S)

    async def accounted_job(self, native: str) -> CommandAnswer:
        more = ("--duplicates", f"--jobs={native}")
        return await self._table(lambda mark: [*_sacct(mark, (*SACCT, *STEP_FIELDS)), *more], ACCOUNT_S)

    async def submitted(self, native: str) -> CommandAnswer:
        """The lines that jobs were submitted by, which accounting keeps since 21.08. Raises SourceError."""
        more = ("--allocations", f"--jobs={native}")
        return await self._table(lambda mark: [*_sacct(mark, SUBMITTED), *more], ACCOUNT_S)

    async def sacct(self, option: str, native: str) -> CommandAnswer:
        """What accounting knows about one job, in a form of its own. Raises SourceError."""
        return await self._answer(["sacct", "--local", option, f"--jobs={native}"], ACCOUNT_S)

    async def scontrol(self, *words: str) -> CommandAnswer:
        """What slurmctld knows about one job, nothing about others. Raises SourceError."""
        return await self._answer(["scontrol", *words], SHOW_S)

    async def sdiag(self) -> CommandAnswer:
        return await self._answer(["sdiag"], SHOW_S)

    async def _table(self, words: Callable[[str], Sequence[str]], most_s: float) -> CommandAnswer:
        """The answer whose fields are separated by a word that nobody can have put into a name."""
        separator = f"~{secrets.token_hex(5)}~"
        return await self._answer(words(separator), most_s, separator)

    async def _answer(self, words: Sequence[str], most_s: float, separator: str = "") -> CommandAnswer:
        def silence(begun: bool) -> SourceError:
            if not begun:
                return self._shell.silence(most_s)
            daemon = "slurmdbd" if words[0] == "sacct" else "slurmctld"
            why = f"{words[0]} gave no answer within {most_s:g} s; {daemon} may hang: scontrol ping"
            return SourceUnreachable(f"{self.name}: {why}")

        printed = await printed_by(self._shell, _SCRIPT, words, MOST_BYTES, most_s, silence)
        if printed.code or printed.data is None:
            noise = printed.noise if printed.data is None else ""
            fault = self._shell.fault(printed.stderr, printed.code, noise)
            if printed.code == NOT_FOUND and not isinstance(fault, SourceMissing):
                why = in_words(printed.stderr) or "the command was not found"
                fault = SourceMissing(f"{self.name}: {why}")
            raise fault
        return CommandAnswer(printed.data, separator, printed.is_cut, printed.stderr)
