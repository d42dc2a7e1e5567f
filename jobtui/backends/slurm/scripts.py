"""The script of a job as Slurm itself has it: slurmctld while it knows the job, or accounting.

Seen with 22.05: slurmctld gives a script byte for byte, to its owner and to operators. Accounting
(`AccountingStoreFlags=job_script,job_env`) puts two lines before it and a line end behind it, replaces bytes
that are no text, and parts variables by line ends, which their values may hold as well.
"""

import re

from jobtui.backends.base import SourceError
from jobtui.backends.slurm.commands import Commands
from jobtui.model.scripts import Answer, ArchivedScript, Environment, Outcome, Tried, Variable, Wanted

NONE = b"NONE\n"
"""What accounting says where it keeps nothing."""
RULED = re.compile(rb"[^\n]*\n-+\n(.*)\n\Z", re.DOTALL)
NOT_ITS_USER = "Invalid user id"
_NAME = re.compile(rb"[A-Za-z_]\w*(?:\(\)|%%)?=", re.ASCII)
FROM_ACCOUNTING = "out of accounting: bytes that are no text would have been replaced"
LINES_PART = (
    "its variables are parted by line ends: where values hold some, they are put together as is likely"
)


async def find_kept(commands: Commands, wanted: Wanted) -> Answer:
    """The script out of slurmctld, else out of accounting, and its environment where accounting keeps it."""
    live, live_tried = await _live(commands, wanted.number)
    kept, kept_tried = (None, None) if live is not None else await _kept(commands, wanted.number)
    script = live if live is not None else kept
    tried = tuple(filter(None, (live_tried, kept_tried)))
    if script is None:
        return Answer(None, tried)
    variables = await _variables(commands, wanted.number)
    notes = (FROM_ACCOUNTING,) if live is None else ()
    made = ArchivedScript(
        number=wanted.number,
        script=script,
        source=tried[-1].where,
        cluster=wanted.cluster,
        environment=variables,
        notes=(*notes, LINES_PART) if variables is not None else notes,
    )
    return Answer(made, tried)


async def _live(commands: Commands, number: str) -> tuple[bytes | None, Tried]:
    where = f"{commands.name}: scontrol write batch_script {number} -"
    try:
        answer = await commands.live_script(number)
    except SourceError as error:
        return None, Tried(where, Outcome.NO_ANSWER, str(error).removeprefix(f"{commands.name}: "))
    if answer.printed:
        return answer.printed.removesuffix(b"\0"), Tried(where, Outcome.FOUND)
    if NOT_ITS_USER in answer.said:
        return None, Tried(where, Outcome.DENIED, "only its owner and operators get it")
    return None, Tried(where, Outcome.NOT_THERE, "slurmctld knows it no more")


async def _kept(commands: Commands, number: str) -> tuple[bytes | None, Tried]:
    where = f"{commands.name}: sacct -j {number} --batch-script"
    try:
        answer = await commands.kept_script(number)
    except SourceError as error:
        return None, Tried(where, Outcome.NO_ANSWER, str(error).removeprefix(f"{commands.name}: "))
    if (text := below_rule(answer.printed)) is not None:
        return text, Tried(where, Outcome.FOUND)
    return None, Tried(where, Outcome.NOT_THERE, "accounting keeps no script of it, or not for this user")


async def _variables(commands: Commands, number: str) -> Environment | None:
    try:
        answer = await commands.kept_environment(number)
    except SourceError:
        return None
    text = below_rule(answer.printed)
    return None if text is None else Environment(tuple(variables_of(text)))


def below_rule(printed: bytes) -> bytes | None:
    """What stands below the two lines of heading, None where nothing is kept."""
    found = RULED.match(printed)
    return None if found is None or found[1] + b"\n" == NONE or found[1] == NONE else found[1]


def variables_of(text: bytes) -> list[Variable]:
    """Variables one a line; a line that begins with no name goes on with the value before."""
    found: list[Variable] = []
    for line in text.removesuffix(b"\n").split(b"\n"):
        if found and not _NAME.match(line):
            name, value = found[-1]
            found[-1] = Variable(name, (value or b"") + b"\n" + line)
        else:
            name, equals, value = line.partition(b"=")
            found.append(Variable(name, value if equals else None))
    return found
