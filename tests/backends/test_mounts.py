"""On which file systems changes are not told of."""

from pathlib import Path

import pytest

from jobtui.backends import mounts
from jobtui.backends.mounts import file_system_of, silent_file_system

MOUNTINFO = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:21 / /proc rw,nosuid - proc proc rw
30 22 0:40 / /srv/sirepo rw,relatime shared:5 - nfs4 store:/sirepo rw,vers=4.2
31 30 0:41 / /srv/sirepo/local rw - xfs /dev/vdb rw
32 22 0:42 / /home/me/far\040away rw - fuse.sshfs me@host: rw
33 22 0:43 / /mnt rw - ext4 /dev/vdc rw
34 33 0:44 / /mnt rw - lustre mgs:/scratch rw
35 22 0:45 / /win rw - fuseblk /dev/sdb1 rw
garbage
36 22 0:46 - no
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/etc", "ext4"),
        ("/srv/sirepo", "nfs4"),
        ("/srv/sirepo/db", "nfs4"),
        ("/srv/sirepo/local/db", "xfs"),
        ("/srv/sirepolocal", "ext4"),
        ("/home/me/far away/db", "fuse.sshfs"),
        ("/mnt/scratch", "lustre"),
        ("/proc/1", "proc"),
    ],
)
def test_the_mount_that_holds_a_path(path: str, kind: str) -> None:
    assert file_system_of(path, MOUNTINFO) == kind


def test_nothing_mounted_is_nothing_known() -> None:
    assert file_system_of("/", "") is None


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/sirepo/db", "nfs4"),
        ("/home/me/far away", "fuse.sshfs"),
        ("/mnt/x", "lustre"),
        ("/srv/sirepo/local", None),
        ("/win", None),
        ("/tmp", None),
    ],
)
def test_which_file_systems_are_silent(
    path: str, kind: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mountinfo").write_text(MOUNTINFO)
    monkeypatch.setattr(mounts, "MOUNTINFO", tmp_path / "mountinfo")
    assert silent_file_system(path) == kind


def test_where_mounts_are_not_told_of_notification_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounts, "MOUNTINFO", tmp_path / "none")
    assert silent_file_system("/") is None


def test_a_link_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "near").symlink_to(tmp_path / "far")
    (tmp_path / "mountinfo").write_text(
        f"1 0 0:1 / / rw - ext4 a rw\n2 1 0:2 / {tmp_path / 'far'} rw - nfs b rw\n"
    )
    monkeypatch.setattr(mounts, "MOUNTINFO", tmp_path / "mountinfo")
    assert silent_file_system(str(tmp_path / "near")) == "nfs"
