"""What files say of jobs of HTCondor and jobsub, piece by piece: events, job ads, lines of a job's output.

A fact is what one place of one file says. What became of a job is made of all of its facts
(`model.condor_life`). Attributes have the names of HTCondor's job ads and events
(https://htcondor.readthedocs.io/en/latest/classad-attributes/job-classad-attributes.html).
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from jobtui.model.clock import Nanos


class Teller(StrEnum):
    """What kind of text a fact was read in, the one that knows best first."""

    EVENT = "event"
    AD = "ad"
    OUTPUT = "output"
    SUBMIT = "submit"

    @property
    def rank(self) -> int:
        """0 for the one that knows best."""
        return _RANK[self]


_RANK = {teller: rank for rank, teller in enumerate(Teller)}


class CondorFact(msgspec.Struct, frozen=True, gc=False):
    """One thing that a file says of a job.

    `job` is `<cluster>.<proc>@<schedd>`, without the schedd where the file does not tell, "" where it names
    no job. `what` is the name of an event, or the shape of a line. With `is_local` the time was written
    without a zone, and `at` is what it would be in UTC. `values` are attributes as texts. `text` is as
    written: not masked, not safe for a terminal. `rotation` counts the logs that had this name before.
    """

    job: str
    teller: Teller
    what: str
    at: Nanos | None
    text: str
    source: str
    line: int
    offset: int
    values: Mapping[str, str] = {}
    is_local: bool = False
    rotation: int = 0
