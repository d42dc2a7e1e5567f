"""What an agent's sbatch poller says of a job. It names no op: it serves the run, whichever op asked for it.

So a note is tied to a run only when it is asked for: by then every source has been read as far as it goes,
and a note read before the supervisor's lines finds the right one of several runs.
"""

from collections.abc import Mapping, Sequence

from jobtui.analysis.op_track import OpTrack
from jobtui.analysis.pass_state import RUNS
from jobtui.model.clock import SECOND
from jobtui.model.ids import JobId, jid_of_run_dir
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Certainty, Component, Step

POLLER = "_SbatchRunStatus"
AHEAD = 2 * SECOND
"""How much earlier than the send a note may be written: a second's rounding and the clocks."""

_WORDS: Mapping[str, str] = {
    "sbatch_status_file": "trouble with the sbatch status file",
    "job_cmd_note": "note of the sbatch poller",
    "job_cmd_error": "error with the sbatch poller",
    "job_cmd_ended": "sbatch poller ended",
}


def is_note(record: LogRecord) -> bool:
    """Whether a line is about the polling of a run."""
    return record.shape in _WORDS and record.fields.get("cmd", POLLER) == POLLER


def job_of(record: LogRecord) -> JobId | None:
    """The job a note is about."""
    if jid := record.fields.get("jid"):
        return JobId(jid)
    return jid_of_run_dir(record.fields.get("run_dir") or "")


def place_notes(
    notes: Sequence[LogRecord], ops: Sequence[OpTrack]
) -> tuple[dict[int, list[Step]], tuple[LogRecord, ...]]:
    """Notes as steps of the runs they are about, by the key of the op; and those about none."""
    placed: dict[int, list[Step]] = {}
    left: list[LogRecord] = []
    for note in notes:
        op = next((op for op in reversed(ops) if op.name in RUNS and _may_be_about(note, op)), None)
        if op is None:
            left.append(note)
        else:
            placed.setdefault(op.key, []).append(_step(note))
    return placed, tuple(left)


def _may_be_about(note: LogRecord, op: OpTrack) -> bool:
    if not op.sends:
        return False
    return note.at is None or op.sent_at is None or op.sent_at <= note.at + AHEAD


def _step(note: LogRecord) -> Step:
    words = _WORDS[note.shape]
    place = note.source, note.line, note.offset
    return Step(words, note.at, Component.AGENT, note.text, *place, Certainty.JID, note.cursor)
