"""Log records of every source into ops with their steps. New records cost in proportion to themselves.

A supervisor's lines make the ops in one forward pass for each file; agents' lines and the API server's
calls are tied to them afterwards, in whatever order the files are read. `reference` of the rules: the
message tables in `formats/sirepo.toml`, and the docstrings of the passes.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import msgspec

from jobtui.analysis import agent_pass
from jobtui.analysis.agent_pass import AgentPass
from jobtui.analysis.agent_track import Agents
from jobtui.analysis.agents_known import held_by, known_agents
from jobtui.analysis.hearing import Hearing
from jobtui.analysis.job_events import JobEvents, place_calls, step_of
from jobtui.analysis.once import Once
from jobtui.analysis.op_index import BYTES_KEPT, OPS_KEPT, OpIndex
from jobtui.analysis.op_track import in_order
from jobtui.analysis.restarts import STEP, Restarts
from jobtui.analysis.sbatch_notes import is_note, job_of, place_notes
from jobtui.analysis.site_lines import SiteLines, site_shapes
from jobtui.analysis.supervisor_pass import HANDLERS, SupervisorPass
from jobtui.model.clock import Nanos
from jobtui.model.heard import Heard
from jobtui.model.ids import JobId
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Agent, Certainty, Component, Op, Step, Unlinked

RUNS_COMPARED = 300
"""Earlier runs that tell how long things usually take."""


class Correlator:
    """Feed it log records of any source; ask it for the ops of a job."""

    def __init__(self, limit: int = OPS_KEPT, most_bytes: int = BYTES_KEPT) -> None:
        self._ops = OpIndex(limit, most_bytes)
        self._agents = Agents()
        self._events = JobEvents()
        self._restarts = Restarts(self._ops)
        self._supervisors: dict[str, SupervisorPass] = {}
        self._once = Once()
        self._agent_pass = AgentPass(self._ops, self._agents)
        self._hearing = Hearing()
        self._site_lines = SiteLines()

    def feed(self, records: Iterable[LogRecord]) -> set[JobId]:
        """Take in records, each source's in its order; the jobs that are now known better."""
        changed: set[JobId | None] = set()
        shapes: set[str] = set()
        supervisor_end: Nanos | None = None
        new = list(filter(self._once.is_new, records))
        for record in new:
            shape = record.shape
            shapes.add(shape)
            if shape in HANDLERS:
                supervisor_end = record.at or supervisor_end
                changed.add(self._supervisor(record.source).read(record))
                if shape == "op_sent":
                    self._agent_pass.retry(record.fields["o"] or "")
            elif is_note(record):
                if jid := job_of(record):
                    changed.add(self._events.noted(jid, record))
            elif shape in agent_pass.SHAPES:
                changed.add(self._agent_pass.read(record))
            elif shape in site_shapes():
                changed.add(self._site_lines.read(record))
            elif shape == "api_called":
                changed.add(self._events.called(record))
        for supervisor in self._supervisors.values():
            changed |= supervisor.take_others()
        self._hearing.add(new, shapes, supervisor_end)
        return {jid for jid in changed if jid is not None}

    def _supervisor(self, source: str) -> SupervisorPass:
        found = self._supervisors.get(source)
        if found is None:
            found = self._supervisors[source] = SupervisorPass(
                source, self._ops, self._agents, self._events, self._restarts
            )
        return found

    @property
    def heard(self) -> Heard:
        """Whose lines were read, and who wrote last in each log of a supervisor."""
        return self._hearing.heard._replace(writers=self._restarts.writers())

    def open_ops(self) -> tuple[Op, ...]:
        """Every op that has not ended, oldest first."""
        return tuple(track.freeze() for track in self._ops.open_ops())

    def runs_like(self, model: str, driver: str | None, most: int = RUNS_COMPARED) -> tuple[Op, ...]:
        """The latest runs of a model on a driver that have ended, newest first."""
        ending = f"-{model}"
        alike = (
            track
            for track in reversed(self._ops.all())
            if track.name == "run"
            and track.driver == driver
            and not track.is_open
            and track.jid is not None
            and track.jid.endswith(ending)
        )
        return tuple(track.freeze() for track in islice(alike, most))

    def restarted_ops(self, job_id: JobId) -> Mapping[int, Step]:
        """Those ops of a job that are older than a restart of their supervisor, by key: the restart."""
        tracks = self._ops.of_job(job_id)
        found = ((track.key, self._restarts.first_after(track)) for track in tracks)
        return {key: _restart(record) for key, record in found if record is not None}

    def ops_of(self, job_id: JobId) -> tuple[Op, ...]:
        """The ops of a job, oldest first, each with the API server's call that caused it."""
        tracks = list(self._ops.of_job(job_id))
        calls, _ = place_calls(self._events.calls_of(job_id), tracks)
        notes, _ = place_notes(self._events.notes_of(job_id), tracks)
        return tuple(
            _with_steps(track.freeze(), calls.get(track.key), notes.get(track.key, ())) for track in tracks
        )

    def unlinked_of(self, job_id: JobId) -> tuple[Unlinked, ...]:
        """Lines that name a job and could not be placed, in the order of their sources."""
        tracks = list(self._ops.of_job(job_id))
        _, calls = place_calls(self._events.calls_of(job_id), tracks)
        _, notes = place_notes(self._events.notes_of(job_id), tracks)
        return (
            *(Unlinked(job_id, _loose(r, Component.SERVER), "no op came of this call") for r in calls),
            *self._events.unlinked_of(job_id),
            *self._site_lines.unlinked_of(job_id),
            *(
                Unlinked(job_id, _loose(r, Component.AGENT), "the supervisor's line of this op was not read")
                for r in (*notes, *self._agent_pass.waiting_for(job_id))
            ),
        )

    def ops(self, after: int = 0) -> Iterable[Op]:
        """Every op that is kept and has a larger key, also those without a job, oldest first."""
        tracks = (track for track in self._ops if track.key > after)
        return (track.freeze() for track in sorted(tracks, key=lambda track: track.key))

    def agents(self) -> tuple[Agent, ...]:
        """Every agent that is known."""
        return known_agents(self._agents, self._ops)

    def agent_of(self, job_id: JobId) -> Agent | None:
        """The agent that holds or last held the job's run op."""
        for track in reversed(self._ops.of_job(job_id)):
            prefix = track.agent or track.assigned_agent
            if track.name == "run" and prefix and (agent := self._agents.with_prefix(prefix, track.uid)):
                return agent.freeze(held_by(agent, self._ops))
        return None

    @property
    def dropped_ops(self) -> int:
        """How many old ops were let go to stay within bounds."""
        return self._ops.dropped


def _with_steps(op: Op, call: Step | None, notes: Sequence[Step]) -> Op:
    if call is None and not notes:
        return op
    return msgspec.structs.replace(op, steps=in_order([*((call,) if call else ()), *op.steps, *notes]))


def _restart(record: LogRecord) -> Step:
    return step_of(record, Component.SUPERVISOR, STEP, Certainty.ADJACENT)


def _loose(record: LogRecord, component: Component) -> Step:
    return step_of(record, component, record.shape.replace("_", " "), Certainty.JID)
