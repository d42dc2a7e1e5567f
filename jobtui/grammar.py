"""What can be said on the command line: settings, flags, commands, as tables.

They are the only place that lists them. The parser, help, completion, `JOBTUI_*` variables, the keys of the
configuration file and `jobtui config` are all made from them, so that a flag is one entry. A setting may also
be given in the environment and in the configuration file; a flag may not. Parses nothing itself.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from jobtui.model.script_specs import parse_archive, parse_elastic, parse_kafka
from jobtui.model.specs import (
    SourceSpec,
    parse_balsam,
    parse_condor_log,
    parse_journal,
    parse_log,
    parse_slurm,
    parse_srdb,
    parse_trace_file,
)
from jobtui.model.trace_specs import parse_jaeger, parse_otlp_listen, parse_tempo

ENVIRONMENT_PREFIX = "JOBTUI_"


class Kind(StrEnum):
    """What the values of a setting are."""

    SOURCE = "source"
    TIME = "time"
    TEXT = "text"


class Scope(StrEnum):
    """Where a setting may be given, beside flags and environment."""

    ANYWHERE = "anywhere"
    FILE = "file"
    NOWHERE = "nowhere"


class Setting(NamedTuple):
    """One setting. `name` is its key; `--name` is the flag and `JOBTUI_NAME` the variable.

    `metavar` is None for a switch. `completes` names what a shell may offer: `file`, `directory` or nothing.
    """

    name: str
    metavar: str | None
    help: str
    kind: Kind
    repeatable: bool = False
    scope: Scope = Scope.ANYWHERE
    completes: str = ""
    parse: Callable[[str], SourceSpec] | None = None

    @property
    def flag(self) -> str:
        """How it is written on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """How it is written in the environment."""
        return ENVIRONMENT_PREFIX + self.name.upper()


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
        Kind.TEXT,
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


class Expects(StrEnum):
    """What the value of a flag must be."""

    NOTHING = "nothing"
    TEXT = "text"
    COUNT = "count"
    REGEX = "regex"


class Flag(NamedTuple):
    """One flag of the command line that is no setting. One that `frees` lets the argument be anything."""

    name: str
    help: str
    short: str | None = None
    metavar: str | None = None
    expects: Expects = Expects.NOTHING
    choices: tuple[str, ...] = ()
    frees: bool = False

    @property
    def flag(self) -> str:
        """How it is written on the command line."""
        return f"--{self.name}"


class Argument(NamedTuple):
    """What stands behind a command. `many` words are joined with spaces."""

    name: str
    help: str
    required: bool = True
    many: bool = False
    dashes: bool = False
    choices: tuple[str, ...] = ()


class Command(NamedTuple):
    """One command; `jobtui.commands.<name>` runs it. `opens` marks the dashboard, which has no name.

    `reads` are settings of time that it takes for words of its own when they are given as flags. What stands
    behind the argument of one that `wraps` is a command line of its own.
    """

    name: str
    summary: str
    argument: Argument | None = None
    flags: tuple[Flag, ...] = ()
    prints: bool = True
    reads: tuple[str, ...] = ()
    wraps: bool = False


OUTPUT_FLAGS: tuple[Flag, ...] = (
    Flag("json", "print JSON"),
    Flag("csv", "print CSV"),
    Flag("plain", "print without colour and without a limit of width"),
)

GENERAL_FLAGS: tuple[Flag, ...] = (
    Flag("help", "print help, also of a command", short="h"),
    Flag("version", "print the version", short="V"),
)

_ID = Argument("ID", "a computeJid, or anything that `find` resolves to one job")

DASHBOARD = Command(
    "open",
    "open the dashboard, at THING when given",
    Argument(
        "THING", "anything that `find` takes; without a terminal it is shown and jobtui ends", required=False
    ),
)

REPORTS = ("throughput", "utilization", "nodes", "states")
"""What `report` reports."""

COMMANDS: tuple[Command, ...] = (
    Command(
        "jobs",
        "the job table",
        Argument(
            "FILTER", "such as status:running dur>10m user:vn9m", required=False, many=True, dashes=True
        ),
    ),
    Command("show", "one job: its record, its runs, where its files and logs are", _ID),
    Command("timeline", "the ops of a job, each with its steps", _ID),
    Command("explain", "what is the matter with a job, why, and what to type next", _ID),
    Command(
        "compare",
        "a run beside the last good one, or beside that of another job",
        Argument("ID", "a job, and perhaps another one to compare it with", many=True),
    ),
    Command("status", "how things stand in one line, for a status bar"),
    Command(
        "wait",
        "wait until a job is over, has failed, or needs a person: --until done, failed, stuck",
        _ID,
        (Flag("timeout", "give up after so long, such as 10m", metavar="T", expects=Expects.TEXT),),
        prints=False,
        reads=("until",),
    ),
    Command("incidents", "what went wrong lately, grouped by how it went and what it shares"),
    Command(
        "logs",
        "the log lines that belong to a job, merged in time order",
        _ID,
        (
            Flag("agent", "only lines of this agent, or container", metavar="A", expects=Expects.TEXT),
            Flag("unit", "only lines of this unit, container or file", metavar="U", expects=Expects.TEXT),
            Flag("op", "only lines of this op", metavar="O", expects=Expects.TEXT),
            Flag("grep", "only lines in which this is found", metavar="RE", expects=Expects.REGEX),
            Flag("lines", "only the last N lines", short="n", metavar="N", expects=Expects.COUNT),
            Flag("follow", "go on with new lines until interrupted", short="f"),
        ),
    ),
    Command(
        "report",
        "throughput, utilization, available nodes or jobs per state over time; what happened to a job",
        Argument("WHAT", "throughput, utilization, nodes or states; with --markdown a job", choices=REPORTS),
        (
            Flag(
                "to-state",
                "the state that throughput counts, or that allocations are in",
                metavar="S",
                expects=Expects.TEXT,
            ),
            Flag("from-state", "only changes from this state", metavar="S", expects=Expects.TEXT),
            Flag("job", "only these jobs, by id, separated by commas", metavar="ID", expects=Expects.TEXT),
            Flag("batch-job", "only jobs of this allocation", metavar="ID", expects=Expects.TEXT),
            Flag("scheduler-id", "the same by the scheduler's id", metavar="N", expects=Expects.TEXT),
            Flag(
                "tag", "only jobs with these tags, separated by commas", metavar="K:V", expects=Expects.TEXT
            ),
            Flag("unweighted", "count jobs and not their nodes"),
            Flag("exact", "Balsam's own figures, its faults included"),
            Flag("plot", "draw a chart as wide as the terminal"),
            Flag("markdown", "what happened to the job, as the beginning of a post-mortem", frees=True),
        ),
    ),
    Command(
        "agents",
        "the agents, what they hold, and where their logs are",
        Argument("FILTER", "such as state:lost host:v4 user:vn9m", required=False, many=True, dashes=True),
    ),
    Command(
        "find",
        "ranked candidates for anything pasted, with reasons",
        Argument(
            "THING", "an id, a prefix, a path, a container, a name or a whole log line; - reads it", many=True
        ),
    ),
    Command(
        "trace",
        "a trace as a waterfall: where it failed and what it spent its time on",
        Argument(
            "THING",
            "a trace id, a TRACEPARENT, a line or address that holds one, a job id or a file; - reads it",
            many=True,
        ),
    ),
    Command(
        "bundle",
        "all that is known of a job in one file, masked, to be looked at elsewhere with `replay`",
        _ID,
        (
            Flag(
                "output",
                "the file to make, else ID.jobtui here",
                short="o",
                metavar="FILE",
                expects=Expects.TEXT,
            ),
        ),
        prints=False,
    ),
    Command(
        "record",
        "keep what the sources deliver in a directory, the oldest let go of, until interrupted",
        Argument("DIR", "the directory, made when it is not there"),
        (
            Flag("limit", "how many MB to keep, 1000 without it", metavar="MB", expects=Expects.COUNT),
            Flag("for", "end after so long, such as 8h", metavar="T", expects=Expects.TEXT),
        ),
        prints=False,
    ),
    Command(
        "replay",
        "the dashboard on a bundle or recording, or any other command: replay FILE explain ID",
        Argument("FILE", "a bundle, a recording, or its directory; then a command line"),
        prints=False,
        wraps=True,
    ),
    Command(
        "script",
        "the script and environment a job was submitted with, out of an archive",
        Argument("ID", "a job of Slurm or Torque as 22, 22_1, huppel/22, or a computeJid", required=False),
        (
            Flag(
                "diff",
                "how it differs from another job's; good: the last good one of its name and user",
                metavar="OTHER",
                expects=Expects.TEXT,
            ),
            Flag("unified", "print a difference line by line, not beside each other"),
            Flag(
                "grep",
                "instead of a job: which scripts contain this, since --since",
                metavar="RE",
                expects=Expects.REGEX,
            ),
            Flag("user", "only scripts of this user", metavar="U", expects=Expects.TEXT),
        ),
    ),
    Command("doctor", "what every configured source is worth: reachable, readable, fresh, understood"),
    Command(
        "demo",
        "a simulated job system in a temporary directory, to look around in",
        None,
        (
            Flag("seed", "which of the possible worlds", metavar="N", expects=Expects.COUNT),
            Flag("incident", "play a known failure; `list` names them", metavar="NAME", expects=Expects.TEXT),
        ),
        prints=False,
    ),
    Command(
        "login",
        "log in to a server, and keep the login where its own client looks",
        Argument("SYSTEM", "balsam", choices=("balsam",)),
        prints=False,
    ),
    Command("config", "the effective settings and where each came from"),
    Command(
        "completion",
        "the completion script for a shell",
        Argument("SHELL", "bash, zsh or fish", choices=("bash", "zsh", "fish")),
        prints=False,
    ),
)

COMMAND_BY_NAME: Mapping[str, Command] = {command.name: command for command in COMMANDS}


class Invocation(NamedTuple):
    """A command line, understood: which command, its words, and the flags by name with their values."""

    command: Command
    words: tuple[str, ...]
    settings: Mapping[str, tuple[str, ...]]
    flags: Mapping[str, str]
    inner: "Invocation | None" = None
    """The command line behind one that wraps another."""


def flags_of(command: Command) -> tuple[Flag, ...]:
    """Every flag of a command that is no setting."""
    return command.flags + (OUTPUT_FLAGS if command.prints else ()) + GENERAL_FLAGS


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the nearest right one, or nothing when none is near."""
    from difflib import get_close_matches  # only ever needed on the way out

    found = get_close_matches(word, list(known), n=1, cutoff=0.55)
    return f'; did you mean "{found[0]}"?' if found else ""
