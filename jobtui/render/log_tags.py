"""Short names of sources in front of lines where lines of several are mixed, each in a style of its own."""

import re
from collections.abc import Mapping

from jobtui.render.spans import Span
from jobtui.render.text import fit, show, width

STYLES = tuple(f"source.{number}" for number in range(5))
"""Styles of sources, in the order in which they are first seen; then again from the first."""
_PREFIX = "sirepo_job_"
_CONTAINER = re.compile(r"srj-(?P<kind>[sp])-(?P<user>\w{1,4})\w*(?P<instance>\.\w+)?", re.ASCII)


def stream_label(name: str) -> str:
    """A stream of a journal in few cells: `supervisor@v3`, `p-VUlh@v7`; safe to show."""
    stream, at, host = name.rpartition("@")
    if not at or "/" in name:
        return show(name)
    if found := _CONTAINER.fullmatch(stream):
        return show(f"{found['kind']}-{found['user']}{found['instance'] or ''}@{host}")
    return show(f"{stream.removeprefix(_PREFIX)}@{host}")


class Tags:
    """The tags of sources: `labels` for those known by now, `most` cells wide at most."""

    def __init__(self, labels: Mapping[str, str], most: int) -> None:
        self._labels = dict(labels)
        widest = max((width(label) for label in labels.values()), default=most)
        self._cells = min(most, widest)
        self._tags: dict[str, Span] = {}

    def of(self, origin: str) -> Span:
        """The tag of a source, with a blank behind it. A source that is not known gets one, too."""
        tag = self._tags.get(origin)
        if tag is None:
            label = self._labels.get(origin) or stream_label(origin)
            # What is cut off is not marked: there are cells for few letters
            text = fit(label, self._cells, ellipsis="") + " "
            tag = self._tags[origin] = Span(text, STYLES[len(self._tags) % len(STYLES)])
        return tag
