"""Where files of a cluster can be reached from here: mounted, at the same path, or over ssh.

A path over ssh is written as an address, `ssh://cori/scratch/...`; who reads it takes it apart again.
"""

import posixpath
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import quote

from jobtui.analysis.agent_logs import spec_of_host

SSH = "ssh://"


class Reach(NamedTuple):
    """How clusters can be reached: `mounts` are directories here by those there, `hosts` journals by host."""

    mounts: Mapping[str, str] = {}
    hosts: Mapping[str, str] = {}


def reached(path: str, host: str | None, reach: Reach) -> Iterator[str]:
    """The places at which a path on a cluster may be read, likeliest first."""
    if not posixpath.isabs(path) or "\0" in path:
        return
    path = posixpath.normpath(path)
    for there in sorted(reach.mounts, key=len, reverse=True):
        root = posixpath.normpath(there)
        if path == root or path.startswith(f"{root.rstrip('/')}/"):
            yield posixpath.join(reach.mounts[there], posixpath.relpath(path, root))
    yield path
    spec = spec_of_host(host, reach.hosts) if host else None
    if spec is not None and spec.startswith(SSH):
        yield f"{SSH}{spec.removeprefix(SSH).partition('/')[0]}{quote(path)}"
