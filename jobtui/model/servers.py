"""What tells several servers of one system apart: a short label for each address, and who is meant by one.

Only where there are several do ids carry a label: `balsam@host/12`.
"""

import re
from collections.abc import Collection, Iterator, Mapping

from jobtui.model.ids import JobId, Numbered, numbered, system_job_id

_ADDRESS = re.compile(r"[\d.]+|.*:.*")
_UNFIT = re.compile(r"[^A-Za-z0-9.:-]+")


def labels_of(urls: Collection[str]) -> Mapping[str, str]:
    """A label for each address, the shortest by which all differ; "" where there is but one."""
    distinct = tuple(dict.fromkeys(urls))
    if len(distinct) < 2:
        return dict.fromkeys(distinct, "")
    by_form = list(zip(*map(_forms, distinct), strict=True))
    for labels in by_form:
        if len(set(labels)) == len(distinct):
            return dict(zip(distinct, labels, strict=True))
    return {
        url: f"{label}-{number}"
        for number, (url, label) in enumerate(zip(distinct, by_form[-1], strict=True), 1)
    }


def answers_to(url: str, label: str) -> bool:
    """Whether the server at an address may be called so, whatever others there are."""
    return label in _forms(url)


def _forms(url: str) -> tuple[str, ...]:
    """What an address may be called, shortest first: by its host's own name, its host, its port, its path."""
    return tuple(_UNFIT.sub("-", form).strip("-") for form in _raw_forms(url))


def _raw_forms(url: str) -> Iterator[str]:
    from urllib.parse import urlsplit  # few have several servers

    parts = urlsplit(url)
    host = parts.hostname or ""
    yield host if _ADDRESS.fullmatch(host) else host.partition(".")[0]
    yield host
    place = parts.netloc.rpartition("@")[2]
    yield place
    yield f"{place}{parts.path}"
    yield f"{parts.scheme}:{place}{parts.path}"


def meant_by(thing: str, servers: Mapping[str, str], system: str) -> list[JobId]:
    """The ids that a job's id may mean, of the servers that can have it; itself where none can.

    `servers` gives the label of each address. `balsam/12` and `balsam@host/12` are both taken, whichever is
    the one that is shown.
    """
    parts = numbered(thing)
    if parts is None or parts.system != system:
        return [JobId(thing)]
    return [
        system_job_id(named(system, label), parts.number)
        for url, label in servers.items()
        if _may_be(parts, url, label)
    ] or [JobId(thing)]


def _may_be(parts: Numbered, url: str, label: str) -> bool:
    return not parts.label or parts.label == label or answers_to(url, parts.label)


def named(system: str, label: str) -> str:
    """What the ids of a server's jobs begin with: `balsam`, `balsam@host`."""
    return f"{system}@{label}" if label else system
