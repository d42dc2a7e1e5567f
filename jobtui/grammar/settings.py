"""The settings, one entry each: flag, variable, key of the configuration file, help and completion."""

from collections.abc import Mapping

from jobtui.grammar.kinds import Kind, Scope, Setting
from jobtui.model.script_specs import parse_archive, parse_elastic, parse_kafka
from jobtui.model.specs import (
    parse_balsam,
    parse_condor_log,
    parse_journal,
    parse_log,
    parse_slurm,
    parse_srdb,
    parse_trace_file,
)
from jobtui.model.trace_specs import parse_jaeger, parse_otlp_listen, parse_tempo

SETTINGS: tuple[Setting, ...] = (
    Setting(
        "srdb", "DIR", "a Sirepo database root, the directory that holds supervisor-job",
        Kind.SOURCE, repeatable=True, completes="directory", parse=parse_srdb,
    ),
    Setting(
        "log", "[ROLE=]FILE", "a log file; ROLE is server, supervisor, agent or auto",
        Kind.SOURCE, repeatable=True, completes="file", parse=parse_log,
    ),
    Setting(
        "journal", "SPEC", "a journal: local, a directory, ssh://[user@]host[:port] or http://host:port",
        Kind.SOURCE, repeatable=True, completes="directory", parse=parse_journal,
    ),
    Setting(
        "balsam", "URL", "a Balsam server; its login is that of `balsam login`",
        Kind.SOURCE, repeatable=True, parse=parse_balsam,
    ),
    Setting(
        "balsam_cache", "EVENTS", "keep so many events of each Balsam server between runs, for its charts",
        Kind.TEXT, most=5_000_000,
    ),
    Setting(
        "slurm", "SPEC", "a Slurm cluster, through its own commands: local or ssh://[user@]host[:port]",
        Kind.SOURCE, repeatable=True, parse=parse_slurm,
    ),
    Setting(
        "condor_log", "FILE", "of HTCondor jobs: an event log, job ads, a submit file, or a job's output",
        Kind.SOURCE, repeatable=True, completes="file", parse=parse_condor_log,
    ),
    Setting(
        "trace_file", "FILE", "spans or their log records: OTLP as JSON, JSONL or protobuf, Jaeger's JSON",
        Kind.SOURCE, repeatable=True, completes="file", parse=parse_trace_file,
    ),
    Setting(
        "jaeger", "URL", "a Jaeger, with the path it is served at; asked for traces when they are wanted",
        Kind.SOURCE, repeatable=True, parse=parse_jaeger,
    ),
    Setting(
        "tempo", "URL", "a Tempo, with the path it is served at; asked for traces when they are wanted",
        Kind.SOURCE, repeatable=True, parse=parse_tempo,
    ),
    Setting(
        "otlp_listen", "HOST:PORT", "receive spans and log records over OTLP/HTTP; without HOST on loopback",
        Kind.SOURCE, repeatable=True, parse=parse_otlp_listen,
    ),
    Setting(
        "ca_file", "FILE", "the authorities that vouch for servers of traces, instead of those of the system",
        Kind.TEXT, completes="file",
    ),
    Setting(
        "archive", "[CLUSTER=]DIR", "job scripts that SArchive keeps, or Slurm's StateSaveLocation",
        Kind.SOURCE, repeatable=True, completes="directory", parse=parse_archive,
    ),
    Setting(
        "elastic", "URL/INDEX", "job scripts that SArchive kept in Elasticsearch",
        Kind.SOURCE, repeatable=True, parse=parse_elastic,
    ),
    Setting(
        "kafka", "BROKERS/TOPIC", "job scripts that SArchive sends to Kafka",
        Kind.SOURCE, repeatable=True, parse=parse_kafka,
    ),
    Setting(
        "kafka_config", "FILE", "settings of librdkafka, such as a login, one name=value a line",
        Kind.TEXT, completes="file",
    ),
    Setting(
        "job_attribute", "NAME", "an attribute in which spans hold the id of their job, instead of the usual",
        Kind.TEXT, repeatable=True,
    ),
    Setting(
        "journal_unit", "UNIT", "read this unit of journals instead of Sirepo's own; may have wildcards",
        Kind.TEXT, repeatable=True,
    ),
    Setting(
        "theme", "NAME", "colours of the dashboard: auto, dark, light, ansi or none",
        Kind.TEXT, choices=("auto", "dark", "light", "ansi", "none"),
    ),
    Setting(
        "glyphs", "SET", "signs and lines to draw with: auto, unicode, console or ascii",
        Kind.TEXT, choices=("auto", "unicode", "console", "ascii"),
    ),
    Setting(
        "clipboard", "WAY", "how to copy: auto, osc52, tmux, file or off",
        Kind.TEXT, choices=("auto", "osc52", "tmux", "file", "off"),
    ),
    Setting(
        "mouse", "WHEN", "whether to take the mouse: on, off, or auto, not over ssh",
        Kind.TEXT, choices=("auto", "on", "off"),
    ),
    Setting(
        "title", "WHEN", "whether to set the title of the window: on or off",
        Kind.TEXT, choices=("on", "off"),
    ),
    Setting("fps", "N", "paint at most so many times a second", Kind.TEXT, most=120),
    Setting("readonly", None, "only read: the only mode there is, said or not", Kind.TEXT),
    Setting("profile", "NAME", "the profile of the configuration file to use", Kind.TEXT, scope=Scope.FILE),
    Setting(
        "config", "FILE", "the configuration file to read", Kind.TEXT,
        scope=Scope.NOWHERE, completes="file",
    ),
    Setting("since", "TIME", "leave out what was before: UTC ISO time, or 2h, 15m ago", Kind.TIME),
    Setting("until", "TIME", "leave out what came after", Kind.TIME),
    Setting("at", "TIME", "take this for the present time", Kind.TIME),
)  # fmt: skip

SETTING_BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}
