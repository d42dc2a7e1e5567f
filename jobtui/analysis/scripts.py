"""Scripts of jobs: which one is a job's, what it says of outputs, how it is shown, how two differ.

Dates, times, ids and ports always differ and mean nothing: lines that differ only in them are noise, and are
counted instead of shown. Secrets are compared as they are, and masked when shown.

Slurm's `sbatch` and Torque's `qsub` read options from comments before the first command. Options of the
command line and of the environment override these and are not known here, so what the scheduler itself
reports is preferred.
"""

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import groupby, zip_longest
from operator import attrgetter
from typing import NamedTuple

from jobtui.formats.sarchive import parse_wanted
from jobtui.formats.slurm import filled, options_of, sign_values, unknown_signs
from jobtui.model.job_reader import SbatchStatus
from jobtui.model.jobs import SLURM, Job, JobDetail, JobStatus
from jobtui.model.patterns import regex
from jobtui.model.scripts import ArchivedScript, Environment, Scheduler, Variable, Wanted, text_of
from jobtui.model.secrets import mask_document, mask_text, masked_lines

NOT_STARTED = frozenset({JobStatus.PENDING, JobStatus.UNKNOWN})


def wanted_of_slurm(job: Job, detail: JobDetail | None = None) -> Wanted | None:
    wanted = parse_wanted(job.id)
    if wanted is None or job.system != SLURM:
        return None
    record = _table(detail.native.get("slurm")) if detail is not None else {}
    cluster = record.get("cluster")
    times = [run.queued_at for run in detail.runs if run.queued_at is not None] if detail is not None else []
    return wanted._replace(
        cluster=cluster if isinstance(cluster, str) else "",
        submitted_at=min(times, default=job.queued_at),
        is_batch=detail is None or _is_batch(detail),
    )


def wanted_of_sirepo(status: SbatchStatus) -> Wanted | None:
    """The script of a run that Sirepo's agent submitted, by what it noted; None before it was submitted."""
    wanted = parse_wanted(status.slurm_id) if status.slurm_id else None
    return None if wanted is None else wanted._replace(submitted_at=status.submitted_at)


def _is_batch(detail: JobDetail) -> bool:
    """Whether it was submitted with a script, by what Slurm says: srun and salloc have none."""
    flag = _table(detail.native.get("scontrol")).get("BatchFlag")
    if isinstance(flag, str) and flag in ("0", "1"):
        return flag == "1"
    steps = _table(detail.native.get("slurm")).get("steps")
    if detail.job.status in NOT_STARTED or not isinstance(steps, list | tuple) or not steps:
        return True
    return any(str(_table(step).get("id")).endswith("batch") for step in steps)


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def lines_of(script: bytes) -> list[str]:
    lines = text_of(script).split("\n")
    return lines if lines[-1] else lines[:-1]


def masked_script(script: bytes) -> str:
    """A script as text with its secrets masked, its lines and their ends as they are."""
    return "\n".join(masked_lines(text_of(script).split("\n")))


def shown_variable(variable: Variable) -> tuple[str, str | None]:
    """A variable as it may be shown: its name and value, None where the entry had no `=`."""
    name = text_of(variable.name)
    if variable.value is None:
        return mask_text(name), None
    value = mask_document({name: text_of(variable.value)})
    assert isinstance(value, dict)
    return mask_text(name), "\n".join(masked_lines(str(next(iter(value.values()))).split("\n")))


MOST_LINES = 30_000
"""How many lines of each side are compared: that takes half a second if all of them differ."""
CONTEXT = 3

_NOISE = regex(
    r"""\d{4}-\d\d-\d\d(?:[T_ ]?\d\d[:h.-]?\d\d(?:[:.-]?\d\d)?(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?   # dates
    |(?<!\d)20\d\d[01]\d[0-3]\d(?:[T_-]?\d{4,6})?(?!\d)
    |\b\d\d:\d\d:\d\d(?:\.\d+)?\b
    |\b1[5-9]\d{8}(?:\d{3}){0,3}\b                                                       # epoch seconds
    |\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b                            # ids
    |\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{12,64}\b
    |(?<=[:=\s"'])(?:(?<=:)|(?<=port=)|(?<=PORT=)|(?<=port\s)|(?<=port:))\d{2,5}\b         # ports
    |(?<=/tmp/)[\w.-]+""",
    re.VERBOSE | re.ASCII,
)
ANY_NAME = "\x00"


class RowKind(StrEnum):
    SAME = "same"
    NOISE = "noise"
    CHANGED = "changed"
    THIS = "this"
    OTHER = "other"


class DiffRow(NamedTuple):
    """A line of both sides, or a variable with its `name`, masked; None for the side that lacks it.

    Numbers of lines count from 1, 0 for none.
    """

    kind: RowKind
    this: str | None
    other: str | None
    this_number: int = 0
    other_number: int = 0
    name: str = ""

    @property
    def differs(self) -> bool:
        return self.kind not in (RowKind.SAME, RowKind.NOISE)


class ScriptDiff(NamedTuple):
    """How two jobs differ. `folded` counts lines and variables that differ in noise only.

    `note` says what was not compared and why.
    """

    rows: tuple[DiffRow, ...]
    variables: tuple[DiffRow, ...]
    folded: int = 0
    note: str = ""

    @property
    def is_same(self) -> bool:
        return not any(row.differs for row in (*self.rows, *self.variables))


def diff_scripts(this: ArchivedScript, other: ArchivedScript) -> ScriptDiff:
    ids = frozenset({this.number.partition(".")[0], other.number.partition(".")[0]})
    rows, note = _rows(lines_of(this.script), lines_of(other.script), ids)
    variables = tuple(_variables(this.environment, other.environment, ids))
    folded = sum(row.kind is RowKind.NOISE for row in (*rows, *variables))
    if this.environment is None or other.environment is None:
        note = "; ".join(filter(None, (note, "an environment is missing: environments are not compared")))
    return ScriptDiff(rows, variables, folded, note)


def without_noise(text: str, ids: frozenset[str] = frozenset()) -> str:
    text = _NOISE.sub(ANY_NAME, text)
    for one in ids:
        text = re.sub(rf"(?<![\w.]){re.escape(one)}(?![\w])", ANY_NAME, text)
    return text


def _rows(this: list[str], other: list[str], ids: frozenset[str]) -> tuple[tuple[DiffRow, ...], str]:
    keys = [[without_noise(line, ids) for line in side] for side in (this, other)]
    note = ""
    if max(len(this), len(other)) > MOST_LINES:
        note = f"only the first {MOST_LINES:,} lines are compared"
        this, other, *keys = (side[:MOST_LINES] for side in (this, other, *keys))
    from rapidfuzz.distance import Indel  # few scripts are compared

    ours, theirs = list(masked_lines(this)), list(masked_lines(other))
    rows: list[DiffRow] = []
    before = 0, 0
    for i, j, size in Indel.editops(*keys).as_matching_blocks():
        rows += _differing(ours, theirs, range(before[0], i), range(before[1], j))
        for at, beside in zip(range(i, i + size), range(j, j + size), strict=True):
            kind = RowKind.SAME if this[at] == other[beside] else RowKind.NOISE
            rows.append(DiffRow(kind, ours[at], theirs[beside], at + 1, beside + 1))
        before = i + size, j + size
    return tuple(rows), note


def _differing(ours: list[str], theirs: list[str], these: range, those: range) -> Iterator[DiffRow]:
    """Lines that differ, side by side as far as both sides have some."""
    for i, j in zip_longest(these, those):
        if j is None:
            yield DiffRow(RowKind.THIS, ours[i], None, i + 1)
        elif i is None:
            yield DiffRow(RowKind.OTHER, None, theirs[j], 0, j + 1)
        else:
            yield DiffRow(RowKind.CHANGED, ours[i], theirs[j], i + 1, j + 1)


def _variables(this: Environment | None, other: Environment | None, ids: frozenset[str]) -> Iterator[DiffRow]:
    if this is None or other is None:
        return
    ours, theirs = ({variable.name: variable for variable in side.variables} for side in (this, other))
    for name in dict.fromkeys((*ours, *theirs)):
        pair = ours.get(name), theirs.get(name)
        shown = [None if one is None else shown_variable(one) for one in pair]
        called = next(one[0] for one in shown if one is not None)
        mine, other_value = (None if one is None else one[1] or "" for one in shown)
        yield DiffRow(_kind(*pair, ids), mine, other_value, name=called)


def _kind(this: Variable | None, other: Variable | None, ids: frozenset[str]) -> RowKind:
    if other is None:
        return RowKind.THIS
    if this is None:
        return RowKind.OTHER
    if this == other:
        return RowKind.SAME
    texts = (without_noise(text_of(variable.value or b""), ids) for variable in (this, other))
    return RowKind.NOISE if len(set(texts)) == 1 else RowKind.CHANGED


def unified(rows: Sequence[DiffRow]) -> Iterator[str]:
    """The rows as lines of a unified diff, from the other to this; noise counts as no difference."""
    for hunk in hunks(rows):
        theirs = [row.other_number for row in hunk if row.other is not None]
        ours = [row.this_number for row in hunk if row.this is not None]
        yield f"@@ -{_extent(theirs)} +{_extent(ours)} @@"
        for differs, run in groupby(hunk, attrgetter("differs")):
            part = list(run)
            if differs:
                yield from (f"-{row.other}" for row in part if row.other is not None)
                yield from (f"+{row.this}" for row in part if row.this is not None)
            else:
                yield from (f" {row.this}" for row in part)


def _extent(numbers: Sequence[int]) -> str:
    return f"{numbers[0] if numbers else 0},{len(numbers)}"


def hunks(rows: Sequence[DiffRow]) -> Iterator[Sequence[DiffRow]]:
    """The rows that differ with some before and after, those close to each other together."""
    around = range(-CONTEXT, CONTEXT + 1)
    near = {at + by for at, row in enumerate(rows) if row.differs for by in around}
    for is_near, run in groupby(enumerate(rows), lambda one: one[0] in near):
        if is_near:
            yield [row for _, row in run]


_WRITES = regex(
    r"""(?:^|[;&|({]|\b(?:if|then|else|do)\b)\s*cd\s+["']?(?P<entered>[^\s"';&|)]+)
    |(?:(?:[\s;]|^)(?:[12]?>>?|&>>?|>&(?!\d)|\|\s*tee\s+(?:-a\s+)?)
    |(?:\bsrun|^\#SBATCH)\s[^;&|]*?(?<=\s)(?:-[oe]|--(?:output|error))[\s=]*)\s*["']?(?P<written>[\w@%+=:,./-]++)(?![$`(*?])""",
    re.VERBOSE,
)
_ASSIGNED = regex(r"^\s*(?:export )?(\w+)=[\"']?([\w@%+=:,./-]+)[\"']?\s*$|\$\{(\w+):?=([^}$]+)\}")
_VARIABLE = regex(r"\$(?:(\w+)|\{(\w+)(?::?[-=]([^}$]*))?\})")
_HERE = regex(r"\$\(pwd\)|`pwd`|\$PWD\b|\$\{PWD\}")
_HOME = regex(r"(?<![\w/~])~(?=[/\s;&|]|$)")
_BASE = "//."
"""Words for the directory in which a script was submitted, taken as the script's own."""


def redirected(
    script: str, own: str, number: str = "", name: str = "", user: str = "", home: str = ""
) -> tuple[str, ...]:
    """The files to which the options and commands of a job's script write, also where they went by `cd`.

    In Slurm its id is `own`, or `number` as that of a task of an array. Not those with a variable that
    neither Slurm nor the script defines, nor relative ones above the script's directory.
    """
    array, _, task = (number or own).partition("_")
    values = {
        "SLURM_JOB_ID": own, "SLURM_JOBID": own, "SLURM_JOB_NAME": name, "USER": user,
        "SLURM_ARRAY_JOB_ID": array, "SLURM_ARRAY_TASK_ID": task, "SLURM_SUBMIT_DIR": _BASE,
        "PBS_O_WORKDIR": _BASE, **({"HOME": home} if home else {}),
    }  # fmt: skip
    signs = {**sign_values(own, array, task, name), "s": "0"}
    found: dict[str, None] = {}
    directory: str | None = "."

    def value(of: re.Match[str]) -> str:
        return values.get(of[1] or of[2], of[0]) if of[3] is None else values.setdefault(of[2], of[3])

    for line in script.replace("\\\n", " ").split("\n"):
        before = directory
        line = _HOME.sub("$HOME", line)
        line = _VARIABLE.sub(value, _HERE.sub("." if directory is None else f"{_BASE}/{directory}", line))
        if assigned := _ASSIGNED.search(line):
            values[assigned[1] or assigned[3]] = assigned[2] or assigned[4]
        for step in () if re.match(r"\s*#(?!SBATCH)", line) else _WRITES.finditer(line):
            there = _below(directory, filled(step["entered"] or step["written"], signs))
            if step["entered"]:
                directory = there
            elif there is not None and not there.startswith("/dev/"):
                found[there] = None
        if line.lstrip().startswith("("):  # a subshell, whose `cd` ends with it
            directory = before
    return tuple(found)


def _below(directory: str | None, name: str) -> str | None:
    """A path in a directory, relative to that of the script; None if that is not known or is above it."""
    if name.startswith(_BASE):
        directory, name = ".", name.removeprefix(_BASE).lstrip("/")
    if (directory is None and name[:1] != "/") or name[:1] in ("-", "~") or "$" in name:
        return None
    path = posixpath.normpath(posixpath.join(directory or "", name))
    return None if path.startswith("..") else path


HEAD_BYTES = 1 << 18
"""How much of a script is searched for its options."""
FROM_SCHEDULER = "the scheduler"
FROM_SCRIPT = "the script"
BY_DEFAULT = "the default"


class OutputFile(NamedTuple):
    """One of the files: `output` or `error`, its path, and who says so. Unknown signs stay in it."""

    stream: str
    path: str
    said_by: str
    unknown: str = ""


def named_outputs(facts: Sequence[tuple[str, str]]) -> tuple[OutputFile, ...]:
    named = {"output": "output", "errors": "error"}
    return tuple(OutputFile(named[name], path, FROM_SCHEDULER) for name, path in facts if name in named)


def outputs_of(script: ArchivedScript, wanted: Wanted) -> tuple[OutputFile, ...]:
    of = _of_torque if script.scheduler is Scheduler.TORQUE else _of_slurm
    return tuple(of(script, wanted))


def _of_slurm(script: ArchivedScript, wanted: Wanted) -> Iterator[OutputFile]:
    options = dict(_options(script.script, b"#SBATCH"))
    is_array = bool(wanted.task) or "array" in options
    values = _values(script, wanted, options)
    submitted = script.environment.value("SLURM_SUBMIT_DIR") if script.environment else None
    base = _joined(submitted or "", options.get("chdir", ""))
    usual = "slurm-%A_%a.out" if is_array else "slurm-%j.out"
    said_by = FROM_SCRIPT if "output" in options else BY_DEFAULT
    pattern = options.get("output", usual)
    out = _joined(base, filled(pattern, values))
    yield OutputFile("output", out, said_by, unknown_signs(pattern, values))
    pattern = options.get("error", pattern)
    if (error := _joined(base, filled(pattern, values))) != out:
        yield OutputFile("error", error, FROM_SCRIPT, unknown_signs(pattern, values))


def _values(script: ArchivedScript, wanted: Wanted, options: Mapping[str, str]) -> dict[str, str]:
    """The values for the signs of a pattern, as far as they are known."""
    environment = script.environment
    asked = environment.value("SLURM_JOB_NAME") if environment else None
    name = options.get("job-name") or asked or ""
    user = (environment.value("USER") if environment else None) or ""
    return sign_values("" if wanted.task else wanted.number, wanted.number, wanted.task, name, user)


def _joined(base: str, path: str) -> str:
    return posixpath.join(base, path) if path else base


def _options(script: bytes, mark: bytes) -> Iterator[tuple[str, str]]:
    """The options in the comments before the first command, by their long names; the last of one counts."""
    for line in script[:HEAD_BYTES].split(b"\n"):
        line = line.strip()
        if line.startswith(mark):
            rest: Sequence[str] = _words(text_of(line[len(mark) :]))
            while rest:
                options, rest = options_of(rest)
                yield from options.items()
                rest = rest[1:]
        elif line and not line.startswith(b"#"):
            return


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:  # a quote without its end
        return text.split()


def _of_torque(script: ArchivedScript, wanted: Wanted) -> Iterator[OutputFile]:
    options = dict(_options(script.script, b"#PBS"))
    name = options.get("N") or "STDIN"
    number = script.number.partition(".")[0] + (f"-{wanted.task}" if wanted.task else "")
    ends = {"output": "o", "error": "e"}
    joined = options.get("j", "")
    for stream, letter in ends.items():
        if joined in ("oe", "eo") and letter != joined[0]:
            continue
        # a host may come before the path
        said = options.get(stream, "").rpartition(":")[2]
        usual = f"{name}.{letter}{number}"
        path = said + usual if said.endswith("/") else said or usual
        yield OutputFile(stream, path, FROM_SCRIPT if said else BY_DEFAULT)
