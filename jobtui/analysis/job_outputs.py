"""Where a job's output and errors go, by what its script and environment say.

Slurm's `sbatch` and Torque's `qsub` read options from comments before the first command. Options of the
command line and of the environment go before these and are not seen here, so that what the scheduler itself
tells goes before all of it.
"""

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from jobtui.model.scripts import ArchivedScript, Scheduler, Wanted, text_of

HEAD_BYTES = 1 << 18
"""How much of a script is looked at for its options."""
FROM_SCHEDULER = "the scheduler"
FROM_SCRIPT = "the script"
BY_DEFAULT = "the default"

_NAMES = {"o": "output", "e": "error", "J": "job-name", "D": "chdir", "a": "array"}
_PATTERN = re.compile(r"%(?:%|(\d*)([a-zA-Z]))", re.ASCII)


class Output(NamedTuple):
    """One of the files: `output` or `error`, its path, and who says so. Unknown signs stay in it."""

    stream: str
    path: str
    said_by: str


def told_outputs(facts: Sequence[tuple[str, str]]) -> tuple[Output, ...]:
    """The files as the scheduler itself tells of them."""
    named = {"output": "output", "errors": "error"}
    return tuple(Output(named[name], path, FROM_SCHEDULER) for name, path in facts if name in named)


def outputs_of(script: ArchivedScript, wanted: Wanted) -> tuple[Output, ...]:
    """The files as the script and its environment say."""
    if script.scheduler is Scheduler.TORQUE:
        return tuple(_of_torque(script, wanted))
    return tuple(_of_slurm(script, wanted))


def _of_slurm(script: ArchivedScript, wanted: Wanted) -> Iterator[Output]:
    options = dict(_options(script.script, b"#SBATCH"))
    is_array = bool(wanted.task) or "array" in options
    values = _values(script, wanted, options)
    base = _base(script, options)
    usual = "slurm-%A_%a.out" if is_array else "slurm-%j.out"
    said_by = FROM_SCRIPT if "output" in options else BY_DEFAULT
    out = _joined(base, filled(options.get("output", usual), values))
    yield Output("output", out, said_by)
    error = _joined(base, filled(options["error"], values)) if "error" in options else out
    if error != out:
        yield Output("error", error, FROM_SCRIPT)


def _values(script: ArchivedScript, wanted: Wanted, options: Mapping[str, str]) -> dict[str, str]:
    """What the signs of a pattern stand for, as far as that is known."""
    environment = script.environment
    asked = environment.value("SLURM_JOB_NAME") if environment else None
    known = {
        "j": wanted.number if not wanted.task else "",
        "A": wanted.number,
        "a": wanted.task,
        "x": options.get("job-name") or asked or "",
        "u": (environment.value("USER") if environment else None) or "",
        "b": str(int(wanted.task) % 10) if wanted.task.isdecimal() else "",
    }
    return {sign: value for sign, value in known.items() if value}


def filled(pattern: str, values: Mapping[str, str]) -> str:
    """A pattern with what its signs stand for: `%j`, `%4j` with leading zeros, `%%`; others stay."""
    if pattern.startswith("\\") or "\\\\" in pattern:
        return pattern.replace("\\", "")

    def value(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        known = values.get(found[2])
        return found[0] if known is None else known.rjust(min(int(found[1] or 0), 10), "0")

    return _PATTERN.sub(value, pattern)


def _base(script: ArchivedScript, options: Mapping[str, str]) -> str:
    submitted = script.environment.value("SLURM_SUBMIT_DIR") if script.environment else None
    return _joined(submitted or "", options.get("chdir", ""))


def _joined(base: str, path: str) -> str:
    return posixpath.join(base, path) if path else base


def _options(script: bytes, mark: bytes) -> Iterator[tuple[str, str]]:
    """The options in the comments before the first command, by their long names; the last of one counts."""
    for line in script[:HEAD_BYTES].split(b"\n"):
        line = line.strip()
        if line.startswith(mark):
            yield from _of_words(_words(text_of(line[len(mark) :])))
        elif line and not line.startswith(b"#"):
            return


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:  # a quote without its end
        return text.split()


def _of_words(words: list[str]) -> Iterator[tuple[str, str]]:
    rest = iter(words)
    for word in rest:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            yield name, value if equals else next(rest, "")
        elif word.startswith("-") and len(word) > 1:
            name = _NAMES.get(word[1], word[1])
            yield name, word[2:].removeprefix("=") or next(rest, "")


def _of_torque(script: ArchivedScript, wanted: Wanted) -> Iterator[Output]:
    options = dict(_options(script.script, b"#PBS"))
    name = options.get("N") or "STDIN"
    number = script.number.partition(".")[0] + (f"-{wanted.task}" if wanted.task else "")
    ends = {"output": "o", "error": "e"}
    joined = options.get("j", "")
    for stream, letter in ends.items():
        if joined in ("oe", "eo") and letter != joined[0]:
            continue
        # a host may stand before the path
        said = options.get(stream, "").rpartition(":")[2]
        usual = f"{name}.{letter}{number}"
        path = said + usual if said.endswith("/") else said or usual
        yield Output(stream, path, FROM_SCRIPT if said else BY_DEFAULT)
