"""Ids as types, and the grammar by which they are recognized: jobs, ops, agents, servers, traces.

Grammar of Sirepo's ids: a computeJid is `<uid>-<simulationId>-<computeModel>`; agent ids and op ids are
32 characters of base 62 of which logs show the first four. Agent ids are secrets: jobtui keeps their
prefix and nothing else.

`<cluster>.<proc>@<schedd>` is how jobsub names a job of HTCondor, also `<cluster>@<schedd>` and
`<cluster>.@<schedd>` for all processes of a cluster; HTCondor itself writes `<cluster>.<proc>`, in event logs
with leading zeros, and GlobalJobId, `<schedd>#<cluster>.<proc>#<time>`.

A TRACEPARENT is `00-<32 hex trace id>-<16 hex span id>-<2 hex flags>` (https://www.w3.org/TR/trace-context/);
ids of zeros are invalid, version ff too, other versions are read by their first four fields. Loose forms
found in logs: without the version, upper case, a bare trace id, an address ending in `/trace/<id>`. An id
that is too short or too long is completed or cut, and a note says so.
"""

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import NamedTuple, NewType

from jobtui.model.numbers import whole
from jobtui.model.patterns import regex

JobId = NewType("JobId", str)
"""The id of a job in its own system: a computeJid for Sirepo."""
Uid = NewType("Uid", str)
SimulationId = NewType("SimulationId", str)
OpPrefix = NewType("OpPrefix", str)
OpId = NewType("OpId", str)
AgentPrefix = NewType("AgentPrefix", str)
RunDir = NewType("RunDir", str)
ContainerName = NewType("ContainerName", str)

PREFIX_LENGTH = 4

LATELY = 4_096
"""How many ids and paths are kept with their parts: the lines of one job repeat them."""

UID = r"[A-Za-z0-9]{8}"
SIMULATION_ID = r"(?:[A-Za-z0-9]{8}|_1_st(?:ful|lss))"
JID = rf"{UID}-{SIMULATION_ID}-\w+"

_JID = re.compile(rf"(?P<uid>{UID})-(?P<simulation_id>{SIMULATION_ID})-(?P<model>\w+)", re.ASCII)
_CONTAINER = regex(rf"srj-(?P<kind>[sp])-(?P<uid>{UID})", re.ASCII)
_LOCAL_RUN_DIR = regex(rf"/user/({UID})/\w+/({SIMULATION_ID})/(\w+)/?$", re.ASCII)
_SBATCH_RUN_DIR = regex(rf"/user/{UID}/\w+/({JID})/?$", re.ASCII)
_FULL_ID = regex(r"[A-Za-z0-9]{32}", re.ASCII)
_PREFIX = regex(r"[A-Za-z0-9]{4}", re.ASCII)


def system_job_id(system: str, native: str | int) -> JobId:
    """The id of a job whose system numbers its jobs: `balsam/12`, `slurm/22_1`.

    With several installations of one system, `system` includes a label: `balsam@host`.
    """
    return JobId(f"{system}/{native}")


class Numbered(NamedTuple):
    """The parts of the id of a job whose system numbers its jobs.

    `label` names one of several servers, "" for the only one.
    """

    system: str
    label: str
    number: str


LABEL = r"[A-Za-z0-9_.:-]{1,200}"
NUMBER = r"\d{1,18}(?:[_+]\d{1,9})?"
"""The number of a job, of a task of a Slurm array (`22_1`), of a part of a job of several (`22+1`)."""
_NUMBERED = regex(rf"([a-z]+)(?:@({LABEL}))?/({NUMBER})", re.ASCII)


def numbered(text: str) -> Numbered | None:
    match = _NUMBERED.fullmatch(text)
    return None if match is None else Numbered(match[1], match[2] or "", match[3])


class JidParts(NamedTuple):
    uid: Uid
    simulation_id: SimulationId
    model: str


@lru_cache(LATELY)
def split_jid(text: str) -> JidParts | None:
    match = _JID.fullmatch(text)
    if match is None:
        return None
    return JidParts(Uid(match["uid"]), SimulationId(match["simulation_id"]), match["model"])


def is_quasi_jid(jid: str) -> bool:
    """Whether a computeJid belongs to a stateful or stateless compute call and not to a simulation."""
    return "-_1_st" in jid


@lru_cache(LATELY)
def jid_of_run_dir(run_dir: str) -> JobId | None:
    """The computeJid that a run directory belongs to, None when the path is not one.

    Local and Docker: `.../user/<uid>/<app>/<simulationId>/<model>`.
    sbatch: `.../user/<uid>/<app>/<computeJid>`.
    """
    if match := _LOCAL_RUN_DIR.search(run_dir):
        return JobId("-".join(match.groups()))
    if match := _SBATCH_RUN_DIR.search(run_dir):
        return JobId(match[1])
    return None


def database_root(run_dir: str) -> str | None:
    """The database root above a local or Docker run directory; None for others, such as one on a cluster."""
    match = _LOCAL_RUN_DIR.search(run_dir)
    return run_dir[: match.start()] if match else None


def app_of_run_dir(run_dir: str) -> str | None:
    """The simulation type in the path of a run directory, None if the path is not one."""
    match = _LOCAL_RUN_DIR.search(run_dir) or _SBATCH_RUN_DIR.search(run_dir)
    return match[0].split("/")[3] if match else None


class ContainerParts(NamedTuple):
    """What the name of a Docker agent's container says."""

    kind: str
    uid: Uid


def split_container(text: str) -> ContainerParts | None:
    """Kind (`sequential` or `parallel`) and user in a container name, None if `text` is not one."""
    match = _CONTAINER.fullmatch(text)
    if match is None:
        return None
    return ContainerParts("parallel" if match["kind"] == "p" else "sequential", Uid(match["uid"]))


def is_full_id(text: str) -> bool:
    return _FULL_ID.fullmatch(text) is not None


def is_prefix(text: str) -> bool:
    """Whether `text` has the form of an op or agent prefix as logs show it."""
    return _PREFIX.fullmatch(text) is not None


def op_prefix(op_id: str) -> OpPrefix:
    return OpPrefix(op_id[:PREFIX_LENGTH])


_ADDRESS = regex(r"[\d.]+|.*:.*")
_UNFIT = regex(r"[^A-Za-z0-9.:-]+")


def labels_of(urls: Collection[str]) -> Mapping[str, str]:
    """The shortest labels by which all addresses differ; "" for a single address."""
    distinct = tuple(dict.fromkeys(urls))
    if len(distinct) < 2:
        return dict.fromkeys(distinct, "")
    by_form = list(zip(*map(_forms, distinct), strict=True))
    for labels in by_form:
        if len(set(labels)) == len(distinct):
            return dict(zip(distinct, labels, strict=True))
    return {
        url: f"{label}-{number}"
        for number, (url, label) in enumerate(zip(distinct, by_form[-1], strict=True), 1)
    }


def answers_to(url: str, label: str) -> bool:
    """Whether a label may mean the server at an address, whatever other servers there are."""
    return label in _forms(url)


def _forms(url: str) -> tuple[str, ...]:
    """The labels of an address, shortest first: the host's short name, the host, with port, with path."""
    from urllib.parse import urlsplit  # few have several servers

    parts = urlsplit(url)
    host, netloc = parts.hostname or "", parts.netloc.rpartition("@")[2]
    short = host if _ADDRESS.fullmatch(host) else host.partition(".")[0]
    forms = short, host, netloc, f"{netloc}{parts.path}", f"{parts.scheme}:{netloc}{parts.path}"
    return tuple(_UNFIT.sub("-", form).strip("-") for form in forms)


def meant_by(thing: str, servers: Mapping[str, str], system: str) -> list[JobId]:
    """The ids that a typed id may mean on the known servers; the typed id itself if none fits.

    `servers` gives the label of each address. Both `balsam/12` and `balsam@host/12` are understood, whichever
    is shown.
    """
    parts = numbered(thing)
    if parts is None or parts.system != system:
        return [JobId(thing)]
    found = (
        system_job_id(named(system, label), parts.number)
        for url, label in servers.items()
        if not parts.label or parts.label == label or answers_to(url, parts.label)
    )
    return [*dict.fromkeys(found)] or [JobId(thing)]


def named(system: str, label: str) -> str:
    """The first part of the ids of a server's jobs: `balsam`, `balsam@host`."""
    return f"{system}@{label}" if label else system


_HOST = r"[A-Za-z0-9](?:[\w.@-]{0,250}[A-Za-z0-9])?"
JOBSUB_ID = rf"\d{{1,12}}(?:\.\d{{0,9}})?@{_HOST}"
"""With the schedd, as jobsub writes it: nothing else looks so."""
_CONDOR = regex(rf"(?P<cluster>\d{{1,12}})(?:\.(?P<proc>\d{{0,9}}))?(?:@(?P<schedd>{_HOST}))?", re.ASCII)
_GLOBAL_CONDOR = regex(rf"(?P<schedd>{_HOST})#(?P<cluster>\d{{1,12}})\.(?P<proc>\d{{1,9}})#\d+", re.ASCII)
_CONDOR_WITH_SCHEDD = regex(rf"(?<![\w.@-]){JOBSUB_ID}", re.ASCII)


class CondorId(NamedTuple):
    """A job, or all processes of a cluster where `proc` is None. `schedd` is "" where it is not written."""

    cluster: int
    proc: int | None
    schedd: str = ""

    @property
    def number(self) -> str:
        return str(self.cluster) if self.proc is None else f"{self.cluster}.{self.proc}"

    @property
    def job_id(self) -> JobId:
        """The id of the job, as jobsub writes it; without the schedd while that is not known."""
        return JobId(f"{self.number}@{self.schedd}" if self.schedd else self.number)

    def holds(self, other: "CondorId") -> bool:
        """Whether another id may be of this job or cluster: what one of them does not say may be so."""
        return (
            self.cluster == other.cluster
            and (self.proc is None or self.proc == other.proc)
            and (not self.schedd or not other.schedd or self.schedd == other.schedd)
        )


def condor_id(text: str) -> CondorId | None:
    match = _CONDOR.fullmatch(text) or _GLOBAL_CONDOR.fullmatch(text)
    if match is None:
        return None
    return CondorId(whole(match["cluster"], 0), whole(match["proc"]), match["schedd"] or "")


def find_condor_id(text: str) -> CondorId | None:
    found = _CONDOR_WITH_SCHEDD.search(text)
    return condor_id(found[0]) if found else None


TraceId = NewType("TraceId", str)
"""32 lower-case hex digits."""
SpanId = NewType("SpanId", str)
"""16 lower-case hex digits."""

TRACE_DIGITS = 32
SPAN_DIGITS = 16
LONGEST = 40
"""A text with more hex digits is not a mistyped id."""
SEARCHED = 64 << 10

_PARENT = regex(
    rf"(?<![\w-])(?:(?P<version>[0-9a-f]{{2}})-)?(?P<trace>[0-9a-f]{{24,{LONGEST}}})"
    rf"-(?P<span>[0-9a-f]{{12,20}})-(?P<flags>[0-9a-f]{{2}})(?!\w)",
    re.ASCII | re.IGNORECASE,
)
_TRACE_ADDRESS = regex(
    rf"://\S*?/traces?/(?P<trace>[0-9a-f]{{1,{LONGEST}}})(?![\w-])", re.ASCII | re.IGNORECASE
)
_LABELLED = regex(
    rf"(?<![a-z0-9])trace[ _.-]?id\b\W{{0,10}}(?P<trace>[0-9a-f]{{8,{LONGEST}}})(?![\w-])",
    re.ASCII | re.IGNORECASE,
)
_BARE = regex(rf"(?<![\w-])(?P<trace>[0-9a-f]{{{TRACE_DIGITS}}})(?![\w-])", re.ASCII | re.IGNORECASE)
_ALONE = regex(rf"\s*(?P<trace>[0-9a-f]{{1,{LONGEST}}})\s*", re.ASCII | re.IGNORECASE)


class TraceRef(NamedTuple):
    """A trace that a text names, and the parent span in its TRACEPARENT.

    `notes` say what is wrong with the text. `others` are ids that it may mean instead.
    """

    trace_id: TraceId
    span_id: SpanId | None = None
    notes: tuple[str, ...] = ()
    others: tuple[TraceId, ...] = ()


class JobFilter(NamedTuple):
    """The jobs that a filter selects: one of the things at which the dashboard can open."""

    text: str


def find_trace(text: str) -> TraceRef | None:
    """The trace that a text names: an id, a TRACEPARENT, an address, or a line which holds one of these.

    None if it names none. If it names several, the first one of the surest form, with a note.
    """
    text = text[:SEARCHED]
    if alone := _ALONE.fullmatch(text):
        return _read(alone)
    for pattern in (_PARENT, _TRACE_ADDRESS, _LABELLED, _BARE):
        found = [ref for match in pattern.finditer(text) if (ref := _read(match)) is not None]
        if not found:
            continue
        different = {ref.trace_id for ref in found}
        first = found[0]
        if len(different) == 1:
            return first
        note = f"{len(different)} traces are named, this is the first"
        return first._replace(notes=(*first.notes, note))
    return None


def _read(match: re.Match[str]) -> TraceRef | None:
    """The trace of a match; None for ids of zeros and the invalid version."""
    parts = match.groupdict()
    digits = parts["trace"].lower()
    if not digits.strip("0") or (parts.get("version") or "").lower() == "ff":
        return None
    notes: list[str] = []
    surplus = len(digits) - TRACE_DIGITS
    if surplus < 0:
        notes.append(f"the trace id has {len(digits)} digits of {TRACE_DIGITS}: zeros were put before it")
    elif surplus:
        many = f"the trace id has {len(digits)} digits, {surplus} too many"
        notes.append(f"{many}: any {TRACE_DIGITS} of them may be meant")
    padded = digits.zfill(TRACE_DIGITS)
    first, *others = (TraceId(padded[at : at + TRACE_DIGITS]) for at in range(max(0, surplus) + 1))
    span = (parts.get("span") or "").lower()
    span_id = SpanId(span) if len(span) == SPAN_DIGITS and span.strip("0") else None
    if span.strip("0") and span_id is None:
        notes.append(f"the span id has {len(span)} digits of {SPAN_DIGITS}: it is left out")
    return TraceRef(first, span_id, tuple(notes), tuple(others))


def trace_id_of_hex(text: str) -> TraceId | None:
    """A trace id written in hex, with the leading zeros that Jaeger omits; None if it is not one."""
    return TraceId(digits) if (digits := _hex(text, TRACE_DIGITS)) else None


def span_id_of_hex(text: str) -> SpanId | None:
    """A span id written in hex, with the leading zeros that Jaeger omits; None if it is not one."""
    return SpanId(digits) if (digits := _hex(text, SPAN_DIGITS)) else None


_HEX = regex(r"[0-9a-f]+", re.ASCII)


def _hex(text: str, digits: int) -> str | None:
    low = text.lower()
    if len(low) > digits or not _HEX.fullmatch(low) or not low.strip("0"):
        return None
    return low.zfill(digits)
