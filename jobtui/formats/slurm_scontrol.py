"""What `scontrol show job` prints, over several lines or with -o on one, as records. Pure; reads nothing.

It escapes nothing, so a name may hold what looks like further fields. A name ends at the last place at which
the fields come that always follow it; of other fields the first counts, of those behind texts that a user
chose the last.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

import msgspec

from jobtui.formats.slurm_tables import is_job_id
from jobtui.formats.slurm_words import TEXT_CHARACTERS, duration_of, exit_of, settled, text_of, time_of
from jobtui.model.slurm import SlurmJob

_BEGIN = re.compile(r"^JobId=\d+ ", re.ASCII | re.MULTILINE)
_NAME = re.compile(
    r"JobName=(?P<name>.*)(?:\n {3}|(?<!\n {2}) )UserId=(?P<user>\S*?)\(\d+\) GroupId=\S+ MCS_label=",
    re.ASCII | re.DOTALL,
)
_FIELD = re.compile(r"(?<!\S)([A-Z][A-Za-z0-9_:/]*)=")
_LAST_COUNTS = frozenset({"StdErr", "StdIn", "StdOut"})

FIELDS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "Account": ("account", text_of),
    "Partition": ("partition", text_of),
    "QOS": ("qos", text_of),
    "JobState": ("state", text_of),
    "Reason": ("reason", text_of),
    "Dependency": ("dependency", text_of),
    "Restarts": ("restarts", lambda text: int(text[:9]) if text.isdecimal() else 0),
    "ExitCode": ("exit", exit_of),
    "TimeLimit": ("limit_s", duration_of),
    "SubmitTime": ("submitted_at", time_of),
    "EligibleTime": ("eligible_at", time_of),
    "StartTime": ("started_at", time_of),
    "EndTime": ("ended_at", time_of),
    "NodeList": ("nodes", text_of),
    "NumNodes": ("node_count", text_of),
    "NumCPUs": ("cpus", text_of),
    "Comment": ("comment", text_of),
    "Command": ("command", text_of),
    "WorkDir": ("directory", text_of),
    "StdErr": ("stderr", text_of),
    "StdOut": ("stdout", text_of),
}
"""The fields that a record is made of. `ArrayTaskId` is `3`, or `3-4%2` for those that have not begun."""


def shown_jobs(printed: str) -> Iterator[tuple[SlurmJob, dict[str, str]]]:
    """Each job that is shown, and all that is said of it by its name."""
    begins = [found.start() for found in _BEGIN.finditer(printed)]
    for begin, end in pairwise([*begins, len(printed)]):
        found = _job(printed[begin:end])
        if found is not None:
            yield found


def _job(text: str) -> tuple[SlurmJob, dict[str, str]] | None:
    named = _NAME.search(text)
    if named is None:
        return None
    said = {**_fields(text[: named.start()]), **_fields(text[named.end("user") :])}
    said |= {"JobName": named["name"], "UserId": named["user"]}
    array, task, raw = (text_of(said.get(key, "")) for key in ("ArrayJobId", "ArrayTaskId", "JobId"))
    is_one = task.isdecimal()
    job_id = raw if not task else f"{array}_{task}" if is_one else f"{array}_[{task}]"
    if not is_job_id(job_id):
        return None
    values = {name: convert(said[key]) for key, (name, convert) in FIELDS.items() if key in said}
    names = {"name": named["name"][:TEXT_CHARACTERS], "user": named["user"]}
    ids = {"id": job_id, "raw": raw, "array": array, "task": task}
    return settled(msgspec.convert({**values, **names, **ids}, SlurmJob)), said


def _fields(text: str) -> dict[str, str]:
    """`Name=value` by name, a value up to the next of them."""
    places = list(_FIELD.finditer(text))
    found: dict[str, str] = {}
    for number, place in enumerate(places):
        end = places[number + 1].start() if number + 1 < len(places) else len(text)
        if place[1] not in found or place[1] in _LAST_COUNTS:
            found[place[1]] = text[place.end() : end].strip()
    return found
