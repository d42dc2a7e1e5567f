"""What Slurm's commands say when something is wrong, and what a person can do about it: one line for each."""

from collections.abc import Sequence

from jobtui.backends.base import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.backends.journal.faults import Fault


class NoAccounting(SourceError):
    """The cluster keeps no account of its jobs."""


SLURM: Sequence[Fault] = (
    Fault(
        r"accounting storage is disabled",
        NoAccounting,
        "this cluster keeps no account of its jobs",
    ),
    Fault(
        r"(?P<what>squeue|sacct|scontrol)\b.*(?:not found|No such file)",
        SourceMissing,
        "there is no {what}{there}; install Slurm's client commands, or name a host that has them: "
        "--slurm ssh://HOST",
    ),
    Fault(
        r"Could not establish a configuration source|Unable to process configuration|slurm\.conf",
        SourceMissing,
        "Slurm's commands find no configuration{there}; set SLURM_CONF to the cluster's slurm.conf",
    ),
    Fault(
        r"slurmdbd|database|Problem talking to",
        SourceUnreachable,
        "accounting does not answer; check slurmdbd: sacctmgr show cluster",
    ),
    Fault(
        r"Unable to contact slurm controller",
        SourceUnreachable,
        "slurmctld does not answer; check that it runs: scontrol ping",
    ),
    Fault(
        r"Socket timed out|Connection timed out",
        SourceUnreachable,
        "slurmctld took too long to answer: it is overloaded, or hangs; see: sdiag",
    ),
    Fault(
        r"[Mm]unge|authentication|Zero Bytes were transmitted",
        SourceDenied,
        "Slurm does not take the credentials of this machine; check munged and the clock: munge -n | unmunge",
    ),
    Fault(
        r"Access/permission denied|Permission denied$|not authorized",
        SourceDenied,
        "{user} may not ask Slurm{there}; have an administrator allow it",
    ),
    Fault(
        r"Incompatible versions|Protocol version|Unexpected message",
        SourceError,
        "Slurm's commands{there} are of another release than slurmctld; use those of the cluster",
    ),
    Fault(
        r"Connection refused|Unable to connect|No route to host|Connection reset",
        SourceUnreachable,
        "slurmctld cannot be reached; check that it runs: scontrol ping",
    ),
)
"""In the order in which they are tried."""

INVALID_JOB = r"Invalid job id"
"""What scontrol says of a job that slurmctld has let go of."""

NO_JSON = r"unrecognized option|invalid option|Try .*--help|serializer|json.*not (?:found|supported)"
"""What commands say that cannot write JSON: they are older, or were built without it."""
