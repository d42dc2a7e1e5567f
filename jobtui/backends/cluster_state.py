"""How a run stands on its cluster, by what the agent there has noted in the run directory."""

import json
from collections.abc import Iterable

from jobtui.model.cluster import STATUS_FILE, sbatch_status
from jobtui.model.job_desk import JobDesk, Noted, Unreadable


async def read_noted(desk: JobDesk, directories: Iterable[str]) -> Noted | None:
    """What is noted in the first of the directories that can be read and has it."""
    for directory in directories:
        try:
            part = await desk.read_file(directory, STATUS_FILE, tail=False)
            status = sbatch_status(json.loads(part.text))
        except (Unreadable, ValueError, RecursionError):
            continue
        if status is not None:
            return Noted(status, directory)
    return None
