"""The document that SArchive makes of a job for Kafka and Elasticsearch.

`{"id", "timestamp", "cluster", "script", "environment"}`, either at the top or, in old indices, under
`jobinfo` with the time as `@timestamp`. The script went through UTF-8 on its way: bytes that are none were
replaced. Of a job of Torque the environment is the scheduler's files, by name.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from jobtui.formats.job_environment import parse_document
from jobtui.model.clock import Nanos
from jobtui.model.scripts import ArchivedScript, Environment, Scheduler

REPLACED = "\ufffd"
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:?\d\d)?", re.ASCII)
_TORQUE_FILE = re.compile(r"\.(?:JB|TA)\Z")


def parse_script(document: object, source: str) -> ArchivedScript | None:
    """The script in a decoded document, None when it is none."""
    if not isinstance(document, Mapping):
        return None
    inner = document.get("jobinfo")
    fields = inner if isinstance(inner, Mapping) else document
    number, script = fields.get("id"), fields.get("script")
    if not isinstance(number, str | int) or isinstance(number, bool) or not isinstance(script, str):
        return None
    time = fields.get("timestamp", document.get("@timestamp"))
    cluster = fields.get("cluster")
    environment, is_torque = _environment(fields.get("environment"))
    return ArchivedScript(
        number=str(number),
        script=script.encode("utf-8", "surrogatepass"),
        source=source,
        cluster=cluster if isinstance(cluster, str) else "",
        scheduler=Scheduler.TORQUE if is_torque else Scheduler.SLURM,
        environment=environment,
        archived_at=parse_time(time) if isinstance(time, str) else None,
        is_lossy=REPLACED in script,
    )


def _environment(value: object) -> tuple[Environment | None, bool]:
    if not isinstance(value, Mapping):
        return None, False
    is_torque = bool(value) and all(_TORQUE_FILE.search(str(name)) for name in value)
    return parse_document(value, is_files=is_torque), is_torque


def parse_time(text: str) -> Nanos | None:
    """A time as RFC 3339 writes it, with up to nine digits of a second; None for what is none."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        return None
    try:
        whole = datetime.fromisoformat(f"{found[1]}T{found[2]}{found[4] or 'Z'}")
        seconds = (whole - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    except ValueError:
        return None
    return Nanos(seconds * 1_000_000_000 + int((found[3] or "0").ljust(9, "0")))
