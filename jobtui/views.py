"""Saved views: filter, order and columns of the jobs under a name, for each profile.

They are in a file of their own, so that a configuration file written by hand is never rewritten. Only `save`
and `forget` write the file: for its owner only, and as a whole.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple

from jobtui.model.numbers import read_json
from jobtui.model.tables import home_of
from jobtui.transport.files import read_small

FILE_NAME = "views.json"
START = "start"
"""The view that the dashboard begins with if it was saved."""
LARGEST = 1_000_000
"""A larger file, in bytes, is not ours."""
MOST = 200
"""The most views of a profile."""


class ViewsError(Exception):
    """The views cannot be read or written. The text is one line that says why."""


class View(NamedTuple):
    filter: str = ""
    sort: str | None = None
    reverse: bool = False
    columns: tuple[str, ...] = ()


class Views:
    """The views of one profile, read again at each use, as another jobtui may write them too."""

    def __init__(self, path: Path | None = None, profile: str | None = None) -> None:
        self.path = path or Path(home_of("CONFIG"), "jobtui", FILE_NAME)
        self._profile = profile or ""

    def names(self) -> list[str]:
        """The saved names. Raises ViewsError."""
        return sorted(self._own(self._read()))

    def get(self, name: str) -> View | None:
        """The view saved under a name. Raises ViewsError."""
        found = self._own(self._read()).get(name)
        if not isinstance(found, dict):
            return None
        # What is not of the right kind is left out; `reason` was `waits` before
        text, sort, columns = found.get("filter"), found.get("sort"), found.get("columns")
        known = columns if isinstance(columns, list) else ()
        return View(
            text if isinstance(text, str) else "",
            sort if isinstance(sort, str) else None,
            found.get("reverse") is True,
            tuple("reason" if key == "waits" else key for key in known if isinstance(key, str)),
        )

    def save(self, name: str, view: View) -> None:
        """Save a view. Raises ViewsError."""
        document = self._read()
        own = {**self._own(document), name: view._asdict()}
        if len(own) > MOST:
            raise ViewsError(f"{MOST} views are saved already; remove one with :forget")
        self._write({**document, self._profile: own})

    def forget(self, name: str) -> bool:
        """Delete a view. True if there was one. Raises ViewsError."""
        document = self._read()
        own = self._own(document)
        if name not in own:
            return False
        self._write({**document, self._profile: {key: own[key] for key in own if key != name}})
        return True

    def _own(self, document: Mapping[str, object]) -> dict[str, object]:
        own = document.get(self._profile, {})
        return own if isinstance(own, dict) else {}

    def _read(self) -> dict[str, object]:
        try:
            text = read_small(self.path, LARGEST)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ViewsError(f"{self.path}: cannot be read: {error.strerror}") from error

        try:
            document = read_json(text)
        except (ValueError, RecursionError) as error:
            raise ViewsError(f"{self.path}: no views in it: {error}") from error
        if not isinstance(document, dict):
            raise ViewsError(f"{self.path}: no views in it")
        return document

    def _write(self, document: Mapping[str, object]) -> None:
        if os.environ.get("TEXTUAL_DRIVER"):
            raise ViewsError("a dashboard in a browser is read-only: save views in a terminal")
        import json

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # NamedTemporaryFile makes files that only their owner may read
            with NamedTemporaryFile("w", dir=self.path.parent, delete=False) as file:
                json.dump(document, file, indent=1)
            os.replace(file.name, self.path)
        except OSError as error:
            raise ViewsError(f"{self.path}: cannot be written: {error.strerror}") from error
