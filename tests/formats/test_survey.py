"""How much of a log is understood: captures wholly, new messages not, nothing that names a job unknown."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.formats.parser import EXAMPLE_LENGTH, EXAMPLES_KEPT, Survey, survey
from tests.formats.captures import CAPTURES, LOGS
from tests.offenders import check_all

UNKNOWN_SHARE = 0.01
SITE = "sirepo/frob.py:1:_frob "
INNER = "Nov 20 20:49:21 10038     0 "


def surveyed(text: str) -> Survey:
    return survey(text.encode().splitlines(keepends=True))


def test_captures_are_known() -> None:
    def check(path: Path) -> None:
        with path.open("rb") as lines:
            found = survey(lines)
        assert found.lines == len(path.read_bytes().splitlines())
        assert found.records > 0
        assert found.unknown_share < UNKNOWN_SHARE, found.examples

    check_all(check, LOGS)


NAMES_A_JOB = re.compile(rb"[A-Za-z0-9]{8}-[A-Za-z0-9]{8}-\w+|/user/[A-Za-z0-9]{8}/\w+/[A-Za-z0-9]{8}/\w+")


@pytest.mark.parametrize("capture", ["docker-agents-never-start", "legacy-2020"])
def test_every_line_that_names_a_job_is_known(capture: str) -> None:
    paths = sorted((CAPTURES / capture).glob("*.log"))
    lines = [line for path in paths for line in path.read_bytes().splitlines() if NAMES_A_JOB.search(line)]
    assert lines
    found = survey(lines)
    assert (found.unknown, found.examples) == (0, ())


def test_counts_are_of_lines() -> None:
    text = (
        f"{INNER}sirepo/job_supervisor.py:1:reply_get _Op(run, 5N6c) await _reply_q.get()\n"
        "web.py:2591:log_request INFO:tornado.access:200 POST /job-api-ping (127.0.0.1) 789.34ms\r\n"
        f"{SITE}frobnicated\n"
        "Traceback (most recent call last):\n"
        "  File x\n"
    )
    assert surveyed(text) == Survey(5, 3, 2, 1, ("frobnicated",))
    assert surveyed(text).unknown_share == pytest.approx(1 / 3)


def test_nothing_has_no_share() -> None:
    assert surveyed("") == Survey(0, 0, 0, 0, ())
    assert surveyed("").unknown_share == 0.0


def test_examples_are_few_short_and_of_different_places() -> None:
    lines = [f"x.py:1:f{number} frobnicated {'x' * 1_000}\n" * 3 for number in range(EXAMPLES_KEPT + 3)]
    found = surveyed("".join(lines))
    assert found.unknown == 3 * len(lines)
    assert len(found.examples) == EXAMPLES_KEPT
    assert {len(example) for example in found.examples} == {EXAMPLE_LENGTH}


FORWARDED = "sirepo/job_driver/docker.py:483:_write srj-s-VUlhaMOD "


def test_what_a_container_printed_counts_by_its_own_lines() -> None:
    text = (
        f"{FORWARDED}set -e\n"
        f'{FORWARDED}"{INNER}{SITE}frobnicated{INNER}sirepo/pkcli/job_agent.py:111:start start_delay=3\n'
    )
    assert surveyed(text) == Survey(2, 2, 1, 1, ("frobnicated",))


def test_a_line_that_may_be_cut_is_no_news() -> None:
    assert surveyed(f"{FORWARDED}{INNER}sirepo/pkcli/job_agent.py:487:_op opName=run o=S8\n").unknown == 0


def test_a_message_that_only_a_catch_all_takes_is_news() -> None:
    cmd = "_Cmd(a=dj5k jid=DJouDZ9T-8ll2VWdK-heightWeightReport o=hF8y job_cmd=compute run_dir=/srv/x)"
    assert surveyed(f"x.py:1:f {cmd} exit=0 stderr=\n").unknown == 0
    assert surveyed(f"x.py:1:f {cmd} frobnicated\n").unknown == 1


@given(st.lists(st.binary(max_size=120), max_size=20))
def test_no_bytes_raise(lines: list[bytes]) -> None:
    found = survey(lines)
    assert found.lines == len(lines)
    assert found.unknown <= found.records
