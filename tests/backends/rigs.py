"""What the contract of a source is tested with: for each backend a system that does what a test wants."""

from pathlib import Path
from typing import Protocol

from jobtui.backends.base import Batch, Source
from jobtui.backends.sirepo_db import SirepoDb
from tests.backends.db_files import Db, jid


class Rig(Protocol):
    """The system behind one kind of source. `keys` says which of its records a batch holds."""

    def source(self) -> Source:
        """A new source that reads the system."""
        ...

    def add(self) -> str:
        """Let the system write one more record; its key."""
        ...

    def tear(self) -> None:
        """Let there be one record that makes no sense."""
        ...

    def mend(self) -> str:
        """Let that record make sense; its key."""
        ...

    def go_away(self) -> None:
        """Let the system as a whole be gone."""
        ...

    def come_back(self) -> None:
        """Let it be there again, as it was."""
        ...

    def keys(self, batch: Batch) -> list[str]:
        """The keys of the records in a batch."""
        ...


class SirepoDbRig:
    """A supervisor's db directory."""

    def __init__(self, folder: Path) -> None:
        self._db = Db(folder / "db")
        self._away = folder / "away"
        self._written = 0
        self._torn = jid(999)

    def source(self) -> Source:
        return SirepoDb(self._db.root, batch_files=2)

    def add(self) -> str:
        self._written += 1
        return self._db.put(jid(self._written))

    def tear(self) -> None:
        self._db.put_bytes(self._torn, b'{"status": "runn')

    def mend(self) -> str:
        return self._db.put(self._torn)

    def go_away(self) -> None:
        self._db.root.rename(self._away)

    def come_back(self) -> None:
        self._away.rename(self._db.root)

    def keys(self, batch: Batch) -> list[str]:
        return [job.id for job in batch.jobs]


RIGS: tuple[type[SirepoDbRig], ...] = (SirepoDbRig,)
"""Every backend that the contract is tested on: a class made from a folder of its own."""
