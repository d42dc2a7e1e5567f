"""What Slurm's commands are asked with, and how: their words, their environment, and the answers as bytes.

Only `squeue`, `sacct`, `scontrol show job` and `scontrol write batch_script` (to standard output) are ever
run. Times come in UTC, and settings of the user that would change an answer are left out.
"""

import asyncio
import re
import secrets
from collections.abc import Sequence
from typing import NamedTuple

from jobtui.backends.base import SourceError, SourceMissing, SourceUnreachable
from jobtui.backends.journal.faults import in_words
from jobtui.backends.journal.local_shell import LocalShell
from jobtui.backends.journal.shell import command_line
from jobtui.backends.journal.ssh import FAILED_ITSELF, SshShell
from jobtui.backends.journal.talk import Shell
from jobtui.backends.slurm.faults import NO_JSON, SLURM
from jobtui.formats.slurm_tables import SACCT, SQUEUE, STEP_FIELDS
from jobtui.model.clock import Nanos, to_rfc3339

QUEUE_S, ACCOUNT_S, SHOW_S = 30.0, 90.0, 20.0
"""How long each command may take. Slurm's own patience with a daemon is 10 s for each of some tries."""
MOST_BYTES = 128 << 20
"""Read of one answer: some 400,000 jobs."""
REMOTE = "ssh://"
USUAL_PLACES = "/opt/slurm/bin:/opt/slurm/current/bin:/usr/local/slurm/bin:/usr/local/bin:/usr/slurm/bin"
"""Where the commands are when no login shell has set the PATH."""

_SCRIPT = "; ".join(
    (
        "echo $1",
        "shift",
        f"TZ=UTC0 LC_ALL=C.UTF-8 SLURM_TIME_FORMAT=standard PATH=$PATH:{USUAL_PLACES}",
        "export TZ LC_ALL SLURM_TIME_FORMAT PATH",
        r"for name in $(env | sed -n 's/^\(\(SQUEUE\|SACCT\|SCONTROL\)_[A-Z_]*\)=.*/\1/p')",
        'do unset "$name"',
        "done",
        "unset SLURM_CLUSTERS SLURM_JOB_ID SLURM_BITSTR_LEN",
        'exec "$@"',
    )
)
"""Run by sh, behind a mark; on one line, as a login shell of the C family takes no other."""


class Answer(NamedTuple):
    """What a command printed, what separates its fields, whether there was more, and its complaints."""

    printed: bytes
    separator: str = ""
    is_cut: bool = False
    said: str = ""


def squeue_words(separator: str, fields: Sequence[str] = tuple(SQUEUE)) -> list[str]:
    """All jobs that slurmctld knows, also those that have ended, in one answer."""
    return ["squeue", "--noheader", "--all", "--local", "--states=all",
            f"--format={''.join(field + separator for field in fields)}"]  # fmt: skip


def sacct_words(separator: str, since: Nanos) -> list[str]:
    """All jobs, without their steps, that were there at some time since; each time that one was requeued."""
    return [*_sacct(separator, tuple(SACCT)), "--allusers", "--allocations", "--duplicates",
            f"--starttime={_time(since)}", "--endtime=now"]  # fmt: skip


def sacct_job_words(separator: str, native: str) -> list[str]:
    """One job with its steps, and each time it was requeued."""
    return [*_sacct(separator, (*SACCT, *STEP_FIELDS)), "--duplicates", f"--jobs={native}"]


def _sacct(separator: str, fields: Sequence[str]) -> list[str]:
    return ["sacct", "--noheader", "--parsable", f"--delimiter={separator}", f"--format={','.join(fields)}"]


def scontrol_words(native: str) -> list[str]:
    """What slurmctld knows of one job."""
    return ["scontrol", "--all", "show", "job", native]


def scontrol_json_words(native: str) -> list[str]:
    """The same as JSON, which releases from 23.02 on have; there a name cannot pass for anything else."""
    return ["scontrol", "--all", "--json", "show", "job", native]


def _time(at: Nanos) -> str:
    return to_rfc3339(at).partition(".")[0].removesuffix("Z")


class Commands:
    """Runs the commands, here or where an address says."""

    def __init__(self, target: str, shell: Shell | None = None) -> None:
        remote = target.startswith(REMOTE)
        self._has_json = True
        self._shell: Shell = shell or ((SshShell if remote else LocalShell)(target, SLURM))

    @property
    def name(self) -> str:
        """What is asked, as it was configured."""
        return self._shell.name

    async def queue(self) -> Answer:
        """Everything that slurmctld knows. Raises SourceError."""
        separator = _separator()
        return await self._answer(squeue_words(separator), QUEUE_S, separator)

    async def accounted(self, since: Nanos) -> Answer:
        """What accounting knows of all jobs since. Raises SourceError."""
        separator = _separator()
        return await self._answer(sacct_words(separator, since), ACCOUNT_S, separator)

    async def accounted_job(self, native: str) -> Answer:
        """What accounting knows of one job. Raises SourceError."""
        separator = _separator()
        return await self._answer(sacct_job_words(separator, native), ACCOUNT_S, separator)

    async def shown_job(self, native: str) -> Answer:
        """What slurmctld knows of one job. Raises SourceError."""
        return await self._answer(scontrol_words(native), SHOW_S)

    async def live_script(self, native: str) -> Answer:
        """The script of a job that slurmctld knows, nothing for others. Raises SourceError."""
        return await self._answer(["scontrol", "write", "batch_script", native, "-"], SHOW_S)

    async def kept_script(self, native: str) -> Answer:
        """The script that accounting keeps of a job. Raises SourceError."""
        return await self._answer(["sacct", "--batch-script", f"--jobs={native}"], ACCOUNT_S)

    async def kept_environment(self, native: str) -> Answer:
        """The environment that accounting keeps of a job. Raises SourceError."""
        return await self._answer(["sacct", "--env-vars", f"--jobs={native}"], ACCOUNT_S)

    async def shown_json(self, native: str) -> Answer | None:
        """The same as JSON; None where the release has none, which is asked only once. Raises SourceError."""
        if not self._has_json:
            return None
        try:
            return await self._answer(scontrol_json_words(native), SHOW_S)
        except SourceError as error:
            if not re.search(NO_JSON, str(error), re.IGNORECASE):
                raise
            self._has_json = False
            return None

    async def _answer(self, words: Sequence[str], most_s: float, separator: str = "") -> Answer:
        """What a command prints. It comes behind a mark: a login may print things of its own."""
        mark = secrets.token_hex(8)
        running = await self._shell.run(command_line(["sh", "-c", _SCRIPT, "sh", mark, *words]))
        printed, code = bytearray(), None
        try:
            async with asyncio.timeout(most_s):
                while len(printed) < MOST_BYTES and (piece := await running.read()):
                    printed += piece
                code = 0 if len(printed) >= MOST_BYTES else await running.ended()
        except TimeoutError:
            raise self._silence(words[0], most_s, begun=mark.encode() in printed) from None
        finally:
            await running.stop()
        line = f"{mark}\n".encode()
        at = printed.find(line)
        if code or at < 0:
            told = in_words(printed.decode("utf-8", "replace")) if at < 0 else ""
            raise self._fault(running.said, code or 0, told)
        return Answer(
            bytes(memoryview(printed)[at + len(line) :]), separator, len(printed) >= MOST_BYTES, running.said
        )

    def _fault(self, said: str, code: int, told: str) -> SourceError:
        fault = self._shell.fault(said, code, told)
        if code == 127 and not isinstance(fault, SourceMissing) and code != FAILED_ITSELF:
            return SourceMissing(f"{self.name}: {in_words(said) or 'the command was not found'}")
        return fault

    def _silence(self, command: str, seconds: float, *, begun: bool) -> SourceError:
        if not begun:
            return self._shell.silence(seconds)
        daemon = "slurmdbd" if command == "sacct" else "slurmctld"
        return SourceUnreachable(
            f"{self.name}: {command} gave no answer within {seconds:g} s; {daemon} may hang: scontrol ping"
        )


def _separator() -> str:
    """A word that nobody can have put into a name."""
    return f"~{secrets.token_hex(5)}~"
