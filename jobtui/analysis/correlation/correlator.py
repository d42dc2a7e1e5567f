"""Makes ops with their steps from the log records of every source. The cost is proportional to new records.

Each record counts once, as far as a bounded memory of records allows. Entries of journals have an identity.
A line of a file is recognized by its second, process and text. It counts as often as in the fullest log.

A supervisor writes some pairs of lines without an await between them, so they are adjacent among its own
lines: a request (or a cancel) and the op without a run directory that it makes; an agent's
`run_status_update` and the line that names its job. All other lines are linked by ids. The creation line
links an op to its job, and the send line links it to its agent.

A supervisor's lines make the ops in one forward pass for each file. Agents' lines and the API server's calls
are linked to them afterwards, in whatever order the files are read. The rules are the message tables in
`formats/sirepo.toml` and the docstrings of the passes.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter

import msgspec

from jobtui.analysis.correlation.agent_lines import SHAPES as AGENT_SHAPES
from jobtui.analysis.correlation.agent_lines import AgentPass, is_note, job_of, place_notes
from jobtui.analysis.correlation.agents import Agents
from jobtui.analysis.correlation.job_events import JobEvents, place_calls
from jobtui.analysis.correlation.ops import BYTES_KEPT, OPS_KEPT, OpIndex, held_by, known_agents, step_of
from jobtui.analysis.correlation.supervisor_lines import HANDLERS, NOTED, REPLY_WORDS, note_place
from jobtui.analysis.correlation.supervisor_state import STEP, PassState, Restarts
from jobtui.formats.parser import SHAPE as DAMAGED
from jobtui.formats.schema import load
from jobtui.model.bounded import Bounded
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import FAULTS, contained
from jobtui.model.ids import JobId
from jobtui.model.logs import LogRecord
from jobtui.model.ops import (
    RUNS_COMPARED,
    Agent,
    Certainty,
    Component,
    Correlation,
    Damage,
    Op,
    Step,
    Unlinked,
    WritersRead,
    in_order,
)

KNOWN = 200_000
LINES_KNOWN = 50_000
"""Lines of files that are recognized, at least; at most three times as many."""
SURE = 2
"""Two logs with this many equal lines are copies."""
PROCESSES_KNOWN = 20_000
"""Processes kept with the time of their newest forgotten line."""

_Place = tuple[str, int, int, str | None]
"""Where a line was read first: log, second, process, container. Lines come in runs that share one."""


def is_delivered_again(before: LogRecord, record: LogRecord) -> bool:
    """Whether a line is the one before it. Those of no op, and agents' news, may be equal in a second."""
    is_same = (before.at, before.pid, before.container) == (record.at, record.pid, record.container)
    fields = record.fields
    return is_same and fields.get("o") not in (None, "None") and fields.get("op_name") in REPLY_WORDS


class RepeatFilter:
    """Finds records that came before. `shapes` are those whose lines are compared between logs."""

    def __init__(self, shapes: Set[str] = frozenset()) -> None:
        self._shapes = shapes
        self._known = Bounded[int, None](KNOWN)
        self._lines: dict[int, _Place] = {}
        self._older: dict[int, _Place] = {}
        self._place: _Place = "", 0, 0, None
        self._counts: dict[int, tuple[int, int]] = {}
        """Of lines that came more than once: how often in the first log, how often in any log at most."""
        self._again: Counter[tuple[int, str]] = Counter()
        self._ends: dict[str, int] = {}
        """The newest second of each log that is a copy or has one."""
        self._forgotten: dict[tuple[int, str | None], int] = {}
        """For each process the newest second of its forgotten lines."""
        self._origins: dict[str, str] = {}
        self.repeated: Counter[tuple[str, str]] = Counter()
        """For each pair of logs: how many lines of the first the second had before."""

    def is_new(self, record: LogRecord) -> bool:
        identity = record.identity
        if identity is not None:
            if identity in self._known:
                return False
            self._known[identity] = None
        at, pid = record.at, record.pid
        if at is None or pid is None or record.shape not in self._shapes:
            return True
        source, container = record.source, record.container
        second = at // SECOND  # times in files are no finer
        line = hash((second, pid, container, record.text))
        end = self._ends.get(source)
        if end is not None and second >= end:
            self._ends[source] = second
        if known := self._lines.get(line) or self._older.get(line):
            return self._is_once_more(line, source, known)
        if end is not None and end <= second < self._forgotten.get((pid, container), 0):
            return False  # a copy far behind the others: this line was read before and is forgotten
        place = source, second, pid, container
        if place != self._place:
            self._place = place
        self._lines[line] = self._place
        if len(self._lines) > LINES_KNOWN:
            self._forget()
        return True

    def _is_once_more(self, line: int, source: str, known: _Place) -> bool:
        owner, second, _, _ = known
        own, given = self._counts.get(line, (1, 1))
        if source == owner:
            count = own = own + 1
        else:
            self._again[line, source] += 1
            count = self._again[line, source]
        is_new = count > given
        self._counts[line] = own, max(count, given)
        self._lines[line] = known
        if is_new or source == owner:
            return is_new
        self.repeated[source, owner] += 1
        if self.repeated[source, owner] == SURE and self.origin(owner) != source:
            self._origins[source] = self.origin(owner)
            for one in {source, owner} - self._ends.keys():
                seconds = (known[1] for known in self._lines.values() if known[0] == one)
                self._ends[one] = max(seconds, default=second)
        return False

    def _forget(self) -> None:
        ends = self._forgotten = {} if len(self._forgotten) > PROCESSES_KNOWN else self._forgotten
        for _, second, pid, container in self._older.values():
            ends[pid, container] = max(second, ends.get((pid, container), 0))
        rest = {line: known for line, known in self._older.items() if known[1] >= ends[known[2:]]}
        self._older, self._lines = self._lines if len(rest) > LINES_KNOWN else rest | self._lines, {}
        self._counts = {line: count for line, count in self._counts.items() if line in self._older}
        self._again.clear()

    def origin(self, source: str) -> str:
        """The log of which this one is a copy; the log itself if it is none."""
        return self._origins.get(source, source)

    @property
    def notes(self) -> Mapping[str, str]:
        return {
            one: f"{count:,} of its lines are in {other}, too: they count once"
            for pair, count in self.repeated.items()
            for one, other in (pair, pair[::-1])
        }


DAMAGES_KEPT = 200


class WriterSurvey:
    """Collects which writers were read, and damaged parts; see `WritersRead`."""

    def __init__(self) -> None:
        self._shapes: set[str] = set()
        self._damaged: dict[str, deque[Damage]] = {}
        self._last: dict[str, Nanos] = {}
        self._open: set[str] = set()
        """Logs without a line with a time after their last damaged part."""

    def add(self, records: Sequence[LogRecord]) -> None:
        shapes = set(map(attrgetter("shape"), records))
        self._shapes |= shapes
        if DAMAGED in shapes or self._open:
            for record in records:
                self._note(record)
        elif records and records[-1].at is not None:
            self._last[records[-1].source] = records[-1].at

    def _note(self, record: LogRecord) -> None:
        """Note a damaged part, or the times of the lines around one."""
        source, at = record.source, record.at
        if record.shape == DAMAGED:
            damages = self._damaged.setdefault(source, deque(maxlen=DAMAGES_KEPT))
            damages.append(Damage(record.offset, self._last.get(source)))
            self._open.add(source)
        elif at is not None:
            self._last[source] = at
            if source in self._open:
                self._open.discard(source)
                damages = self._damaged[source]
                for number, damage in enumerate(damages):
                    if damage.until is None:
                        damages[number] = damage._replace(until=at)

    def take_in(self, other: "WriterSurvey") -> None:
        self._shapes |= other._shapes
        self._damaged = {**other._damaged, **self._damaged}

    @property
    def writers_read(self) -> WritersRead:
        known = frozenset(one.component for one in load("sirepo").shapes if one.name in self._shapes)
        damaged = {source: tuple(damages) for source, damages in self._damaged.items()}
        return WritersRead(known, damaged=damaged)


WHY = "its state comes from events; this is what its site wrote"


@dataclass(slots=True, kw_only=True, eq=False)
class SupervisorPass(PassState):
    """Takes the records of one supervisor's log in order.

    A log and each copy of it have their own pass. The first one that has a line reports it, and the line
    before it comes from the same log.
    """

    repeats: RepeatFilter

    def read(self, record: LogRecord) -> bool:
        """Take in one record of a shape in HANDLERS. Gives whether it is new: no copy had it before."""
        shape, before = record.shape, self.before
        is_again = before is not None and record.text == before.text and is_delivered_again(before, record)
        is_new = not is_again and self.repeats.is_new(record)
        if before is None or record.at != before.at or record.pid != before.pid:
            self.restarts.goes_on(self.log, record, before)
        if is_new:
            HANDLERS[shape](self, record)
        elif shape == "op_created":
            made = [op for op in self.named(record) if op.created_at == record.at]
            self.newest = made[-1] if made else None
        if shape in NOTED:
            note_place(self, record)
        self.before = record
        return is_new


COMPARED = frozenset(HANDLERS) | {"api_called"}
"""Shapes whose lines two logs may have. Repeated lines of agents are found when they are linked."""


class Correlator(Correlation):
    """The correlation of log records; `feed` takes them, and the other methods give ops and agents."""

    def __init__(self, limit: int = OPS_KEPT, most_bytes: int = BYTES_KEPT) -> None:
        self._ops = OpIndex(limit, most_bytes)
        self._repeats = RepeatFilter(COMPARED)
        self._agents = Agents(self._repeats.origin)
        self._events = JobEvents(self._ops.changed)
        self._restarts = Restarts(self._ops, self._repeats.origin)
        self._supervisors: dict[str, SupervisorPass] = {}
        self._agent_pass = AgentPass(self._ops, self._agents)
        self._survey = WriterSurvey()

    def feed(self, records: Sequence[LogRecord]) -> set[JobId]:
        self._ops.changed.clear()
        for record in records:
            try:
                if record.shape in HANDLERS:
                    supervisor = self._supervisors.get(record.source) or self._supervisor(record.source)
                    if supervisor.read(record) and record.shape == "op_sent":
                        self._agent_pass.retry(record.fields["o"] or "")
                elif self._repeats.is_new(record):
                    self._read(record)
            except Exception as error:  # noqa: BLE001 - it costs this record; a `with` would cost all others time
                FAULTS.note(error, "correlating")
        with contained("correlating"):
            self._survey.add(records)
        return set(self._ops.changed)

    def _read(self, record: LogRecord) -> None:
        shape = record.shape
        if is_note(record):
            if jid := job_of(record):
                self._events.noted(jid, record)
        elif shape in AGENT_SHAPES:
            self._agent_pass.read(record)
        elif shape == "api_called":
            self._events.called(record)
        elif job_id := JobId(record.fields.get("jid") or ""):  # a line of a site of Balsam
            self._events.keep(job_id, record, WHY)

    def take_in(self, other: "Correlator") -> None:
        """Add what another one read and can no longer be read. The other must not be used afterwards.

        This one has read everything that still can be read, in the same order and at least as far. So what
        only the other knows is older than the first line that this one read.
        """
        keys = self._ops.take_in(other._ops)
        self._agents.take_in(other._agents)
        self._events.take_in(other._events, self._ops.of_job)
        self._restarts.take_in(other._restarts, keys)
        self._agent_pass.take_in(other._agent_pass)
        self._survey.take_in(other._survey)

    def _supervisor(self, source: str) -> SupervisorPass:
        begun = self._supervisors[source] = SupervisorPass(
            log=self._restarts.log(source), ops=self._ops, agents=self._agents, events=self._events,
            restarts=self._restarts, repeats=self._repeats,
        )  # fmt: skip
        return begun

    @property
    def writers_read(self) -> WritersRead:
        return self._survey.writers_read._replace(writers=self._restarts.writers())

    @property
    def repeated(self) -> Mapping[str, str]:
        return self._repeats.notes

    def open_ops(self) -> tuple[Op, ...]:
        return tuple(track.freeze() for track in self._ops.open_ops())

    def runs_like(self, model: str, driver: str | None) -> tuple[Op, ...]:
        ended = (track for track in reversed(self._ops.all()) if track.name == "run" and not track.is_open)
        alike = (op for op in ended if op.driver == driver and (op.jid or "").endswith(f"-{model}"))
        return tuple(track.freeze() for track in islice(alike, RUNS_COMPARED))

    def restarted_ops(self, job_id: JobId) -> Mapping[int, Step]:
        tracks = self._ops.of_job(job_id)
        found = ((track.key, self._restarts.first_after(track)) for track in tracks)
        return {key: step_of(one, Certainty.ADJACENT, STEP) for key, one in found if one}

    def ops_of(self, job_id: JobId) -> tuple[Op, ...]:
        tracks = list(self._ops.of_job(job_id))
        events = self._events.of(job_id)
        calls, _ = place_calls(events.calls, tracks)
        notes, _ = place_notes(events.notes, tracks)
        return tuple(
            _with_steps(track.freeze(), calls.get(track.key), notes.get(track.key, ())) for track in tracks
        )

    def unlinked_of(self, job_id: JobId) -> tuple[Unlinked, ...]:
        tracks = list(self._ops.of_job(job_id))
        events = self._events.of(job_id)
        _, calls = place_calls(events.calls, tracks)
        _, notes = place_notes(events.notes, tracks)
        return (
            *(Unlinked(job_id, _loose(r, Component.SERVER), "this call made no op") for r in calls),
            *self._events.unlinked_of(job_id),
            *(
                Unlinked(job_id, _loose(r, Component.AGENT), "the supervisor's line of this op was not read")
                for r in (*notes, *self._agent_pass.waiting_for(job_id))
            ),
        )

    def ops(self, after: int = 0) -> Iterable[Op]:
        tracks = (track for track in self._ops.all() if track.key > after)
        return (track.freeze() for track in sorted(tracks, key=lambda track: track.key))

    def agents(self) -> tuple[Agent, ...]:
        return known_agents(self._agents, self._ops)

    def agent_of(self, job_id: JobId) -> Agent | None:
        for track in reversed(self._ops.of_job(job_id)):
            prefix = track.any_agent
            if track.name == "run" and prefix and (agent := self._agents.with_prefix(prefix, track.uid)):
                return agent.freeze(held_by(agent, self._ops))
        return None

    @property
    def dropped_ops(self) -> int:
        return self._ops.dropped


def _with_steps(op: Op, call: Step | None, notes: Sequence[Step]) -> Op:
    if call is None and not notes:
        return op
    return msgspec.structs.replace(op, steps=in_order([*((call,) if call else ()), *op.steps, *notes]))


def _loose(record: LogRecord, component: Component) -> Step:
    return step_of(record, Certainty.JID, record.shape.replace("_", " "), component)
