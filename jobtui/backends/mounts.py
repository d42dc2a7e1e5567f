"""On which kind of file system a directory lies, and whether the kernel tells of changes made there."""

import os
import re
from pathlib import Path

MOUNTINFO = Path("/proc/self/mountinfo")

SILENT = frozenset(
    {
        *(
            "nfs",
            "nfs4",
            "cifs",
            "smb3",
            "smbfs",
            "afs",
            "ncpfs",
            "coda",
            "9p",
            "virtiofs",
            "vboxsf",
            "prl_fs",
        ),
        *("lustre", "gpfs", "beegfs", "ceph", "glusterfs", "gfs2", "ocfs2", "orangefs", "pvfs2", "panfs"),
        *("wekafs", "fuse", "davfs", "sshfs", "ecryptfs"),
    }
)
"""File systems another machine may write to without this kernel noticing; so may any named `fuse.*`."""


def silent_file_system(directory: str) -> str | None:
    """The kind of a file system that may change unnoticed by this kernel; None where changes are told of."""
    try:
        text = MOUNTINFO.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    kind = file_system_of(os.path.realpath(directory), text)
    return kind if kind is not None and (kind in SILENT or kind.startswith("fuse.")) else None


def file_system_of(path: str, mountinfo: str) -> str | None:
    """The file system kind of the mount that holds an absolute path, by proc_pid_mountinfo(5)."""
    best, kind = "", None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if len(fields) < 5 or not kinds[0]:
            continue
        point = _unescaped(fields[4])
        # Mounted later on the same point hides what was there, so equal length wins.
        if len(point) >= len(best) and (path == point or path.startswith(point.rstrip("/") + "/")):
            best, kind = point, kinds[0]
    return kind


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
