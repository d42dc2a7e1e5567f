"""The formats of SArchive: a job's document, its environment, and the names of its files.

In a file (Slurm's own, copied by SArchive as it is): four bytes, little-endian, the count of entries, then
every entry with a NUL after it. An entry is `NAME=value`; a value may hold newlines, `=` and any byte, and
there are entries without `=`. In a document that SArchive sends it is an object. An entry with several `=`
is a name without a value there, as SArchive splits at each `=`.

`{"id", "timestamp", "cluster", "script", "environment"}`, either at the top or, in old documents, under
`jobinfo` with the time as `@timestamp`. SArchive replaces bytes of the script that are not UTF-8. For a job
of Torque the environment holds the files of the scheduler, by name.

Slurm: `123`, `123_4` a task of an array, `123_[5-9]` the rest of it, `123+1` a part of a heterogeneous job,
also with the cluster before it: `huppel/123`, `slurm/123`, `slurm@huppel/123`. Torque: `123.server`,
`123[4].server`, `123-4.server`.
"""

import re
from collections.abc import Iterator, Mapping

from jobtui.model.clock import time_of_iso
from jobtui.model.health import contained
from jobtui.model.numbers import whole
from jobtui.model.patterns import regex
from jobtui.model.scripts import ArchivedScript, Environment, Scheduler, Variable, Wanted

COUNT_BYTES = 4


def parse_environment(data: bytes) -> Environment:
    """The environment in a file. Raises nothing: damage shows in `announced`."""
    announced = int.from_bytes(data[:COUNT_BYTES], "little")
    return Environment(tuple(map(_variable, entries_of(data[COUNT_BYTES:]))), announced)


def write_environment(variables: Mapping[str, str]) -> bytes:
    entries = [f"{name}={value}".encode() + b"\0" for name, value in variables.items()]
    return len(entries).to_bytes(COUNT_BYTES, "little") + b"".join(entries)


def entries_of(data: bytes) -> list[bytes]:
    """The texts between NULs; a last one without a NUL was cut off and counts too."""
    entries = data.split(b"\0")
    return entries if entries[-1] else entries[:-1]


def parse_document(document: Mapping[object, object], *, is_files: bool = False) -> Environment:
    variables, mended = list[Variable](), list[bytes]()
    for name, value in document.items():
        key = str(name).encode("utf-8", "replace")
        text = ("" if value is None else str(value)).encode("utf-8", "replace")
        if not is_files and not text and b"=" in key:
            variables.append(_variable(key))
            mended.append(variables[-1].name)
        else:
            variables.append(Variable(key, text))
    return Environment(tuple(variables), mended=tuple(mended), is_files=is_files)


def _variable(entry: bytes) -> Variable:
    name, equals, value = entry.partition(b"=")
    return Variable(name, value if equals else None)


REPLACED = "\ufffd"
_TORQUE_FILE = regex(r"\.(?:JB|TA)\Z")


def parse_script(document: object, source: str) -> ArchivedScript | None:
    with contained("reading a script"):
        return _script_in(document, source)
    return None


def _script_in(document: object, source: str) -> ArchivedScript | None:
    if not isinstance(document, Mapping):
        return None
    inner = document.get("jobinfo")
    fields = inner if isinstance(inner, Mapping) else document
    number, script = fields.get("id"), fields.get("script")
    if not isinstance(number, str | int) or isinstance(number, bool) or not isinstance(script, str):
        return None
    time = fields.get("timestamp", document.get("@timestamp"))
    cluster = fields.get("cluster")
    environment, is_torque, given = None, False, fields.get("environment")
    if isinstance(given, Mapping):
        is_torque = bool(given) and all(_TORQUE_FILE.search(str(name)) for name in given)
        environment = parse_document(given, is_files=is_torque)
    return ArchivedScript(
        number=str(number),
        script=script.encode("utf-8", "surrogatepass"),
        source=source,
        cluster=cluster if isinstance(cluster, str) else "",
        scheduler=Scheduler.TORQUE if is_torque else Scheduler.SLURM,
        environment=environment,
        archived_at=time_of_iso(time.strip()) if isinstance(time, str) else None,
        is_lossy=REPLACED in script,
    )


_ID = regex(
    r"(?:(?:slurm|torque)(?:@(?P<label>[\w.-]+))?/|(?P<cluster>[\w.-]+)/)?"
    r"#?(?P<number>\d{1,18})(?:_(?P<task>\d+)|\[(?P<bracketed>\d*)\]|-(?P<dashed>\d+)|_\[[^\]]*\]|\+\d+)?"
    r"(?P<server>\.[A-Za-z][\w.-]*)?",
    re.ASCII,
)
_TASKS = regex(r"^#PBS\s+(?:.*\s)?-t\s+(?P<tasks>[\d,-]+)", re.MULTILINE | re.ASCII)
_STEP = regex(r"^(\d+(?:_\d+)?)\.(?:batch|extern|interactive|\d+)$", re.ASCII)
OTHER_SYSTEMS = frozenset({"balsam"})
MOST_TASKS = 256
"""The most files of an array's tasks that are read."""


def parse_wanted(text: str) -> Wanted | None:
    """The job that an id means, None if it is no id of a batch job. A step means its job."""
    head, slash, last = text.strip().rpartition("/")
    found = _ID.fullmatch(head + slash + _STEP.sub(r"\1", last)) if head not in OTHER_SYSTEMS else None
    if found is None:
        return None
    task = found["task"] or found["bracketed"] or found["dashed"] or ""
    cluster = found["label"] or found["cluster"] or ""
    return Wanted(found["number"].lstrip("0") or "0", task, cluster, found["server"] or "")


def slurm_names(number: str) -> tuple[str, str]:
    return f"job.{number}_script", f"job.{number}_environment"


def torque_tasks(script: str) -> Iterator[int]:
    """The numbers of an array's tasks as its script asks for them: `#PBS -t 1-4,7`."""
    found = _TASKS.search(script)
    left = MOST_TASKS
    for part in found["tasks"].split(",") if found else ():
        first, _, last = part.partition("-")
        if (begin := whole(first)) is None or begin < 0:
            continue
        stop = min(whole(last, begin), begin + left - 1)
        yield from range(begin, stop + 1)
        left -= max(0, stop - begin + 1)
