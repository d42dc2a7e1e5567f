"""What a shell offers for a command line. Each key waits for it: it imports nothing heavy."""

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pkgutil import get_data

TYPE_CHECKING = False  # importing it from `typing` would take a fifth of the time
if TYPE_CHECKING:
    from jobtui.commands.reader import Reader

Row = Sequence[str]
Flag = tuple[list[str], str, bool, list[str] | None]
"""How it is spelled, its help, whether it is a setting, words for its value; None where it takes none."""
Command = tuple[str, list[str], bool, bool, list[Flag]]
"""Its help, words for its argument, whether that is a job, whether it wraps a command line, its flags."""
Table = tuple[dict[str, Command], list[Flag], dict[str, list[str]]]
"""Commands, "" for the dashboard; flags of settings; fields of filters, and the words that they have."""

OFFERED, READ_S = 200, 1.0
"""How many of the newest jobs are offered, of those that were read in time."""


def offer(shell: str, words: Sequence[str]) -> int:
    """Print what may stand for the last of the words typed so far; the exit code."""
    if shell == "bash":
        words = _joined(words)
    found, begun = list(_offered(words)), words[-1]
    paths = [row for row in found if row[0].startswith(":")]
    fits = [row for row in found if row[0].startswith(begun) and row not in paths]
    done = begun.rpartition(":")[0] + ":" if shell == "bash" and ":" in begun else ""
    lines = []
    for word, text in fits or paths:
        word = word.removeprefix(done)
        if shell == "zsh" and not word.startswith(":"):
            word = word.replace(":", "\\:")
        between = {"zsh": ":", "fish": "\t"}.get(shell, "") if text else ""
        lines.append(f"{word}{between}{text if between else ''}\n")
    sys.stdout.write("".join(lines))
    return 0


def _joined(words: Iterable[str]) -> list[str]:
    """The words without the breaks that readline makes at colons; what is offered begins after the last."""
    whole = [""]
    for word in words:
        if whole[1:] and (word == ":" or whole[-1].endswith(":")):
            whole[-1] += word
        else:
            whole.append(word)
    return whole[1:]


def _offered(words: Sequence[str]) -> Iterable[Row]:
    """The words that can be typed, each with a description; `:file` and `:directory` stand for paths."""
    *before, begun = words
    if "=" in (begun, *before[-1:]) or (begun.startswith("--") and "=" in begun):
        return [(":file", "")]
    commands, settings, fields = table()
    name, sources = "", list[str]()
    flag: Flag | None = None
    pieces = (part for word in before for part in (word.split("=", 1) if word[:2] == "--" else (word,)))
    for piece in filter(None, pieces):
        if flag is None:
            if piece in commands and (not name or commands[name][3]):
                name = piece
            known = (*commands[name][4], *settings)
            flag = next((one for one in known if piece in one[0] and one[3] is not None), None)
        elif piece != "=":  # readline gives --flag=value in three pieces
            sources += (flag[0][0], piece) if flag[2] else ()
            flag = None
    if flag is not None:
        return [(word, "") for word in flag[3] or ()]
    _, choices, takes_job, wraps, flags = commands[name]
    if begun.startswith("-"):
        return [(word, one[1]) for one in (*flags, *settings) for word in one[0]]
    rows = [(one, commands[one][0]) for one in commands if one] if not name or wraps else []
    rows += [(word, "") for word in (*choices, *(_filter_words(begun, fields) if name == "jobs" else ()))]
    is_elsewhere = any(commands[word][3] for word in before if word in commands)
    is_command = not name and any(one.startswith(begun) for one in commands if one)
    return [*rows, *(_jobs(sources, begun) if takes_job and not is_elsewhere and not is_command else ())]


def table() -> Table:
    """What `release.words` made of the tables of the program."""
    commands, settings, fields = json.loads(get_data(__name__, "completion.json") or b"")
    return commands, settings, fields


def _filter_words(begun: str, fields: Mapping[str, Sequence[str]]) -> Iterable[str]:
    """Fields of a filter, or the words that may be the value of the one that is begun."""
    end = max(map(begun.rfind, ":=<>,")) + 1
    field = begun.partition(":")[0].partition("=")[0].removesuffix("!").lower()
    return (begun[:end] + word for word in fields.get(field, ())) if end else (f"{name}:" for name in fields)


def _jobs(sources: Sequence[str], begun: str) -> Iterable[Row]:
    """The newest jobs of the sources that are named whose ids begin so, those that failed first."""
    from jobtui.backends.registry import SIREPO_DB, Gives, gives
    from jobtui.backends.sirepo.files import newest_jobs
    from jobtui.config import load
    from jobtui.model.jobs import Job, JobStatus
    from jobtui.render.text import show

    async def read(reader: "Reader") -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(READ_S):
                await reader.read_jobs()
        jobs.extend(reader.session.store.jobs.values())

    given: dict[str, tuple[str, ...]] = {}
    for flag, value in zip(sources[::2], sources[1::2], strict=True):
        name = flag.removeprefix("--").replace("-", "_")
        given[name] = (*given.get(name, ()), value)
    config, jobs = load(given, os.environ), list[Job]()
    named = [spec for spec in config.sources if gives(spec, Gives.JOBS)]
    if not named or not all(map(SIREPO_DB.names, named)):
        import asyncio  # takes as long as all the rest

        from jobtui.commands.context import make_context
        from jobtui.commands.reader import configured, within
        from jobtui.grammar import DASHBOARD, Invocation

        context = make_context(Invocation(DASHBOARD, (), {}, {}), config, lambda *about: None)
        named = [spec for spec in configured(context) if gives(spec, Gives.JOBS)]
        if others := [spec for spec in named if not SIREPO_DB.names(spec)]:
            asyncio.run(within(context, others, read))
    for spec in filter(SIREPO_DB.names, named):
        jobs += newest_jobs(spec.target, OFFERED, begun)
    plain = re.compile(r"[\w./@#:,+-]+", re.ASCII)  # what no shell takes for something else
    found = [job for job in jobs if plain.fullmatch(job.id)]
    found.sort(key=lambda job: (job.status is not JobStatus.FAILED, -(job.updated_at or job.queued_at or 0)))
    return [(job.id, show(f"{job.status.value} {job.owner} {job.name}")) for job in found[:OFFERED]]
