"""Jobs out of the JSON of squeue, scontrol, sacct and slurmrestd, of any release from 22.05 to 25.05. Pure.

Each release has its own shapes: a number may be wrapped as `{"set", "infinite", "number"}`, a state may be a
list of words, an exit code the status that `wait` gave (wrapped in 23.02), or an object. All of them are read
with one tolerant getter: it looks at several paths and takes the first value that is one. 22.05 was run; the
shapes of 23.02 (data_parser v0.0.39), 23.11 and 24.05 (v0.0.40, v0.0.41) and 24.11 were compared with what
clusters had printed.
"""

import json
from collections.abc import Iterator, Mapping

import msgspec

from jobtui.formats.slurm_tables import is_job_id
from jobtui.formats.slurm_words import (
    MINUTE_S,
    TEXT_CHARACTERS,
    exit_of_wait_status,
    settled,
    text_of,
    time_of_seconds,
)
from jobtui.model.clock import Nanos
from jobtui.model.slurm import Exit, SlurmJob, SlurmStep

Document = Mapping[str, object]

PHASES = ("COMPLETING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "STAGE_OUT",
          "STOPPED", "SIGNALING", "RESIZING", "RESV_DEL_HOLD", "POWER_UP_NODE", "REVOKED")  # fmt: skip
"""Words beside a state that squeue shows in its place."""

TEXTS: Mapping[str, tuple[str, ...]] = {
    "name": ("name",),
    "user": ("user_name", "user", "association.user"),
    "account": ("account", "association.account"),
    "partition": ("partition",),
    "qos": ("qos",),
    "cluster": ("cluster",),
    "reason": ("state_reason", "state.reason"),
    "canceled_by": ("kill_request_user",),
    "nodes": ("nodes",),
    "dependency": ("dependency",),
    "comment": ("comment", "comment.job"),
    "command": ("command",),
    "directory": ("current_working_directory", "working_directory"),
    "stdout": ("stdout_expanded", "standard_output", "stdout"),
    "stderr": ("stderr_expanded", "standard_error", "stderr"),
}
"""Where a text is, likeliest first."""

TIMES: Mapping[str, tuple[str, ...]] = {
    "submitted_at": ("submit_time", "time.submission"),
    "eligible_at": ("eligible_time", "time.eligible"),
    "started_at": ("start_time", "time.start"),
    "ended_at": ("end_time", "time.end"),
}


def jobs_of_text(text: bytes | str) -> tuple[SlurmJob, ...]:
    """The jobs of a whole answer. Raises ValueError for what is no such answer."""
    try:
        document = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list):
        raise ValueError("there is no list of jobs in it")
    return tuple(found for one in jobs if (found := job_of(one)) is not None)


def job_of(document: object) -> SlurmJob | None:
    """One job; None for what is none."""
    raw = _number(document, "job_id")
    states = _words(document, "job_state", "state.current", "state")
    if not isinstance(document, dict) or raw is None or not states:
        return None
    array, task = _array(document)
    job_id = f"{int(raw)}" if not task else f"{array}_{task}" if task.isdecimal() else f"{array}_[{task}]"
    if not is_job_id(job_id):
        return None
    limit = _number(document, "time_limit", "time.limit")
    job = SlurmJob(
        id=job_id,
        raw=str(int(raw)),
        array=array,
        task=task,
        state=_state(states),
        exit=_exit(document),
        limit_s=None if limit is None else limit * MINUTE_S,
        node_count=_count(document, "node_count", "allocation_nodes"),
        cpus=_count(document, "cpus", "required.CPUs"),
        restarts=int(_number(document, "restart_cnt") or 0),
        steps=tuple(_steps(document)),
    )
    texts = {name: _text(document, *paths) for name, paths in TEXTS.items()}
    times = {name: _time(document, *paths) for name, paths in TIMES.items()}
    return settled(msgspec.structs.replace(job, **texts, **times))


def _array(document: Document) -> tuple[str, str]:
    """The array, and which task or tasks of it; "" for none."""
    array = _number(document, "array_job_id", "array.job_id")
    if not array:
        return "", ""
    task = _number(document, "array_task_id", "array.task_id")
    tasks = _text(document, "array_task_string", "array.task")
    return str(int(array)), str(int(task)) if task is not None and not tasks else tasks.strip("[]")


def _state(states: list[str]) -> str:
    """The word that squeue shows: a phase in place of the state it is a phase of."""
    return next((state for state in states if state in PHASES), states[0])


def _exit(document: object) -> Exit | None:
    """How a program ended, of whichever shape."""
    status = _number(document, "exit_code")
    if status is not None:
        return exit_of_wait_status(int(status))
    signal = _number(document, "exit_code.signal.id", "exit_code.signal.signal_id")
    code = _number(document, "exit_code.return_code")
    return None if signal is None and code is None else Exit(int(code or 0), int(signal or 0))


def _steps(document: Document) -> Iterator[SlurmStep]:
    steps = document.get("steps")
    for step in steps if isinstance(steps, list) else ():
        states = _words(step, "state")
        yield SlurmStep(
            id=_text(step, "step.id", "step.id.step_id").rpartition(".")[2] or _count(step, "step.id"),
            name=_text(step, "step.name"),
            state=states[0] if states else "",
            exit=_exit(step),
            started_at=_time(step, "time.start"),
            ended_at=_time(step, "time.end"),
            nodes=_text(step, "nodes.range"),
        )


def _at(document: object, path: str) -> object:
    """The value at a path of names, None where there is none."""
    for name in path.split("."):
        document = document.get(name) if isinstance(document, dict) else None
    return document


def _number(document: object, *paths: str) -> float | None:
    """The first number at one of the paths, wrapped or not; None for none that is set, and for infinity."""
    for path in paths:
        value = _at(document, path)
        if isinstance(value, dict) and "number" in value:
            is_set = value.get("set", True) and not value.get("infinite", False)
            value = value["number"] if is_set else None
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15:
            return value
    return None


def _text(document: object, *paths: str) -> str:
    """The first text at one of the paths, "" for none."""
    values = (_at(document, path) for path in paths)
    return next(
        (text_of(value)[:TEXT_CHARACTERS] for value in values if isinstance(value, str) and value), ""
    )


def _words(document: object, *paths: str) -> list[str]:
    """The first word or list of words at one of the paths."""
    for path in paths:
        value = _at(document, path)
        words = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        if known := [word for word in words if isinstance(word, str) and word]:
            return known
    return []


def _count(document: object, *paths: str) -> str:
    number = _number(document, *paths)
    return "" if number is None else str(int(number))


def _time(document: object, *paths: str) -> Nanos | None:
    number = _number(document, *paths)
    return None if number is None else time_of_seconds(number)
