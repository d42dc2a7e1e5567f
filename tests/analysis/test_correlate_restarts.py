"""What a restart ends: what the supervisor before held, in whatever log; nothing of another installation."""

import pytest

from jobtui.analysis.correlate import Correlator
from jobtui.model.ids import JobId
from jobtui.model.ops import OpStatus
from tests.analysis.lines import JID, RUN_DIR, Log, begun, created, job, message, sent, steps_of, the_op

RESTART = "default_command> ip=127.0.0.1 port=8001"
OTHER_RUN_DIR = "/srv/sirepo/alpha/user/aB3dE6gH/myapp/xY7zW9vU/animation"
OTHER_JID = JobId("aB3dE6gH-xY7zW9vU-animation")
NEXT_RUN_DIR = RUN_DIR.replace("HrCJ26rQ", "4u2Pj0fB")
LOG, OLD_LOG = "/var/log/supervisor.log", "/var/log/supervisor.log.1"


def test_it_ends_nothing_of_another_database_whose_log_lies_beside_it() -> None:
    correlator = Correlator()
    agent = "LocalDriver(a=Zz9q k=parallel u=aB3d [])"
    begun_there = (created("run", "wxyz", OTHER_RUN_DIR), sent("run", "wxyz", agent, OTHER_RUN_DIR))
    Log("/var/log/alpha.log").feed(correlator, begun_there)
    changed = Log("/var/log/prod.log", seconds=60).feed(correlator, [*begun(), RESTART])
    assert changed == {JID}
    assert status_of(correlator, OTHER_JID) is OpStatus.SENT
    assert status_of(correlator, JID) is OpStatus.LOST


def status_of(correlator: Correlator, jid: JobId) -> OpStatus:
    (op,) = correlator.ops_of(jid)
    return op.status


def test_it_ends_nothing_of_a_supervisor_of_which_nothing_tells_that_it_was_the_one_before() -> None:
    correlator = Correlator()
    Log(OLD_LOG).feed(correlator, begun())
    Log(LOG, seconds=60).feed(correlator, [RESTART, "f> no run directory is named yet"])
    assert the_op(correlator).status is OpStatus.SENT


@pytest.mark.parametrize("name", ["/collected/v2/supervisor.log", "ssh://v2", "local"])
def test_it_ends_nothing_of_another_place_that_has_its_database_at_the_same_path(name: str) -> None:
    correlator = Correlator()
    Log(name).feed(correlator, begun())
    Log("/collected/v1/supervisor.log", seconds=60).feed(
        correlator, [RESTART, *begun("run", "next", NEXT_RUN_DIR)]
    )
    assert status_of(correlator, JID) is OpStatus.SENT


@pytest.mark.parametrize("root_is_known", [True, False])
def test_it_ends_what_stands_in_the_log_that_was_rotated_away(root_is_known: bool) -> None:
    correlator = Correlator()
    Log(OLD_LOG).feed(correlator, begun())
    log = Log(LOG, seconds=60)
    following = begun("run", "next", NEXT_RUN_DIR)
    changed = log.feed(correlator, [*following, RESTART] if root_is_known else [RESTART, *following])
    assert JID in changed
    (op,) = correlator.ops_of(JID)
    assert (op.status, steps_of(op)[-1]) == (OpStatus.LOST, "supervisor restarted")
    (next_op,) = correlator.ops_of(JobId(JID.replace("HrCJ26rQ", "4u2Pj0fB")))
    assert next_op.status is (OpStatus.LOST if root_is_known else OpStatus.SENT)


def test_it_ends_nothing_that_was_made_after_it() -> None:
    correlator = Correlator()
    Log(OLD_LOG, seconds=120).feed(correlator, begun())
    Log(LOG, seconds=60).feed(correlator, [RESTART, *begun("run", "next", NEXT_RUN_DIR)])
    assert status_of(correlator, JID) is OpStatus.SENT


def test_a_log_that_has_gone_on_since_is_of_another_supervisor() -> None:
    correlator = Correlator()
    other = Log("/var/log/other.log")
    other.feed(correlator, begun())
    Log("/var/log/supervisor.log", seconds=1).feed(correlator, [*begun("run", "next", NEXT_RUN_DIR)])
    other.feed(correlator, [f"new status=running {job()}"])
    Log("/var/log/third.log", seconds=1).feed(
        correlator, [RESTART, *begun("run", "last", NEXT_RUN_DIR.replace("4u2P", "5u2P"))]
    )
    assert status_of(correlator, JID) is OpStatus.SENT


def test_what_was_taken_for_lost_is_open_again_when_its_log_goes_on() -> None:
    correlator = Correlator()
    other = Log("/var/log/other.log")
    other.feed(correlator, begun())
    Log(LOG, seconds=5).feed(correlator, [*begun("run", "next", NEXT_RUN_DIR), RESTART])
    assert status_of(correlator, JID) is OpStatus.LOST
    other.feed(correlator, ["f> x"] * 30)
    changed = other.feed(correlator, [message("ok", "abcd")])
    assert changed == {JID}
    (op,) = correlator.ops_of(JID)
    assert (op.status, op.replies) == (OpStatus.REPLIED, 1)
    assert "supervisor restarted" not in steps_of(op)


def test_what_is_open_again_is_news_though_the_line_is_about_another_job() -> None:
    correlator = Correlator()
    other = Log("/var/log/other.log")
    other.feed(correlator, begun())
    Log(LOG, seconds=5).feed(correlator, [*begun("run", "next", NEXT_RUN_DIR), RESTART])
    other.feed(correlator, ["f> x"] * 30)
    third = RUN_DIR.replace("HrCJ26rQ", "7u2Pj0fB")
    changed = other.feed(correlator, begun("run", "more", third))
    assert JID in changed
    assert status_of(correlator, JID) is OpStatus.SENT
    assert other.feed(correlator, [RESTART]) >= {JID}
    assert status_of(correlator, JID) is OpStatus.LOST
