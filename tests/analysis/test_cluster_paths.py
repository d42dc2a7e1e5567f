"""Where files of a cluster can be reached: mounts by the longest prefix, the same path, ssh."""

import pytest

from jobtui.analysis.cluster_paths import Reach, reached
from jobtui.analysis.run_dirs import run_dirs_of
from jobtui.model.ids import JobId, RunDir
from tests.builders import a_job, an_op

PATH = "/scratch/jdoe/sirepo/user/3pMDuIiL/myapp/3pMDuIiL-e1oQ9PPU-animation"
REACH = Reach(
    {"/scratch": "/mnt/cori", "/scratch/jdoe": "/home/jdoe/cori", "/scratch/j": "/no"},
    {"cori": "ssh://op@cori:22", "v3": "http://v3:19531"},
)


def test_mounts_come_first_and_the_longest_of_them() -> None:
    tail = "sirepo/user/3pMDuIiL/myapp/3pMDuIiL-e1oQ9PPU-animation"
    assert list(reached(PATH, "cori.example.org", REACH)) == [
        f"/home/jdoe/cori/{tail}",
        f"/mnt/cori/jdoe/{tail}",
        PATH,
        f"ssh://op@cori:22{PATH}",
    ]


def test_without_mounts_and_ssh_there_is_the_path_itself() -> None:
    assert list(reached(PATH, None, Reach())) == [PATH]
    assert list(reached(PATH, "v3", REACH))[-1] == PATH
    assert list(reached("/scratch", None, REACH)) == ["/mnt/cori/.", "/scratch"]


@pytest.mark.parametrize("path", ["", "relative", "/a\0b"])
def test_what_is_no_path_leads_nowhere(path: str) -> None:
    assert list(reached(path, "cori", REACH)) == []


def test_dots_in_a_path_do_not_lead_out_of_a_mount() -> None:
    assert list(reached("/scratch/../etc", None, Reach({"/scratch": "/mnt"}))) == ["/etc"]


def test_hostile_paths_are_quoted_in_an_address() -> None:
    *_, address = reached("/scratch/a b#c?d@e", "cori", REACH)
    assert address == "ssh://op@cori:22/scratch/a%20b%23c%3Fd%40e"


def test_the_directory_on_the_cluster_comes_before_the_one_of_the_record() -> None:
    jid = JobId("3pMDuIiL-e1oQ9PPU-animation")
    local = RunDir("/srv/db/user/3pMDuIiL/myapp/e1oQ9PPU/animation")
    ops = [an_op(jid=jid, run_dir=local, sent_dir=RunDir(PATH))]
    assert run_dirs_of(a_job(id=jid, mode="sbatch"), None, ops) == (PATH, local)
    elsewhere = [an_op(jid=jid, run_dir=local, sent_dir=RunDir("/etc"))]
    assert run_dirs_of(a_job(id=jid, mode="sbatch"), None, elsewhere) == (local,)
