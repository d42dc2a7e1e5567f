"""A letter and a number for each service, in order of first appearance: they stay the same for a session."""

import re
from collections.abc import Iterable, Iterator
from string import ascii_lowercase, ascii_uppercase, digits
from typing import NamedTuple

MOST = 1_000
"""Services told from each other."""
OTHER = "·"
"""The sign of those for which no letter is left."""


class ServiceMark(NamedTuple):
    """By what a service is known: one cell, and a number for its colour."""

    letter: str
    number: int


class ServiceMarks:
    """The marks of the services seen so far."""

    def __init__(self) -> None:
        self._marks: dict[str, ServiceMark] = {}
        self._taken: set[str] = set()

    def meet(self, services: Iterable[str]) -> None:
        """Give marks to services, in this order."""
        for service in services:
            self.of(service)

    def of(self, service: str) -> ServiceMark:
        """The mark of a service."""
        mark = self._marks.get(service)
        if mark is None:
            letter = next((one for one in _letters(service) if one not in self._taken), OTHER)
            mark = ServiceMark(letter, len(self._marks))
            if len(self._marks) < MOST:
                self._taken.add(letter)
                self._marks[service] = mark
        return mark


def _letters(service: str) -> Iterator[str]:
    """The letters that may stand for a service: its first, those its last words begin with, its others, any.

    The first words are the same in many a name: sirepo-server is S, sirepo-agent A, worker-1 is 1.
    """
    words = re.findall("[0-9A-Za-z]+", service)
    name = "".join([*(word[0] for word in (*words[:1], *words[:0:-1])), *(word[1:] for word in words[::-1])])
    yield from name.upper()
    yield from name.lower()
    yield from ascii_uppercase + ascii_lowercase + digits
