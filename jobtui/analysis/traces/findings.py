"""All that is to be said of one trace, and how it stands."""

from collections.abc import Mapping
from typing import NamedTuple

from jobtui.analysis.traces.failures import Failure, FailureKind, RootCause, failures, root_causes
from jobtui.analysis.traces.tree import Tree, build_tree, skew_ns
from jobtui.analysis.traces.waits import Wait, waits_of
from jobtui.model.trace_ids import SpanId
from jobtui.model.traces import Span, SpanLog, Trace
from jobtui.model.words import counted


class Findings(NamedTuple):
    """What was found in a trace.

    `skewed` are spans that begin before their parent, with nanoseconds; `unplaced` are log records of no
    span, or of one that was not received: a process that was killed sends its logs and not its spans.
    """

    tree: Tree
    causes: tuple[RootCause, ...]
    failures: tuple[Failure, ...]
    waits: tuple[Wait, ...]
    skewed: tuple[tuple[Span, int], ...]
    unplaced: tuple[SpanLog, ...]

    @property
    def has_failed(self) -> bool:
        """Whether something failed that nobody handled."""
        said = any(failure.kind is not FailureKind.UNFINISHED for failure in self.failures)
        return said or any(not cause.is_handled for cause in self.causes)

    @property
    def failed_at(self) -> Mapping[SpanId, bool]:
        """The spans at which something failed, errors or not, each with whether it was handled."""
        said = (one for one in self.failures if one.kind is not FailureKind.UNFINISHED)
        return {
            **{failure.span.span_id: False for failure in said},
            **{cause.span.span_id: cause.is_handled for cause in self.causes},
        }

    @property
    def is_unfinished(self) -> bool:
        """Whether the last thing in it never ended: it was killed, or still runs; or no span came at all."""
        return not self.tree.spans or any(
            one.kind is FailureKind.UNFINISHED and one.is_last for one in self.failures
        )

    @property
    def sentence_word(self) -> str:
        """How it stands, in a few words."""
        if self.has_failed:
            return "failed"
        if not self.tree.spans:
            return "no spans"
        if self.is_unfinished:
            return "unfinished"
        if self.causes:
            return f"went on well after {counted(len(self.causes), 'error')}"
        return "no failure"


def study_trace(trace: Trace) -> Findings:
    """Everything that is to be said of a trace."""
    tree = build_tree(trace)
    early = ((span, skew_ns(tree, span)) for span in tree.spans)
    return Findings(
        tree,
        root_causes(tree),
        failures(tree),
        waits_of(tree),
        tuple((span, nanos) for span, nanos in early if nanos),
        tuple(log for log in tree.logs if log.span_id not in tree.by_id),
    )
