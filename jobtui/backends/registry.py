"""Sources out of what a configuration names. A new kind of source is one line in FACTORIES.

Making a source opens nothing: one that is missing or denied says so when it is polled.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from jobtui.backends.base import Announced, Source
from jobtui.model.clock import Nanos
from jobtui.model.specs import SourceSpec

JOB_SETTINGS = frozenset({"srdb", "balsam", "slurm", "condor_log"})
"""Settings whose sources give jobs."""

SCRIPT_SETTINGS = frozenset({"archive", "elastic", "kafka"})
"""Settings whose sources keep the scripts of jobs."""

TRACE_SETTINGS = frozenset({"trace_file", "jaeger", "tempo", "otlp_listen"})
"""Settings whose sources give spans."""

TRACE_KINDS = frozenset({"trace_file"})
"""Kinds of the sources of spans that are read whole; others are asked for a trace, or are sent some."""

TOLD_KINDS = frozenset({"condor_log"})
"""Kinds of the sources each of which tells a part of what is known of a job."""

LOG_KINDS = frozenset({"logfile", "journald", "agent_copies", "site_logs"})
"""Kinds of the sources that give log records."""


class Window(NamedTuple):
    """Which part of a source to read. None leaves the beginning to it, and the end to the present.

    Only searches for traces end before that at `until`.
    """

    since: Nanos | None = None
    whole: bool = False
    until: Nanos | None = None


def _sirepo_db(spec: SourceSpec, window: Window) -> Source:
    from jobtui.backends.sirepo_db import SirepoDb  # each backend costs its start only where it is used

    return SirepoDb(Path(spec.target))


def _log_file(spec: SourceSpec, window: Window) -> Source:
    from jobtui.backends.log_start import FromStart, FromTime
    from jobtui.backends.logfile import LogFile

    start = FromStart() if window.whole else None if window.since is None else FromTime(window.since)
    return LogFile(Path(spec.target), spec.role.value, start=start)


def _journal(spec: SourceSpec, window: Window) -> Source:
    from jobtui.backends.journal.opening import open_journal

    return open_journal(spec, Nanos(0) if window.whole else window.since)


def _balsam(spec: SourceSpec, window: Window) -> Source:
    from jobtui.backends.balsam.opening import open_balsam

    return open_balsam(spec, window.since)


def _slurm(spec: SourceSpec, window: Window) -> Source:
    from jobtui.backends.slurm.opening import open_slurm

    return open_slurm(spec, window.since)


def _condor_log(spec: SourceSpec, window: Window) -> Source:
    from jobtui.backends.condor_files import CondorFile

    return CondorFile(Path(spec.target))


def _trace_file(spec: SourceSpec, window: Window) -> Source:
    from jobtui.backends.trace_files import TraceFile

    return TraceFile(Path(spec.target))


def _jaeger(spec: SourceSpec, window: Window) -> Source:
    from jobtui.backends.traces.asking import TraceServer
    from jobtui.backends.traces.jaeger import Jaeger
    from jobtui.backends.traces.span_window import Usual

    return Jaeger(TraceServer(spec.target, "Jaeger", spec.access), Usual(window.since, window.until))


def _tempo(spec: SourceSpec, window: Window) -> Source:
    from jobtui.backends.traces.asking import TraceServer
    from jobtui.backends.traces.span_window import Usual
    from jobtui.backends.traces.tempo import Tempo

    return Tempo(TraceServer(spec.target, "Tempo", spec.access), Usual(window.since, window.until))


def _otlp_listen(spec: SourceSpec, window: Window) -> Source:
    from jobtui.backends.traces.receiver import Receiver

    return Receiver(spec.target)


def _archive(spec: SourceSpec, window: Window) -> Source:
    from jobtui.backends.archive.directory import ArchiveDirectory

    return ArchiveDirectory(spec.target, spec.label)


def _elastic(spec: SourceSpec, window: Window) -> Source:
    from jobtui.backends.archive.elastic import ElasticArchive
    from jobtui.backends.archive.elastic_http import ElasticClient

    return ElasticArchive(ElasticClient(spec.target, spec.access))


def _kafka(spec: SourceSpec, window: Window) -> Source:
    from jobtui.backends.archive.kafka import KafkaArchive
    from jobtui.backends.archive.kafka_topic import Topic

    brokers, _, topic = spec.target.rpartition("/")
    return KafkaArchive(Topic(brokers, topic, spec.options))


FACTORIES: Mapping[str, Callable[[SourceSpec, Window], Source]] = {
    "srdb": _sirepo_db,
    "log": _log_file,
    "journal": _journal,
    "balsam": _balsam,
    "slurm": _slurm,
    "condor_log": _condor_log,
    "trace_file": _trace_file,
    "archive": _archive,
    "elastic": _elastic,
    "kafka": _kafka,
    "jaeger": _jaeger,
    "tempo": _tempo,
    "otlp_listen": _otlp_listen,
}

KINDS: Mapping[str, str] = {
    "srdb": "sirepo_db",
    "log": "logfile",
    "journal": "journald",
    "balsam": "balsam",
    "slurm": "slurm",
    "condor_log": "condor_log",
    "trace_file": "trace_file",
    "archive": "archive",
    "elastic": "elastic",
    "kafka": "kafka",
    "jaeger": "jaeger",
    "tempo": "tempo",
    "otlp_listen": "otlp",
}
"""The kind of the source that each factory makes."""

JOB_KINDS = frozenset(KINDS[name] for name in JOB_SETTINGS)
"""Kinds of the sources that give jobs."""


def build(spec: SourceSpec, window: Window | None = None) -> Source:
    """The source that a setting names."""
    return FACTORIES[spec.setting](spec, window or Window())


def announce(spec: SourceSpec, make: Callable[[], Source] | None = None) -> Announced:
    """The source that a setting names, to be made later: as `make` does, else as `build`."""
    return Announced(spec.target, KINDS[spec.setting], make or (lambda: build(spec)))


def gives_jobs(spec: SourceSpec) -> bool:
    """Whether a source knows of jobs by itself."""
    return spec.setting in JOB_SETTINGS


def gives_spans(spec: SourceSpec) -> bool:
    """Whether a source knows of traces."""
    return spec.setting in TRACE_SETTINGS


def keeps_scripts(spec: SourceSpec) -> bool:
    """Whether a source keeps scripts of jobs."""
    return spec.setting in SCRIPT_SETTINGS


def gives_logs(spec: SourceSpec) -> bool:
    """Whether a source gives log records about jobs."""
    return not gives_jobs(spec) and not gives_spans(spec) and not keeps_scripts(spec)
