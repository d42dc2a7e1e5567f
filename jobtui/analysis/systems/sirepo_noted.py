"""Additions to a verdict on a job of Sirepo: troubles of its agent, and later requests for its results."""

import re
from collections.abc import Mapping, Sequence

from jobtui.analysis.correlation.agents import UNWANTED_ENDS
from jobtui.analysis.explain.case import NEWER_S, Case
from jobtui.analysis.times import age
from jobtui.model.clock import SECOND, Nanos, seconds_between, to_rfc3339
from jobtui.model.numbers import whole
from jobtui.model.ops import Step
from jobtui.model.verdicts import Code

_REASON = re.compile(r"(?:\b(?:error|exception|stderr)=|reason': ')(?P<why>.+?)(?: stack=|'?,? *$)")
_SERIAL = re.compile(r"[sS]erial'?[=:] ?(?P<serial>\d{1,10})\b")
_TELLS_WHY = ("docker ", "its start failed", "it ended with code")
"""Beginnings of a line about an agent's end that gives a reason."""
TOUCHED = frozenset(
    {Code.AGENT_LOST, Code.REPLY_LOST, Code.STALE_RECORD, Code.CANCEL_UNCONFIRMED, Code.RUNNING,
     Code.AGENT_NEVER_STARTED}
)  # fmt: skip
"""Verdicts to which the troubles of the agent matter."""
FROM_AFAR: Mapping[str, str] = {
    "lost the supervisor": "Its agent lost the connection to the supervisor{times}",
    "message from an agent that is not known": "An agent unknown to the supervisor wrote of it{times}",
    "did not know Slurm's state": "Its agent did not know what Slurm said{times}",
}
"""The sentence for a step about the connection between agent and supervisor."""
OF_OTHER_RUNS = frozenset(
    {"status of an older run, ignored", "asked for another run than it has",
     "asked for another run than the record's"}
)  # fmt: skip
LATER_OPS = frozenset({"analysis", "io"})
MOST_QUOTED = 160


def reason_in(text: str) -> str:
    """The reason in a line, "" if it has none."""
    found = _REASON.search(text)
    return "" if found is None else found["why"].strip("'\" ")[:MOST_QUOTED]


def noted(case: Case, code: Code) -> str:
    steps = case.run.steps if case.run is not None else ()
    told = [_from_afar(case, steps, word) for word in FROM_AFAR] if code in TOUCHED else []
    told += [
        _agent_words(case) if code in TOUCHED else "",
        _other_runs(case, steps),
        _failed_later(case, code),
    ]
    return "".join(f" {words}." for words in told if words)


def _from_afar(case: Case, steps: Sequence[Step], word: str) -> str:
    same = [step for step in steps if step.step == word]
    if not same:
        return ""
    since = case.since(same[0])
    often = "" if len(same) == 1 else f" {len(same)} times"
    times = often if since is None else f"{often}{' since' if often else ''} {age(since)} ago"
    why = reason_in(same[-1].text)
    return f"{FROM_AFAR[word].format(times=times)}{why and ': '}{why}"


def _agent_words(case: Case) -> str:
    agent = case.agent
    is_told = agent is not None and agent.state in UNWANTED_ENDS and agent.why.startswith(_TELLS_WHY)
    return f"Of its agent it is said: {agent.why}" if agent is not None and is_told else ""


def _other_runs(case: Case, steps: Sequence[Step]) -> str:
    same = [step for step in steps if step.step in OF_OTHER_RUNS]
    serials = [whole(found["serial"]) for found in _SERIAL.finditer(same[-1].text)] if same else []
    names = [_run_name(case, serial) for serial in serials if serial is not None]
    if len(names) < 2 or names[0] == names[1]:
        return ""
    return f"News or requests of {names[1]} were refused {_times(len(same))}: {names[0]} counts"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _run_name(case: Case, serial: int) -> str:
    """A run by its serial, which is the time at which it was requested."""
    at = Nanos(serial * SECOND)
    for run in case.runs or ():
        if run.queued_at is not None and abs(seconds_between(run.queued_at, at)) <= NEWER_S:
            return f"run {run.number}"
    return f"the run of {to_rfc3339(at)[:19]}Z" if serial else "no run"


def _failed_later(case: Case, code: Code) -> str:
    """The requests for results of a finished run that failed."""
    failed = [op for op in case.later if op.name in LATER_OPS and op.error]
    if not failed or code is not Code.COMPLETED:
        return ""
    why = reason_in(failed[-1].error or "") or (failed[-1].error or "")[:MOST_QUOTED]
    return f"What was asked of it later failed {_times(len(failed))} ({failed[-1].name}): {why}"
