"""Slurm's output as records: tables of squeue and sacct, `scontrol show job`, the JSON of sacct.

Pure, and nothing here raises. Basis: Slurm 22.05.8 and 24.11.5 as run, and the manuals up to 25.05. The
commands are run with TZ=UTC0, so that their times, which name no zone, are UTC.

A name may hold any character, also newlines and what looks like another row. In tables the separator is a
word that nobody can know when a job is named, and a row ends where it has all its fields. `scontrol` escapes
nothing: there a name ends at the last place at which the fields come that always follow it; of other fields
the first counts, of those after texts that a user chose the last.

Each release has its own shape of JSON: a number may be wrapped as `{"set", "infinite", "number"}`, a state be
a list of words. 22.05 was run; 23.11, 24.05 and 24.11 were compared with what clusters had printed.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import islice, pairwise

import msgspec
from msgspec.structs import replace

from jobtui.model.clock import Nanos, from_seconds, time_of_iso, time_of_seconds
from jobtui.model.health import Skip
from jobtui.model.jobs import JobStatus
from jobtui.model.numbers import read_json, real, whole, whole_of
from jobtui.model.patterns import regex
from jobtui.model.slurm import BY_PROGRAM, HANGUP, SlurmExit, SlurmJob, SlurmStep
from jobtui.model.tables import tables_of

NOTHING = frozenset({"", "(null)", "N/A", "n/a", "None", "none", "Unknown", "NONE", "None assigned", "null"})
"""How the commands write that there is no value."""
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400
TEXT_CHARACTERS = 2_000
"""The most characters that are kept of a user's text."""

_TIME = regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", re.ASCII)
_DURATION = regex(r"(?:(\d{1,6})-)?(\d{1,6})(?::(\d\d))?(?::(\d\d))?(?:\.\d+)?", re.ASCII)
_EXIT = regex(r"(\d{1,10}):(\d{1,10})", re.ASCII)
_SIZE = regex(r"(\d{1,12}(?:\.\d{1,6})?)([KMGTP])?([nc])?", re.ASCII)
_PATTERN = regex(r"%(?:%|(\d*)([a-zA-Z]))", re.ASCII)
_CANCELED = regex(r"CANCELLED by (\S{1,64})", re.ASCII)


def text_of(text: str) -> str:
    """A text, "" if the commands write that there is none."""
    return "" if text in NOTHING else text[:TEXT_CHARACTERS]


def time_of(text: str) -> Nanos | None:
    """A time, from ISO text in UTC or seconds since the epoch; None for anything else."""
    if text.isdecimal():
        return time_of_seconds(whole(text)) or None  # Slurm writes 0 for no time
    return time_of_iso(text) if _TIME.fullmatch(text) else None


def duration_of(text: str) -> float | None:
    """Seconds of `[days-]hours:minutes:seconds`, `minutes:seconds` or minutes; None for no limit."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    days, *parts = found.groups()
    numbers = [whole(part, 0) for part in parts if part is not None]
    # one number alone is minutes, and hours after days
    begin = 0 if days is not None or len(numbers) == 3 else 1
    total = sum(number * unit for number, unit in zip(numbers, (HOUR_S, MINUTE_S, 1)[begin:], strict=False))
    return 1.0 * (total + whole(days, 0) * DAY_S)


@lru_cache(maxsize=1_000)
def exit_of(text: str) -> SlurmExit | None:
    """`code:signal`."""
    found = _EXIT.fullmatch(text)
    return SlurmExit(whole(found[1], 0), whole(found[2], 0)) if found else None


def bytes_of(text: str, cpus: str = "", nodes: str = "") -> float | None:
    """Bytes of a size as sacct has it: `533588K`, `1.50G`; None for what is none.

    That of a job, which has `cpus` and `nodes`, is what it has on each node; before 21.08 sacct wrote it for
    each node, `100Mn`, or for each CPU, `100Mc`.
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    size = (real(found[1]) or 0.0) * 1024.0 ** ("KMGTP".index(found[2] or "M") + 1)
    nodes_, cpus_ = whole(nodes, 1), whole(cpus, 1)
    if found[3] == "c":
        size *= cpus_
    return size if found[3] == "n" else size / max(1, nodes_)


def first_node(nodes: str) -> str:
    """The first node of a list: `n1` of `n[1-4],m7`."""
    found = re.match(r"([^\[,]*)(?:\[(\w+))?", nodes)
    return f"{found[1]}{found[2] or ''}" if found else ""


def sign_values(job: str, array: str, task: str, name: str, user: str = "", node: str = "") -> dict[str, str]:
    """The values for the signs of a batch script's file names, as far as they are known."""
    values = {
        "A": array, "J": job, "N": node, "a": task, "b": task[-1:] if task.isdecimal() else "",
        "j": job, "n": "0", "s": "batch", "t": "0", "u": user, "x": name,
    }  # fmt: skip
    return {sign: value for sign, value in values.items() if value}


def filled(pattern: str, values: Mapping[str, str]) -> str:
    """A pattern with its signs replaced: `%j`, `%4j` with leading zeros, `%%`; unknown ones stay."""
    if pattern.startswith("\\") or "\\\\" in pattern:
        return pattern.replace("\\", "")

    def value(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        known = values.get(found[2])
        return found[0] if known is None else known.rjust(min(whole(found[1], 0), 10), "0")

    return _PATTERN.sub(value, pattern)


def unknown_signs(pattern: str, values: Mapping[str, str]) -> str:
    """The signs that `filled` leaves in a pattern, "" without any."""
    if pattern.startswith("\\") or "\\\\" in pattern:
        return ""
    signs = (found[0] for found in _PATTERN.finditer(pattern) if found[2] and found[2] not in values)
    return ", ".join(dict.fromkeys(signs))


def state_of(text: str) -> tuple[str, str]:
    """A state and who canceled it: `CANCELLED by 1001`; a `+` at the end is a word that was cut off."""
    found = _CANCELED.fullmatch(text)
    return ("CANCELLED", found[1]) if found else (text.rstrip("+"), "")


def settled(job: SlurmJob) -> SlurmJob:
    """The same job without times and codes that are no facts: start and end that are only expected.

    An exit code counts where the program's end was the job's, or it says why slurmd started nothing. One that
    says success of a failed job is none, as in sacct's JSON of 22.05; nor is one of a job that never began.
    """
    status, began = job.status, job.started_at
    if status is JobStatus.PENDING or job.never_began:
        job = replace(job, started_at=None)
    if status is JobStatus.PENDING:
        job = replace(job, expected_at=began)
    tells = job.state in BY_PROGRAM and (job.state != "FAILED" or (job.exit is not None and any(job.exit)))
    tells = (tells or bool(job.state == "CANCELLED" and job.not_started)) and not job.never_began
    return replace(job, exit=job.exit if tells else None, ended_at=None if status.is_live else job.ended_at)


Row = Mapping[str, str]
PART_BYTES = 1 << 18


def pieces_of(
    printed: bytes, separator: str, count: int, where: str
) -> tuple[Iterator[tuple[str, ...]], tuple[Skip, ...]]:
    """The rows of a table in which a separator follows each of `count` fields, also the last one of a row.

    The rest at the end is a row that was cut off, which cannot be read.
    """
    mark = separator.encode()
    total, end = printed.count(mark), printed.rfind(mark)
    whole = total - total % count
    rest = printed[end + len(mark) :] if end >= 0 else printed
    fields = islice(_fields(printed, separator), whole)
    rows = ((row[0].removeprefix("\n"), *row[1:]) for row in zip(*[fields] * count, strict=False))
    return rows, (Skip(where, "the last row is cut off"),) if total != whole or rest.strip() else ()


def _fields(printed: bytes, separator: str) -> Iterator[str]:
    """The fields one by one. The text is split in parts: while it splits millions, no other thread runs."""
    mark, at = separator.encode(), 0
    while (end := printed.find(mark, min(at + PART_BYTES, len(printed)))) >= 0:
        yield from printed[at:end].decode("utf-8", "replace").split(separator)
        at = end + len(mark)
    yield from printed[at:].decode("utf-8", "replace").split(separator)


def rows_of(printed: bytes, separator: str, fields: Sequence[str]) -> list[dict[str, str]]:
    rows, _ = pieces_of(printed, separator, len(fields), "")
    return [dict(zip(fields, row, strict=True)) for row in rows]


Convert = Callable[[str], object]

_CONVERTERS: Mapping[str, Convert] = {
    "name": lambda text: text[:TEXT_CHARACTERS],
    "reason_word": lambda text: text_of(text).replace(" ", "_"),  # squeue writes some words with blanks
    "time_of": time_of,
    "duration_of": duration_of,
    "exit_of": exit_of,
    "minutes": lambda text: None if (minutes := real(text)) is None else minutes * MINUTE_S,
    "count": lambda text: whole(text, 0),
    "whole": whole,
    "milliseconds": lambda text: None if (micros := whole(text)) is None else micros / 1_000,
    "state_word": lambda text: state_of(text)[0],
    "states": lambda text: text.replace("+", " ").replace("*", " NOT_RESPONDING").upper(),
}
_TABLES = tables_of("jobtui.formats", "slurm")

Table = Mapping[str, tuple[str, Convert]]


def table_of(command: str) -> Table:
    named = {name: (one, "") if isinstance(one, str) else one for name, one in _TABLES[command].items()}
    return {name: (field, _CONVERTERS.get(how, text_of)) for name, (field, how) in named.items()}


def values_of(row: Row, table: Table) -> dict[str, object]:
    """The values of the fields of a row; of two fields for one thing the later in the table counts."""
    return {name: convert(row[field]) for field, (name, convert) in table.items() if field in row}


SQUEUE = table_of("squeue")
"""The fields that squeue is asked for, and the field of a job for each."""

SACCT = table_of("sacct")
"""The same of sacct, which has all of these since 20.11."""

STEP_FIELDS = ("MaxRSS",)
"""Also asked for if steps are wanted."""
STEP = table_of("step")
SUBMITTED = ("JobIDRaw", "SubmitLine")
"""Asked for if slurmctld no longer knows a job."""

_SBATCH = _TABLES["sbatch"]


def options_of(words: Sequence[str]) -> tuple[dict[str, str], Sequence[str]]:
    """The options that words begin with, by their long names, the last of each; the words after them."""
    found, at = dict[str, str](), 0
    while at < len(words) and words[at].startswith("-") and len(words[at]) > 1:
        word, at = words[at], at + 1
        name, equals, value = word[2:].partition("=")
        if not word.startswith("--"):
            name = _SBATCH["short"].get(word[1], word[1])
            equals = value = word[2:].removeprefix("=")
        if not equals and name not in _SBATCH["flags"] and at < len(words):
            value, at = words[at], at + 1
        found[name] = value
    return found, words[at:]


def with_submission(job: SlurmJob, line: str) -> SlurmJob:
    """The same job with its script and the files of its output, by its line of sbatch.

    Quotes are lost in it. A relative path is of the job's own directory, else of where it was submitted.
    """
    program, *words = line.split() or [""]
    options, command = options_of(words)
    if posixpath.basename(program) != "sbatch" or "wrap" in options:
        return job
    script = " ".join(command)
    if script and "chdir" not in options:
        path, blank, arguments = posixpath.join(job.directory, script).partition(" ")
        script = f"{posixpath.normpath(path)}{blank}{arguments}"
    return replace(
        job,
        command=script,
        stdout=job.stdout or options.get("output", ""),
        stderr=job.stderr or options.get("error", ""),
    )


def queued_job(row: Row) -> SlurmJob | None:
    return _job(row, SQUEUE)


def accounted_job(row: Row) -> SlurmJob | None:
    """A row of sacct that is a job and no step; None for what is neither.

    A run that it calls requeued is over where it has an end: its times are facts.
    """
    job = None if "." in row.get("JobID", "") else _job(row, SACCT)
    if job is None or job.state != "REQUEUED" or (ended := time_of(row.get("End", ""))) is None:
        return job
    return replace(job, started_at=time_of(row.get("Start", "")), ended_at=ended)


def _job(row: Row, table: Table) -> SlurmJob | None:
    values = values_of(row, table)
    values["state"], values["canceled_by"] = state_of(str(values.get("state", "")))
    if not is_job_id(str(values.get("id", ""))) or not values["state"]:
        return None
    array, _, task = str(values["id"]).partition("_")
    values |= {"array": array if task else "", "task": task.strip("[]")}
    return settled(msgspec.convert(values, SlurmJob))


def is_job_id(text: str) -> bool:
    """Whether a text is an id as Slurm writes it: `22`, `22_1`, `22_[1-4%2]`, `22+0`."""
    return text[:1].isdecimal() and text.isascii() and len(text) < 10_000 and not set(text) - _OF_IDS


_OF_IDS = frozenset("0123456789_[]-,:%+.")


def task_count(tasks: str) -> int:
    """How many tasks of an array a list of them has: `3`, `2,4-9:2%4`."""
    count = 0
    for part in tasks.partition("%")[0].split(","):
        low, _, rest = part.partition("-")
        high, _, step = rest.partition(":")
        first = whole(low, 0)
        count += max(0, whole(high, first) - first) // max(1, whole(step, 1)) + 1
    return count


def jobs_with_steps(rows: Iterable[Row]) -> list[SlurmJob]:
    """The jobs among the rows of sacct, each with the steps that follow it.

    A job that was requeued is there several times, oldest first.
    """
    found: list[tuple[SlurmJob, list[SlurmStep]]] = []
    for row in rows:
        if (job := accounted_job(row)) is not None:
            found.append((job, []))
            continue
        of, dot, number = row.get("JobID", "").partition(".")
        if dot and found and found[-1][0].id == of:
            found[-1][1].append(msgspec.convert(values_of(row, STEP) | {"id": number[:64]}, SlurmStep))
    return [_with_steps(job, tuple(steps)) for job, steps in found]


def _with_steps(job: SlurmJob, steps: tuple[SlurmStep, ...]) -> SlurmJob:
    """The same job with its steps. sacct writes signal 1 as exit code 1, but not for its script."""
    by_script = [step.exit for step in steps if step.id == "batch"]
    is_hangup = job.exit == SlurmExit(1) and by_script == [HANGUP]
    return replace(job, steps=steps, exit=HANGUP if is_hangup else job.exit)


_BEGIN = regex(r"^JobId=\d+ ", re.ASCII | re.MULTILINE)
_NAME = regex(
    r"JobName=(?P<name>.*)(?:\n {3}|(?<!\n {2}) )UserId=(?P<user>\S*?)\(\d+\) GroupId=\S+ MCS_label=",
    re.ASCII | re.DOTALL,
)
_FIELD = regex(r"(?<!\S)([A-Z][A-Za-z0-9_:/]*)=")
_LAST_COUNTS = frozenset({"StdErr", "StdIn", "StdOut"})

SCONTROL = table_of("scontrol")
"""The fields that a record is made of. `ArrayTaskId` is `3`, or `3-4%2` for those that have not begun."""


def shown_jobs(printed: str) -> Iterator[tuple[SlurmJob, dict[str, str]]]:
    begins = [found.start() for found in _BEGIN.finditer(printed)]
    for begin, end in pairwise([*begins, len(printed)]):
        found = _shown_job(printed[begin:end])
        if found is not None:
            yield found


def _shown_job(text: str) -> tuple[SlurmJob, dict[str, str]] | None:
    named = _NAME.search(text)
    if named is None:
        return None
    said = fields_of_line(text[: named.start()], _LAST_COUNTS)
    said |= fields_of_line(text[named.end("user") :], _LAST_COUNTS)
    said |= {"JobName": named["name"], "UserId": named["user"]}
    array, task, raw = (text_of(said.get(key, "")) for key in ("ArrayJobId", "ArrayTaskId", "JobId"))
    is_one = task.isdecimal()
    job_id = raw if not task else f"{array}_{task}" if is_one else f"{array}_[{task}]"
    if "HetJobOffset" in said:
        job_id = f"{said.get('HetJobId', '')}+{said['HetJobOffset']}"
    if not is_job_id(job_id):
        return None
    names = {"name": named["name"][:TEXT_CHARACTERS], "user": named["user"]}
    ids = {"id": job_id, "raw": raw, "array": array, "task": task}
    values = {**values_of(said, SCONTROL), **names, **ids, "is_whole": True}
    return settled(msgspec.convert(values, SlurmJob)), said


def answered_at(job: SlurmJob, said: Mapping[str, str]) -> Nanos | None:
    """When slurmctld answered, by its own clock. Only a job that runs and was never suspended tells it."""
    used_s, was_suspended = duration_of(said.get("RunTime", "")), said.get("SecsPreSuspend") != "0"
    if job.state != "RUNNING" or was_suspended or job.started_at is None or used_s is None:
        return None
    return Nanos(job.started_at + from_seconds(used_s))


def fields_of_line(text: str, last_counts: Set[str] = frozenset()) -> dict[str, str]:
    """`Name=value` by name, the first of a name, of some the last; a value goes up to the next name."""
    places = list(_FIELD.finditer(text))
    ends = [place.start() for place in places[1:]] + [len(text)]
    found: dict[str, str] = {}
    for place, end in zip(places, ends, strict=False):
        if place[1] not in found or place[1] in last_counts:
            found[place[1]] = text[place.end() : end].strip()
    return found


def ends_in_json(printed: bytes) -> dict[str, SlurmJob]:
    """The end of each job by its number, with whole exit codes; in 24.11 also its output.

    Raises ValueError for what is no answer of sacct.
    """
    document = read_json(printed)
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list):
        raise ValueError("it has no list of jobs")
    found = {}
    for job in jobs:
        number, state = _number(job, "job_id"), _at(job, "state.current")
        states = state if isinstance(state, list) else [state]
        if number is None or not states or not isinstance(states[0], str):
            continue
        code = _number(job, "exit_code.return_code")
        signal = _number(job, "exit_code.signal.id", "exit_code.signal.signal_id")
        found[str(number)] = SlurmJob(
            id=str(number),
            submitted_at=time_of_seconds(_number(job, "time.submission")),
            state=states[0],
            exit=None if signal is None and code is None else SlurmExit(code or 0, signal or 0),
            stdout=_text(job, "stdout_expanded", "stdout"),
            stderr=_text(job, "stderr_expanded", "stderr"),
        )
    return found


def _at(document: object, path: str) -> object:
    for name in path.split("."):
        document = document.get(name) if isinstance(document, dict) else None
    return document


def _number(document: object, *paths: str) -> int | None:
    """The first whole number at one of the paths; since 23.02 it may be wrapped with whether it is set."""
    for path in paths:
        value = _at(document, path)
        if isinstance(value, dict):
            value = value.get("number") if value.get("set", True) and not value.get("infinite") else None
        if not isinstance(value, str) and (number := whole_of(value)) is not None:
            return number
    return None


def _text(document: object, *paths: str) -> str:
    values = (_at(document, path) for path in paths)
    return next((text_of(value) for value in values if isinstance(value, str) and value), "")
