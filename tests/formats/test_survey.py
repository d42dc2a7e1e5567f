"""How much of a log is understood: captures wholly, new messages not, nothing that names a job unknown."""

import re
from pathlib import Path

import pytest

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


FORWARDED = "sirepo/job_driver/docker.py:483:_write srj-s-VUlhaMOD "
CMD = "x.py:1:f _Cmd(a=dj5k jid=DJouDZ9T-8ll2VWdK-heightWeightReport o=hF8y job_cmd=compute run_dir=/srv/x)"
COUNTED = {
    "nothing": ("", Survey(0, 0, 0, 0, ())),
    "lines, of which some are records": (
        f"{INNER}sirepo/job_supervisor.py:1:reply_get _Op(run, 5N6c) await _reply_q.get()\n"
        "web.py:2591:log_request INFO:tornado.access:200 POST /job-api-ping (127.0.0.1) 789.34ms\r\n"
        f"{SITE}frobnicated\n"
        "Traceback (most recent call last):\n"
        "  File x\n",
        Survey(5, 3, 2, 1, ("frobnicated",)),
    ),
    "what a container printed, by its own lines": (
        f"{FORWARDED}set -e\n"
        f'{FORWARDED}"{INNER}{SITE}frobnicated{INNER}sirepo/pkcli/job_agent.py:111:start start_delay=3\n',
        Survey(2, 2, 1, 1, ("frobnicated",)),
    ),
}


@pytest.mark.parametrize("about", COUNTED)
def test_what_is_known_is_counted(about: str) -> None:
    text, counts = COUNTED[about]
    assert surveyed(text) == counts
    assert surveyed(text).unknown_share == (counts.unknown / counts.records if counts.records else 0.0)


@pytest.mark.parametrize(
    ("line", "unknown"),
    [
        (f"{FORWARDED}{INNER}sirepo/pkcli/job_agent.py:487:_op opName=run o=S8", 0),  # it may be cut
        (f"{CMD} exit=0 stderr=", 0),
        (f"{CMD} frobnicated", 1),  # only a catch-all takes it
    ],
)
def test_what_is_news(line: str, unknown: int) -> None:
    assert surveyed(f"{line}\n").unknown == unknown


def test_examples_are_few_short_and_of_different_places() -> None:
    lines = [f"x.py:1:f{number} frobnicated {'x' * 1_000}\n" * 3 for number in range(EXAMPLES_KEPT + 3)]
    found = surveyed("".join(lines))
    assert found.unknown == 3 * len(lines)
    assert len(found.examples) == EXAMPLES_KEPT
    assert {len(example) for example in found.examples} == {EXAMPLE_LENGTH}
