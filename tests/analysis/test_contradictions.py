"""Sources that disagree."""

import pytest

from jobtui.analysis.contradictions import contradictions
from jobtui.demo.incidents import INCIDENTS
from jobtui.demo.settings import DriverName
from jobtui.model.clock import SECOND, Nanos
from tests.analysis.captured import CAPTURES, ROOT, expected, logs
from tests.analysis.explain.cases import case_of, played, record_in, written_at

AT_ODDS = {"stale-record"}
"""Incidents that leave a record which nobody sets right."""


@pytest.mark.parametrize("name", INCIDENTS)
def test_only_incidents_that_leave_a_wrong_record_have_any(name: str) -> None:
    for seed in range(5):
        case = played(name, seed, DriverName.LOCAL, 420 if name == "time-limit" else 130).case()
        found = contradictions(case)
        assert bool(found) == (name in AT_ODDS), found
        for one in found:
            assert one.one.source != one.other.source
            assert one.one.at is not None
            assert one.other.at is not None


@pytest.mark.parametrize("capture", CAPTURES)
def test_captures_that_came_to_rest_have_none(capture: str) -> None:
    for jid in expected(capture)["jobs"]:
        detail = record_in(ROOT / capture, jid)
        case = case_of(jid, logs(capture), detail, Nanos(written_at(detail) + 30 * SECOND))
        assert contradictions(case) == ()
