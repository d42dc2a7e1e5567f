"""The verdict on one job for a screen, made again when the job changes or time passes."""

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from textual.dom import DOMNode

from jobtui.actions import ScreenName, key_of
from jobtui.backends.registry import Gives, kinds_that_give
from jobtui.model.commands import OURS
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobDetail
from jobtui.model.verdicts import Verdict
from jobtui.screens.shared import Shared, start

if TYPE_CHECKING:
    from jobtui.analysis.explain.case import Evidence

LIVE_S = 5.0
"""How often a verdict is renewed if the job is live, and so may become late, or sources were in doubt."""

SHOWN_BY: Mapping[str, str] = {
    "timeline": "tab('timeline')", "logs": "tab('logs')", "compare": "compare", "show": "",
    "agents": "app.go('agents')", "trace": "tab('trace')",
}  # fmt: skip
"""The action that shows what a command of jobtui prints; "" where the screen of the job does."""


def keys_for(flags: Sequence[str], screen: ScreenName, command: Sequence[str]) -> str:
    """The keys on the screen of the jobs, or of one job, for a command of jobtui with these flags."""
    ours, *words = command or ("",)
    call = SHOWN_BY.get(words[len(flags)]) if ours == OURS and len(words) > len(flags) else None
    if call is None:
        return ""
    here = key_of(call, screen)
    if here or screen == ScreenName.JOB:
        return here
    return f"{key_of('open', screen)} {key_of(call, ScreenName.JOB)}".rstrip()


class JobVerdict:
    """The verdict on a job. `on_change` is called when it was made."""

    def __init__(
        self, screen: DOMNode, shared: Shared, on_change: Callable[[], None], job_id: JobId | None = None
    ) -> None:
        self._screen = screen
        self._shared = shared
        self._on_change = on_change
        self._detail: JobDetail | None = None
        self._slurm_id: str | None = None
        self._is_due = False
        self._works = False
        self._made_at = 0.0
        self._reads_record = job_id is None
        self.job_id = job_id
        self.verdict: Verdict | None = None
        """The latest verdict; None before the first."""

    def choose(self, job_id: JobId | None) -> None:
        """Turn to another job. Its record is read here, unless a server must be asked for it."""
        if job_id != self.job_id:
            self.job_id, self.verdict = job_id, None
        if job_id is not None:
            self.renew(None)

    def renew(self, detail: JobDetail | None) -> None:
        self._detail = detail
        self._is_due = True
        if not self._works:
            self._works = True
            self._screen.call_after_refresh(start, self._screen, self._work, group="verdict")

    def note_slurm(self, slurm_id: str | None) -> None:
        if slurm_id != self._slurm_id:
            self._slurm_id = slurm_id
            self.renew(self._detail)

    def tick(self) -> None:
        job = self._shared.store.job(self.job_id) if self.job_id is not None else None
        may_turn = job is not None and (job.status.is_live or (self.verdict and self.verdict.doubts))
        if may_turn and monotonic() - self._made_at >= LIVE_S:
            self.renew(self._detail)

    async def _work(self) -> None:
        from jobtui.session.evidence import with_memory

        shared = self._shared
        try:
            while self._is_due and (job_id := self.job_id) is not None:
                self._is_due = False
                gatherer = shared.gatherer()
                if self._reads_record:
                    known = await gatherer.at_hand(job_id)
                else:
                    known = await gatherer.gather(job_id, self._detail, self._slurm_id)
                known = gatherer.with_good(await with_memory(known, shared.job_reader))
                await self._say(known, job_id)
                if self._reads_record:
                    continue
                # Its host may take long to answer
                if (more := await gatherer.with_killer(known)) is not known and not self._is_due:
                    await self._say(more, job_id)
        finally:
            self._works = False

    async def _say(self, evidence: "Evidence", job_id: JobId) -> None:
        from jobtui.analysis.explain.verdict import explain
        from jobtui.session.evidence import with_steps_here

        self._made_at = monotonic()
        has_traces = any(one.kind in kinds_that_give(Gives.SPANS) for one in evidence.sources)
        known, reach, words = explain(evidence), self._shared.reach, self._shared.words
        verdict = await with_steps_here(known, words, evidence, reach, has_traces=has_traces)
        if job_id == self.job_id:
            self.verdict = verdict
            self._on_change()
