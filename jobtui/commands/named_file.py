"""A file that is named instead of a job or trace: what it tells of."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from jobtui.backends.base import Source
from jobtui.commands.reading import Reader
from jobtui.model.ids import JobId

if TYPE_CHECKING:
    from jobtui.analysis.find import Candidate

LONGEST_NAME = 4_096


def file_named(text: str) -> Path | None:
    """The file that a text names, None when it names none."""
    if not text or len(text) > LONGEST_NAME or "\n" in text or "\0" in text:
        return None
    path = Path(os.path.expanduser(text))
    try:
        return path if path.is_file() else None
    except OSError:
        return None


async def read_too(reader: Reader, source: Source) -> None:
    """Read one more source, unless it is read already."""
    if any(known.name == source.name and known.kind == source.kind for known in reader.session.sources):
        return
    reader.session.add(source)
    await reader.watched(reader.session.catch_up([source.kind]))


async def told_in_file(reader: Reader, text: str) -> "tuple[Candidate, ...]":
    """The jobs and traces that a file tells of; none when the text names no file, or one without any."""
    path = file_named(text)
    if path is None:
        return ()
    from jobtui.analysis.find import Candidate
    from jobtui.backends.condor_files import CondorFile  # few name a file

    await read_too(reader, CondorFile(path))
    store, why = reader.session.store, f"{path.name} tells of it"
    jobs = store.jobs_told_in(str(path))
    found = [Candidate("job", job, 0.95 if len(jobs) == 1 else 0.6, why, JobId(job)) for job in jobs]
    traces = store.traces_named_in(str(path))
    found += [Candidate("trace", trace, 0.85 if len(traces) == 1 else 0.5, why) for trace in traces]
    return tuple(found)
