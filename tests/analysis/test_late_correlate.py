"""A late Correlator tells nothing before the first record, and from then on what a Correlator tells."""

from pathlib import Path

from jobtui.analysis.correlate import Correlator
from jobtui.analysis.late_correlate import LateCorrelator
from jobtui.formats.parser import LogParser
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId
from jobtui.store.store import Correlation

CAPTURE = Path(__file__).parents[1] / "fixtures" / "sirepo" / "local" / "supervisor.log"
UNKNOWN = JobId("vn9mSrw1-3mJbMh8p-animation")


def told(correlation: Correlation, job_id: JobId) -> tuple[object, ...]:
    """All that a correlation tells."""
    return (
        tuple(correlation.ops()),
        correlation.agents(),
        correlation.ops_of(job_id),
        correlation.unlinked_of(job_id),
        correlation.agent_of(job_id),
        correlation.open_ops(),
        correlation.restarted_ops(job_id),
        correlation.runs_like("animation", None),
        correlation.dropped_ops,
    )


def test_nothing_is_known_before_the_first_record() -> None:
    late = LateCorrelator()
    assert late.feed([]) == set()
    assert told(late, UNKNOWN) == told(Correlator(), UNKNOWN)


def test_it_tells_what_a_correlator_tells() -> None:
    text = CAPTURE.read_bytes()
    newest = Nanos(CAPTURE.stat().st_mtime_ns)
    records = LogParser(source="s", role="supervisor").parse(text, 0, 1, newest).records
    late, soon = LateCorrelator(), Correlator()
    changed = soon.feed(records)
    assert changed
    assert late.feed(iter(records)) == changed
    for job_id in changed:
        assert told(late, job_id) == told(soon, job_id)
