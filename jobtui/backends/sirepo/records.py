"""One record of Sirepo's job supervisor: the bytes of a file to a Job. Pure; opens no file.

Wider than JSON: bytes that are not UTF-8, half surrogate pairs, NaN, infinite numbers and integers of any
length are accepted, and become something that can be stored, compared and written as JSON again.

Format: the record of Sirepo 20261015 and the names of 2020. Only those that mean something to jobtui are
used; `native` keeps the rest. The file's name is the job's id, whatever the record says.

Times are epoch seconds, 0 means not yet. When a job ended is not stored. For `completed`, `error` and
`canceled` it is taken to be the last write of the file (`dbUpdateTime`; where that is missing, as before July
2020, the last news of the job, then the file's mtime): as Sirepo itself does. The last news is no better,
since a cancel does not renew it and an agent reports the age of a run directory in it. A record that was
reset to `missing` or purged was written long after its run ended, so there only the last news counts; today
such a record has lost its run to the history anyway, and has no end. In the history no time of writing is
kept: an entry ended with its last news, except a canceled one, whose end is not known.
"""

from collections.abc import Callable, Mapping
from functools import cache
from sys import intern
from typing import Annotated, TypeVar

import msgspec

from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JidParts, JobId, SimulationId, Uid, is_quasi_jid, split_jid
from jobtui.model.jobs import NOT_READ, SIREPO, Job, JobDetail, JobStatus, Run, statuses_of
from jobtui.model.numbers import and_more, read_json, storable, whole_of

DEEPEST = 40
"""Levels of nesting that are kept."""
TOO_DEEP = "(nested too deep)"


class NotARecord(ValueError):
    """The bytes are not a JSON object. The text says why."""


def read_document(data: bytes) -> tuple[dict[str, object], list[str]]:
    """The object in `data`, and what had to be changed to read it. Raises NotARecord.

    Numbers that JSON readers could not take (NaN, infinite, over 64 bits) are kept as text, half surrogate
    pairs become U+FFFD, what lies deeper than `DEEPEST` is replaced by a note.
    """
    faults: list[str] = []
    if not data.strip(b"\0 \t\r\n"):
        raise NotARecord("empty" if not data else "only blanks or NULs")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        faults.append(f"byte {error.start} is not UTF-8, such bytes are shown as U+FFFD")
        text = data.decode("utf-8-sig", "replace")
    try:
        document = read_json(text)
    except ValueError as error:
        raise NotARecord(f"not valid JSON, torn or damaged: {error}") from error
    if not isinstance(document, dict):
        raise NotARecord(f"not a JSON object but {_KINDS.get(type(document), 'a number')}")
    return {storable(key): _tidy(value, 1) for key, value in document.items()}, faults


_KINDS = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}


def _tidy(value: object, depth: int) -> object:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict | list) and depth >= DEEPEST:
        return TOO_DEEP
    if isinstance(value, dict):
        return {storable(key): _tidy(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_tidy(inner, depth + 1) for inner in value]
    return value


_NO_PARTS = JidParts(Uid(""), SimulationId(""), "")
LONGEST_TEXT = 4_096
"""How many characters of a name, message or error a Job keeps; `native` has all of it."""
FAULTS_NAMED = 5
"""How many faults of one record are named; the rest are counted."""

_LAST_SECOND = 253_402_300_799  # the year 9999, the last one that RFC 3339 can write
_Seconds = Annotated[int, msgspec.Meta(ge=0, le=_LAST_SECOND)] | None
_Moment = Annotated[float, msgspec.Meta(ge=0, le=_LAST_SECOND)] | None
_Number = Annotated[float, msgspec.Meta(ge=0, le=1e12)] | None
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)] | None
_Word = Annotated[str, msgspec.Meta(max_length=200)] | None
_Text = str | None


class _Driver(msgspec.Struct, gc=False):
    type: _Word = None
    host: _Word = None


class _Progress(msgspec.Struct, gc=False):
    percentComplete: _Number = None
    frameCount: _Count = None


class _HistoryEntry(msgspec.Struct, gc=False):
    """What a scan needs of an entry of the history."""

    computeJobSerial: _Seconds = None


class _Record(msgspec.Struct, gc=False):
    """The fields of a record that are used, in Sirepo's order, which is the fastest to decode."""

    activePlan: _Word = None
    alert: _Text = None
    canceledAfterSecs: _Number = None
    computeJid: _Text = None
    computeJobQueued: _Seconds = None
    computeJobSerial: _Seconds = None
    computeJobStart: _Seconds = None
    computeModel: _Word = None
    dbUpdateTime: _Moment = None
    driverDetails: _Driver | None = None
    error: _Text = None
    history: list[_HistoryEntry] | None = None
    jobStatusMessage: _Text = None
    lastUpdateTime: _Seconds = None
    simName: _Text = None
    simulationType: _Word = None
    status: _Word = None
    uid: _Word = None
    jobRunMode: _Word = None
    parallelStatus: _Progress | None = None
    cancelledAfterSecs: _Number = None
    isPremiumUser: bool | None = None


_NESTED: Mapping[str, type[msgspec.Struct]] = {
    "driverDetails": _Driver,
    "history": _HistoryEntry,
    "parallelStatus": _Progress,
}

_AT_WRITE, _AT_NEWS, _NEVER = range(3)
"""When a run ended: at the last write, at the last news, or not at all."""

_GONE = frozenset({JobStatus.MISSING, JobStatus.PURGED})
_STATUS: Mapping[str | None, tuple[JobStatus, str, int]] = {
    word: (status, word, _NEVER if status.is_live else _AT_NEWS if status in _GONE else _AT_WRITE)
    for word, status in statuses_of(SIREPO).items()
}
"""The meaning of a status word, and when a run in that state ended."""

_OFTEN: Mapping[float | None, float] = {0.0: 0.0, 100.0: 100.0}
"""Percentages that most jobs have, to keep them in memory once."""

_decode = msgspec.json.Decoder(_Record).decode
_make_job: Callable[..., Job] = Job

S = TypeVar("S", bound=msgspec.Struct)


def read_job(data: bytes, jid: JobId, mtime_ns: int, source: str) -> tuple[Job | None, str | None]:
    """The job in the bytes of `<jid>.json`, and what is wrong with it; None for either if there is none.

    A bad field costs that field only. `mtime_ns` is the file's, for records without a time of writing.
    """
    try:
        record = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # field by field
    else:
        fault = None if record.computeJid == jid and record.status is not None else _at_odds(record, jid)
        return _job(record, jid, mtime_ns, source), fault
    try:
        document, faults = read_document(data)
    except NotARecord as error:
        return None, str(error)
    record = _fit(_Record, document, faults)
    faults += filter(None, [_at_odds(record, jid)])
    named = "; ".join(faults[:FAULTS_NAMED])
    return _job(record, jid, mtime_ns, source), named + and_more(len(faults), FAULTS_NAMED, "; ") or None


def _at_odds(record: _Record, jid: JobId) -> str | None:
    """What a record lacks or contradicts, although each field is valid."""
    if record.computeJid is not None and record.computeJid != jid:
        return f"its record names another job: {record.computeJid[:100]!r}"
    return None if record.status is not None else "no status"


def read_detail(data: bytes, jid: JobId, mtime_ns: int, source: str, path: str) -> JobDetail:
    """Everything in the bytes of `<jid>.json`. Raises NotARecord.

    A Run is numbered among the runs, oldest first from 1; an entry of the history that was no run has 0.
    """
    document, faults = read_document(data)
    record = _fit(_Record, document, faults)
    history, number = [], 0
    entries = document.get("history")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            past = _fit(_Record, entry, faults)
            is_run = bool(past.computeJobSerial)
            number += is_run
            status, _, ending = _status(past.status)
            has_end = is_run and ending != _NEVER and status is not JobStatus.CANCELED
            ended_at = _nanos(past.lastUpdateTime) if has_end else None
            history.append(_run(past, number if is_run else 0, ended_at))
    job = _job(record, jid, mtime_ns, source)
    runs = [run for run in history if run.number]
    if record.computeJobSerial:
        runs.append(_run(record, number + 1, job.ended_at))
    doubt = _at_odds(record, jid)
    facts = ((NOT_READ, doubt),) if doubt is not None else ()
    return JobDetail(
        job=job, runs=tuple(runs), history=tuple(history), native=document, path=path, facts=facts
    )


def _run(run: _Record, number: int, ended_at: Nanos | None) -> Run:
    status, native, _ = _status(run.status)
    return Run(
        number=number,
        status=status,
        native_status=native,
        mode=run.jobRunMode or "",
        queued_at=_nanos(run.computeJobQueued),
        started_at=_nanos(run.computeJobStart),
        updated_at=_nanos(run.lastUpdateTime),
        ended_at=ended_at,
        message=run.jobStatusMessage,
        error=run.error,
        alert=run.alert,
        limit_s=run.canceledAfterSecs if run.cancelledAfterSecs is None else run.cancelledAfterSecs,
        driver=run.driverDetails.type if run.driverDetails else None,
        host=run.driverDetails.host if run.driverDetails else None,
    )


def _job(record: _Record, jid: JobId, mtime_ns: int, source: str) -> Job:
    status, native, ending = _STATUS.get(record.status) or _status(record.status)
    queued, started, news = record.computeJobQueued, record.computeJobStart, record.lastUpdateTime
    queued_at = queued * SECOND if queued else None
    started_at = queued_at if started == queued else started * SECOND if started else None
    updated_at = news * SECOND if news else None
    moment, ended_at = record.dbUpdateTime, None
    written_at = round(moment * 1_000_000) * 1_000 if moment else mtime_ns
    if ending != _NEVER and record.computeJobSerial:
        ended_at = updated_at
        if ending == _AT_WRITE and (moment or updated_at is None):
            ended_at = written_at
    progress, driver, name, error = record.parallelStatus, record.driverDetails, record.simName, record.error
    plan = record.activePlan
    if record.isPremiumUser is not None:  # as in 2020
        plan = plan or ("premium" if record.isPremiumUser else "basic")
    # By position, see Job; Nanos() would take as long as the rest. Equal texts of many jobs are kept once.
    return _make_job(
        jid,
        SIREPO,
        status,
        native,
        source,
        intern(record.uid or (split_jid(jid) or _NO_PARTS).uid),
        name if name is None or len(name) <= LONGEST_TEXT else _short(name),
        intern(record.simulationType or ""),
        intern(record.computeModel or (split_jid(jid) or _NO_PARTS).model),
        intern(record.jobRunMode or ""),
        queued_at,
        started_at,
        updated_at,
        ended_at,
        written_at,
        _runs(record),
        None if progress is None else _OFTEN.get(progress.percentComplete, progress.percentComplete),
        progress.frameCount if progress is not None else None,
        record.jobStatusMessage and _short(record.jobStatusMessage),
        error and intern(_short(error)),
        record.alert and _short(record.alert),
        record.canceledAfterSecs if record.cancelledAfterSecs is None else record.cancelledAfterSecs,
        driver and driver.type and intern(driver.type),
        driver and driver.host and intern(driver.host),
        plan and intern(plan),
        is_quasi_jid(jid),
    )


def _runs(record: _Record) -> int:
    runs = 1 if record.computeJobSerial else 0
    for past in record.history or ():
        if past.computeJobSerial:
            runs += 1
    return runs


def _status(native: str | None) -> tuple[JobStatus, str, int]:
    return _STATUS.get(native) or (JobStatus.UNKNOWN, native or "", _NEVER)


def _nanos(seconds: int | None) -> Nanos | None:
    """The time of whole epoch seconds; None for 0, which means not yet."""
    return seconds * SECOND if seconds else None  # type: ignore[return-value]  # Nanos() takes as long as all


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def _fit(kind: type[S], document: Mapping[str, object], faults: list[str], at: str = "") -> S:
    """A Struct with every field of `document` that has the right type; the others are named in `faults`."""
    values: dict[str, object] = {}
    for field in _fields(kind):
        name = field.encode_name
        if name not in document:
            continue
        value = document[name]
        if isinstance(value, float) and field.type == _Seconds:
            value = value if (number := whole_of(value)) is None else number
        try:
            values[name] = msgspec.convert(value, field.type)
        except msgspec.ValidationError as error:
            inner, where = _NESTED.get(name), f"{at}{name}"
            if inner is None:
                faults.append(f"{where} left out: {str(error).partition(' - at ')[0]}")
            elif isinstance(value, dict) and inner is not _HistoryEntry:
                values[name] = _fit(inner, value, faults, f"{where}.")
            elif isinstance(value, list) and inner is _HistoryEntry:
                entries = [(nth, entry) for nth, entry in enumerate(value) if isinstance(entry, dict)]
                odd = (nth for nth, entry in enumerate(value) if not isinstance(entry, dict))
                faults += [f"{where}[{nth}] left out: not an object" for nth in odd]
                values[name] = [_fit(inner, entry, faults, f"{where}[{nth}].") for nth, entry in entries]
            else:
                faults.append(f"{where} left out: expected another type, got `{type(value).__name__}`")
    return kind(**values)
