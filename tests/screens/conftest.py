"""What a dashboard leaves running ends with its process: with the test here."""

from collections.abc import Iterator
from functools import wraps
from typing import Any

import pytest

from jobtui.transport.watch import DirectoryWatch, Watch
from jobtui.transport.worker import Worker


@pytest.fixture(autouse=True)
def nothing_goes_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close all watches of files and directories, of which a user has but 128, and let all threads go."""
    made: list[DirectoryWatch | Watch | Worker] = []
    for kind in (DirectoryWatch, Watch, Worker):
        _note(monkeypatch, kind, made)
    yield
    for each in made:
        each.close()


def _note(monkeypatch: pytest.MonkeyPatch, kind: Any, made: list[Any]) -> None:
    begin = kind.__init__

    @wraps(begin)
    def noting(self: Any, *arguments: Any, **named: Any) -> None:
        begin(self, *arguments, **named)
        made.append(self)

    monkeypatch.setattr(kind, "__init__", noting)
