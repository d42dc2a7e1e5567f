"""How much of a log is understood: captures wholly, new messages not, nothing that names a job unknown."""

import re

import pytest

from jobtui.formats.parser import EXAMPLE_LENGTH, EXAMPLES_KEPT, Survey, survey
from tests.formats.captures import CAPTURES

INNER = "Nov 20 20:49:21 10038     0 "


def surveyed(text: str) -> Survey:
    return survey(text.encode().splitlines(keepends=True))


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
