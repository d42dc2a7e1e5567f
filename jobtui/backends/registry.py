"""Every kind of source, one descriptor each. A new kind is one line in SOURCES and one package.

Settings, configuration, completion, `init`, `doctor`, polling, the store, screens and the tables of the
documentation read these descriptors. Making a source opens nothing: the first poll does.
"""

from collections.abc import Callable, Iterable
from enum import Flag, auto
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Protocol

from jobtui.model import specs
from jobtui.model.specs import SourceSpec

if TYPE_CHECKING:
    from jobtui.backends.base import Source, Unopened

PERIOD_S = 2.0
"""The longest wait for a sign of change; then a poll is due."""


class _OfKind(Protocol):
    @property
    def kind(self) -> str: ...


class Gives(Flag):
    NOTHING = 0
    JOBS = auto()
    LOGS = auto()
    SPANS = auto()
    SCRIPTS = auto()
    FILES = auto()


def parsed_in(package: str, text: str) -> SourceSpec:
    """The source that `parse` in the source's own folder makes of a value; imported only then."""
    spec: SourceSpec = import_module(package, "jobtui.backends").parse(text)
    return spec


class SourceType(NamedTuple):
    """One kind of source. `kind` is its name, `setting` the setting that names its sources, "" if none does.

    `period_s` is the longest wait for a sign of change, `pause_s` the pause after a failure. `addressed`
    sources may be named by an address.
    """

    kind: str
    setting: str
    metavar: str
    help: str
    page: str
    gives: Gives
    parse: Callable[[str], SourceSpec] | None = None
    module: str = ""
    """Where its `open_source` is, below `jobtui.backends` after a dot. It costs its start when it is used."""
    completes: str = ""
    period_s: float = PERIOD_S
    pause_s: float = PERIOD_S
    addressed: bool = False
    label: str = ""
    """The label in lists if there is usually only one. Otherwise the end of its name is shown."""
    heads: tuple[str, ...] = ()
    """Words that may come before the value, with a `=`."""
    is_labelled: bool = False
    """Whether any label may come there."""
    numbers_jobs: bool = False
    """Whether its jobs have only numbers, so that labels distinguish servers."""
    takes_login: bool = False
    is_asked: bool = False
    """Whether it is asked for spans, or receives them, and is not read as a whole."""
    in_parts: bool = False
    """Whether each of its sources has only a part of what is known of a job."""
    is_journal: bool = False
    misses: str = ""
    """What is not found in it, and what to do; `doctor` says so."""
    script_rank: int = 0
    """Its rank in the search for scripts. Sources that keep scripts byte for byte come first."""
    found: tuple[str, str] = ("", "")
    """For sources without a setting: the name of their logs, and the text if there are none."""
    with_others: Callable[[SourceSpec, Callable[[str], tuple[str, ...]]], SourceSpec] | None = None
    """Adds to a source what other settings say, of which a function gives the values."""

    def names(self, spec: SourceSpec) -> bool:
        return spec.setting == self.setting

    def made(self, source: _OfKind) -> bool:
        return source.kind == self.kind


# fmt: off
SIREPO_DB = SourceType(
    "sirepo_db", "srdb", "DIR", "a Sirepo database root, the directory that holds supervisor-job",
    "sirepo-db", Gives.JOBS, specs.parse_srdb, ".sirepo.source", completes="directory", label="db",
)
LOG_FILE = SourceType(
    "logfile", "log", "[ROLE=]FILE", "a log file; ROLE is server, supervisor, agent or auto",
    "log-files", Gives.LOGS, specs.parse_log, ".logfile", completes="file", heads=tuple(specs.LogRole),
    pause_s=0.25,
)
JOURNAL = SourceType(
    "journald", "journal", "SPEC",
    "a journal: local, a directory, a file X.journal, ssh://[user@]host[:port] or http://host:port",
    "journals", Gives.LOGS, specs.parse_journal, ".journal.source", completes="file", addressed=True,
    with_others=lambda spec, values: spec._replace(units=values("journal_unit")), is_journal=True,
)
BALSAM = SourceType(
    "balsam", "balsam", "URL", "a Balsam server; logged in to with `balsam login`",
    "balsam", Gives.JOBS, specs.parse_balsam, ".balsam.source", addressed=True, numbers_jobs=True,
)
SLURM = SourceType(
    "slurm", "slurm", "SPEC", "a Slurm cluster, read with its own commands: local or ssh://[user@]host[:port]",
    "slurm", Gives.JOBS | Gives.SCRIPTS, specs.parse_slurm, ".slurm.source", addressed=True,
    numbers_jobs=True, script_rank=1,
)
CONDOR_LOG = SourceType(
    "condor_log", "condor_log", "FILE",
    "a file of HTCondor jobs: an event log, job ads, a submit file, or a job's output",
    "condor", Gives.JOBS, specs.parse_condor_log, ".condor.source", completes="file", in_parts=True,
)
TRACE_FILE = SourceType(
    "trace_file", "trace_file", "FILE",
    "spans or their log records: OTLP as JSON, JSONL or protobuf, Jaeger's JSON",
    "trace-files", Gives.SPANS, specs.parse_trace_file, ".traces.files", completes="file",
)
JAEGER = SourceType(
    "jaeger", "jaeger", "URL",
    "a Jaeger server, with the path it is served at; asked only when a trace is shown",
    "jaeger", Gives.SPANS, specs.parse_jaeger, ".traces.jaeger", period_s=10.0, addressed=True, is_asked=True,
    takes_login=True,
)
TEMPO = SourceType(
    "tempo", "tempo", "URL",
    "a Tempo server, with the path it is served at; asked only when a trace is shown",
    "tempo", Gives.SPANS, specs.parse_tempo, ".traces.tempo", period_s=10.0, addressed=True, is_asked=True,
    takes_login=True,
)
OTLP = SourceType(
    "otlp", "otlp_listen", "HOST:PORT",
    "receive spans and log records over OTLP/HTTP; on loopback if HOST is left out",
    "otlp-receiver", Gives.SPANS, specs.parse_otlp_listen, ".traces.receiver", addressed=True, is_asked=True,
)
ARCHIVE = SourceType(
    "archive", "archive", "[CLUSTER=]DIR", "job scripts that SArchive keeps, or Slurm's StateSaveLocation",
    "archives", Gives.SCRIPTS, specs.parse_archive, ".archive.source", completes="directory",
    is_labelled=True,
)
ELASTIC = SourceType(
    "elastic", "elastic", "URL/INDEX", "job scripts that SArchive kept in Elasticsearch",
    "archives", Gives.SCRIPTS, partial(specs.parse_server, "elastic", part="index"), ".elastic.scripts",
    addressed=True, takes_login=True, script_rank=2,
)
KAFKA = SourceType(
    "kafka", "kafka", "BROKERS/TOPIC", "job scripts that SArchive sends to Kafka",
    "archives", Gives.SCRIPTS, specs.parse_kafka, ".archive.kafka", addressed=True, script_rank=3,
    with_others=lambda spec, values: spec._replace(options="".join(values("kafka_config")[-1:])),
)
ELASTIC_LOGS = SourceType(
    "elastic_logs", "elastic_logs", "URL/INDEX[?preset=NAME]",
    "logs in Elasticsearch or OpenSearch, written as journald or syslog; or jobs, by their preset",
    "elastic", Gives.LOGS, partial(parsed_in, ".elastic"), ".elastic.source", period_s=5.0, addressed=True,
    takes_login=True, with_others=lambda spec, values: spec._replace(units=values("journal_unit")),
    is_journal=True,
    misses="in a text field an id joined to a word, as x:ID, may not be found; logs UNIT --grep ID finds it",
)
ELASTIC_JOBS = SourceType(
    "elastic_jobs", "elastic_jobs", "URL/INDEX?preset=NAME",
    "jobs in Elasticsearch or OpenSearch, written as condor_events, adstash or jobcomp",
    "elastic", Gives.JOBS, partial(parsed_in, ".elastic"), ".elastic.jobs", period_s=5.0, addressed=True,
    takes_login=True, in_parts=True,
)
LOKI = SourceType(
    "loki", "loki", "URL[?query=SELECTOR]", "journals in Grafana Loki, as promtail and Alloy write them",
    "loki", Gives.LOGS, partial(parsed_in, ".loki"), ".loki", period_s=5.0, addressed=True, takes_login=True,
    with_others=lambda spec, values: spec._replace(units=values("journal_unit")), is_journal=True,
)
FETCHLOG = SourceType(
    "fetchlog", "fetchlog", "URL", "files of jobsub jobs that a Landscape server keeps",
    "fetchlog", Gives.FILES, partial(specs.parse_server, "fetchlog"), ".fetchlog", period_s=60.0,
    addressed=True, takes_login=True,
)
AGENT_COPIES = SourceType(
    "agent_copies", "", "", "the logs of agents on clusters that Sirepo's supervisor keeps",
    "cluster-agents", Gives.LOGS, found=("cluster agent", "no cluster agent's log was copied"),
)
SITE_LOGS = SourceType(
    "site_logs", "", "", "the logs of Balsam's sites",
    "balsam", Gives.LOGS, found=("file", "no site can be reached"),
)
# fmt: on

SOURCES: tuple[SourceType, ...] = (
    SIREPO_DB, LOG_FILE, JOURNAL, BALSAM, SLURM, CONDOR_LOG, TRACE_FILE, JAEGER, TEMPO, OTLP,
    ARCHIVE, ELASTIC, KAFKA, ELASTIC_LOGS, ELASTIC_JOBS, LOKI, FETCHLOG, AGENT_COPIES, SITE_LOGS,
)  # fmt: skip
_OTHER = SourceType("", "", "", "", "", Gives.NOTHING)


def of_kind(kind: str) -> SourceType:
    return next((one for one in SOURCES if one.kind == kind), _OTHER)


def of_setting(name: str) -> SourceType:
    return next((one for one in SOURCES if one.setting == name), _OTHER)


def kinds_that_give(what: Gives) -> frozenset[str]:
    return frozenset(one.kind for one in SOURCES if one.gives & what)


def numbering() -> tuple[str, ...]:
    """The settings of systems whose jobs have only numbers."""
    return tuple(one.setting for one in SOURCES if one.numbers_jobs)


def servers() -> tuple[str, ...]:
    return tuple(one.setting for one in SOURCES if one.takes_login)


def system_of(spec: SourceSpec) -> str:
    """The system of which a source tells jobs by their numbers alone, "" for any other."""
    if ELASTIC_JOBS.names(spec):
        return SLURM.setting if spec.options == "jobcomp" else ""
    return spec.setting if of_setting(spec.setting).numbers_jobs else ""


def with_labels(given: Iterable[SourceSpec]) -> tuple[SourceSpec, ...]:
    """The sources, none twice. Each of several servers or clusters of one system gets a label."""
    from jobtui.model.ids import labels_of

    found, labels = tuple(dict.fromkeys(given)), dict[SourceSpec, str]()
    for system in numbering():
        same = [spec for spec in found if system_of(spec) == system]
        clusters = {spec: _cluster_of(spec, same) for spec in same}
        by_cluster = labels_of(clusters.values())
        labels |= {spec: by_cluster[cluster] for spec, cluster in clusters.items()}
    return tuple(spec._replace(label=labels.get(spec, spec.label)) for spec in found)


def _cluster_of(spec: SourceSpec, same: Iterable[SourceSpec]) -> str:
    """The only index of a profile has the jobs of its only cluster, any other those of one of its own."""
    near = [one for one in same if one.profile == spec.profile]
    asked = [one.target for one in near if not ELASTIC_JOBS.names(one)]
    return asked[0] if len(near) == 2 and len(asked) == 1 else spec.target


def build(spec: SourceSpec, window: specs.ReadWindow | None = None) -> "Source":
    module = of_setting(spec.setting).module
    if not module:
        raise ValueError(f"{spec.setting} names no source")
    window = window or specs.ReadWindow()
    source: Source = import_module(module, "jobtui.backends").open_source(spec, window)
    if window.until is not None and gives(spec, Gives.LOGS):
        from jobtui.backends.base import PolledSource  # the command line reads this module: it starts quickly

        assert isinstance(source, PolledSource)
        source.until = window.until
    return source


def announce(spec: SourceSpec, make: "Callable[[], Source] | None" = None) -> "Unopened":
    """A source to be made later, with `make` or else with `build`."""
    from jobtui.backends.base import Unopened  # the command line reads this module, and starts quickly

    return Unopened(spec.target, of_setting(spec.setting).kind, make or (lambda: build(spec)))


def gives(spec: SourceSpec, what: Gives) -> bool:
    return bool(of_setting(spec.setting).gives & what)
