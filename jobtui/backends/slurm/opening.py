"""The cluster that a setting names."""

from jobtui.backends.slurm.commands import Commands
from jobtui.backends.slurm.source import Slurm
from jobtui.model.clock import Nanos
from jobtui.model.specs import SourceSpec


def open_slurm(spec: SourceSpec, since: Nanos | None) -> Slurm:
    """The source. Nothing is run before it is polled."""
    return Slurm(Commands(spec.target), label=spec.label, since=since)
