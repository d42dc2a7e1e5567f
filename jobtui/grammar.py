"""What can be said on the command line: settings, flags, commands, as tables.

The parser, help, completion, `JOBTUI_*` variables, the keys of the configuration file and `jobtui config` are
all made from them: a flag is one entry. A setting may also be given in the environment and in the
configuration file; a flag may not. Settings that name sources are made of the descriptors in
`backends.registry`. Parses nothing itself.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from jobtui.backends.registry import SOURCES
from jobtui.model.specs import SourceSpec


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the nearest right one, or nothing when none is near."""
    from difflib import get_close_matches  # only ever needed on the way out

    found = get_close_matches(word, list(known), n=1, cutoff=0.55)
    return f'; did you mean "{found[0]}"?' if found else ""


ENVIRONMENT_PREFIX = "JOBTUI_"


class SettingKind(StrEnum):
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

    `completes` names what a shell may offer: `file`, `directory` or nothing.
    One with `choices` is one of these words, one with `most` a whole number up to that.
    """

    name: str
    metavar: str
    help: str
    kind: SettingKind
    repeatable: bool = False
    scope: Scope = Scope.ANYWHERE
    completes: str = ""
    parse: Callable[[str], SourceSpec] | None = None
    choices: tuple[str, ...] = ()
    most: int = 0

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return ENVIRONMENT_PREFIX + self.name.upper()


class ValueKind(StrEnum):
    """What the value of a flag must be."""

    NOTHING = "nothing"
    TEXT = "text"
    COUNT = "count"
    REGEX = "regex"


class Option(NamedTuple):
    """One flag of the command line that is no setting. One that `frees` lets the argument be anything."""

    name: str
    help: str
    short: str | None = None
    metavar: str | None = None
    expects: ValueKind = ValueKind.NOTHING
    frees: bool = False

    @property
    def flag(self) -> str:
        return f"--{self.name}"


class Argument(NamedTuple):
    """The words after a command. `many` words are joined with spaces."""

    name: str
    help: str
    required: bool = True
    many: bool = False
    dashes: bool = False
    choices: tuple[str, ...] = ()


class Subcommand(NamedTuple):
    """One command; `jobtui.commands.<name>` runs it. `opens` marks the dashboard, which has no name.

    `reads` are settings of time that it takes for words of its own when they are given as flags. What stands
    behind the argument of one that `wraps`, or in its place, is a command line of its own.
    """

    name: str
    summary: str
    argument: Argument | None = None
    flags: tuple[Option, ...] = ()
    prints: bool = True
    reads: tuple[str, ...] = ()
    wraps: bool = False


class Invocation(NamedTuple):
    """A command line, understood: which command, its words, and the flags by name with their values."""

    command: Subcommand
    words: tuple[str, ...]
    settings: Mapping[str, tuple[str, ...]]
    flags: Mapping[str, str]
    inner: "Invocation | None" = None
    """The inner command line of one that wraps another."""


SETTINGS: tuple[Setting, ...] = (
    *(
        Setting(
            one.setting, one.metavar, one.help, SettingKind.SOURCE, repeatable=True, completes=one.completes,
            parse=one.parse,
        )
        for one in SOURCES
        if one.setting
    ),
    Setting(
        "ca_file", "FILE", "the authorities that vouch for servers of traces, instead of those of the system",
        SettingKind.TEXT, completes="file",
    ),
    Setting(
        "kafka_config", "FILE", "settings of librdkafka, such as a login, one name=value a line",
        SettingKind.TEXT, completes="file",
    ),
    Setting(
        "job_attribute", "NAME", "an attribute in which spans hold the id of their job, instead of the usual",
        SettingKind.TEXT, repeatable=True,
    ),
    Setting(
        "journal_unit", "UNIT", "read this unit of journals instead of Sirepo's own; may have wildcards",
        SettingKind.TEXT, repeatable=True,
    ),
    Setting(
        "theme", "NAME", "colours of the dashboard: auto, dark, light, ansi or none",
        SettingKind.TEXT, choices=("auto", "dark", "light", "ansi", "none"),
    ),
    Setting(
        "glyphs", "SET", "signs and lines to draw with: auto, unicode, console or ascii",
        SettingKind.TEXT, choices=("auto", "unicode", "console", "ascii"),
    ),
    Setting(
        "clipboard", "WAY", "how to copy: auto, osc52, tmux, file or off",
        SettingKind.TEXT, choices=("auto", "osc52", "tmux", "file", "off"),
    ),
    Setting(
        "mouse", "WHEN", "whether to take the mouse: on, off, or auto, not over ssh",
        SettingKind.TEXT, choices=("auto", "on", "off"),
    ),
    Setting(
        "title", "WHEN", "whether to set the title of the window: on or off",
        SettingKind.TEXT, choices=("on", "off"),
    ),
    Setting("fps", "N", "paint at most so many times a second", SettingKind.TEXT, most=120),
    Setting(
        "profile", "NAME", "the profile of the configuration file to use; several with commas, side by side",
        SettingKind.TEXT, scope=Scope.FILE,
    ),
    Setting(
        "config", "FILE", "the configuration file to read", SettingKind.TEXT,
        scope=Scope.NOWHERE, completes="file",
    ),
    Setting("since", "TIME", "leave out what was before: UTC ISO time, or 2h, 15m ago", SettingKind.TIME),
    Setting("until", "TIME", "leave out what came after", SettingKind.TIME),
    Setting("at", "TIME", "take this for the present time", SettingKind.TIME),
)  # fmt: skip

SETTING_BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}


OUTPUT_FLAGS: tuple[Option, ...] = (
    Option("json", "print JSON"),
    Option("csv", "print CSV"),
    Option("plain", "print without colour and without a limit of width"),
)

GENERAL_FLAGS: tuple[Option, ...] = (
    Option("help", "print help, also of a command", short="h"),
    Option("version", "print the version", short="V"),
)


def _valued(
    name: str, metavar: str, help: str, expects: ValueKind = ValueKind.TEXT, *, short: str | None = None
) -> Option:
    return Option(name, help, short, metavar, expects)


def _filter(help: str) -> Argument:
    return Argument("FILTER", help, required=False, many=True, dashes=True)


_LINES = _valued("lines", "N", "at most N rows or lines: the first, of what is in order of time the last",
                 ValueKind.COUNT, short="n")  # fmt: skip
_ID = Argument("ID", "a computeJid, or anything that `find` resolves to one job")

DASHBOARD = Subcommand(
    "open",
    "open the dashboard, at THING when given",
    Argument(
        "THING", "anything that `find` takes; without a terminal it is shown and jobtui ends", required=False
    ),
    (_LINES,),
)

REPORTS = ("throughput", "utilization", "nodes", "states")
"""What `report` reports."""

COMMANDS: tuple[Subcommand, ...] = (
    Subcommand("jobs", "the job table", _filter("such as status:running dur>10m user:vn9m"), (_LINES,)),
    Subcommand("show", "one job: its record, its runs, where its files and logs are", _ID, (_LINES,)),
    Subcommand("timeline", "the ops of a job, each with its steps", _ID, (_LINES,)),
    Subcommand("explain", "what is the matter with a job, why, and what to type next", _ID, (
        Option("brief", "cause, evidence and next in 1,500 characters of plain text, for a ticket or a chat"),
        _LINES,
    )),
    Subcommand("compare", "a run beside the last good one, or beside that of another job",
            Argument("ID", "a job, and perhaps another one to compare it with", many=True), (_LINES,)),
    Subcommand("status", "how things stand in one line, for a status bar", None, (
        Option("prometheus", "the counts in Prometheus' text format"),
    )),
    Subcommand("wait", "wait until a job is over or needs a person: --until done, failed, stuck",
            _ID, (
        _valued("timeout", "T", "give up after so long, such as 10m"),
    ), prints=False, reads=("until",)),
    Subcommand("incidents", "what went wrong lately, grouped by how it went and what it shares",
            None, (_LINES,)),
    Subcommand("logs", "the log lines that belong to a job, merged in time order", _ID, (
        _valued("agent", "A", "only lines of this agent, or container"),
        _valued("unit", "U", "only lines of this unit, container or file"),
        _valued("op", "O", "only lines of this op"),
        _valued("grep", "RE", "only lines in which this is found", ValueKind.REGEX),
        _LINES,
        Option("follow", "go on with new lines until interrupted", short="f"),
    )),
    Subcommand("report",
            "throughput, utilization, available nodes or jobs per state over time; what happened to a job",
            Argument("WHAT", "throughput, utilization, nodes or states; with --markdown or --html a job",
                     choices=REPORTS),
            (
        _valued("to-state", "S", "the state that throughput counts, or that allocations are in"),
        _valued("from-state", "S", "only changes from this state"),
        _valued("job", "ID", "only these jobs, by id, separated by commas"),
        _valued("batch-job", "ID", "only jobs of this allocation"),
        _valued("scheduler-id", "N", "the same by the scheduler's id"),
        _valued("tag", "K:V", "only jobs with these tags, separated by commas"),
        Option("unweighted", "count jobs and not their nodes"),
        Option("exact", "Balsam's own figures, its faults included"),
        Option("plot", "draw a chart as wide as the terminal"),
        Option("svg", "print the chart as an SVG picture"),
        Option("markdown", "what happened to the job, as the beginning of a post-mortem", frees=True),
        Option("html", "the same as a page of one file, to send or to keep", frees=True),
    )),
    Subcommand("agents", "the agents, what they hold, and where their logs are",
            _filter("such as state:lost host:v4 user:vn9m"), (_LINES,)),
    Subcommand("nodes", "the nodes of a cluster: why some are down or drained, what runs on them",
            _filter("such as is:broken partition:gpu reason:disk"), (_LINES,)),
    Subcommand("find", "ranked candidates for anything pasted, with reasons",
            Argument("THING",
                "an id, a prefix, a path, a container, a name or a whole log line; - reads it", many=True),
            (_LINES,)),
    Subcommand("trace", "a trace as a waterfall: where it failed and what it spent its time on",
            Argument("THING",
                "a trace id, a TRACEPARENT, a line or address that holds one, a job id or a file; - reads it",
                many=True), (_LINES,)),
    Subcommand("bundle",
            "all that is known of a job in one file, masked, to be looked at elsewhere with `replay`",
            _ID, (
        _valued("output", "FILE", "the file to make, else ID.jobtui here", short="o"),
    ), prints=False),
    Subcommand("record",
            "keep what the sources deliver in a directory until interrupted; the oldest is dropped",
            Argument("DIR", "the directory, made when it is not there"), (
        _valued("limit", "MB", "how many MB to keep, 1000 without it", ValueKind.COUNT),
        _valued("for", "T", "end after so long, such as 8h"),
    ), prints=False),
    Subcommand("remember",
            "keep how runs end, and what the sources still know, for `seen` and `explain`, until interrupted",
            None, (
        _valued("limit", "MB", "how many MB to keep, 2000 without it", ValueKind.COUNT),
        _valued("for", "T", "end after so long, such as 8h"),
        Option("once", "take in what the sources know now, and end"),
        Option("forget", "remove all that is remembered"),
    ), prints=False),
    Subcommand("seen",
            "failures that are remembered: how often, since when, what goes with them; and odd hosts",
            Argument("TEXT", "a job, or words of a failure", required=False, many=True), (_LINES,)),
    Subcommand("changed", "what is otherwise since a time: failures, and what runs fail or are slower on",
            Argument("TIME", "a time, or two: from T1 to T2, and since T2; or two filters: host:v4 host:v7",
                     many=True), (_LINES,)),
    Subcommand("replay",
            "the dashboard on a bundle or recording, or any other command: replay FILE explain ID",
            Argument("FILE", "a bundle, a recording, or its directory; then a command line"), prints=False,
                wraps=True),
    Subcommand("script", "the script and environment a job was submitted with, out of an archive",
            Argument("ID", "a job of Slurm or Torque as 22, 22_1, huppel/22, or a computeJid",
                required=False),
            (
        _valued("diff", "OTHER",
                "how it differs from another job's; good: the last good one of its name and user"),
        Option("unified", "print a difference line by line, not beside each other"),
        _valued("grep", "RE", "instead of a job: which scripts contain this, since --since", ValueKind.REGEX),
        _valued("user", "U", "only scripts of this user"),
        _LINES,
    )),
    Subcommand("doctor", "check every configured source: reachable, readable, fresh, understood"),
    Subcommand("demo", "a simulated job system in a temporary directory, or a command on it: demo explain ID",
            Argument("COMMAND", "a command line, such as explain ID", required=False), (
        _valued("seed", "N", "same number, same demo; 1 without it", ValueKind.COUNT),
        _valued("incident", "NAME", "play a known failure; `list` names them"),
    ), prints=False, wraps=True),
    Subcommand("serve", "the dashboard in a browser, on this machine only unless told otherwise",
            Argument("THING", "where it opens; or demo, or replay FILE", required=False, many=True), (
        _valued("listen", "HOST:PORT", "where, 127.0.0.1:8417 without it; port 0 for any that is free"),
    ), prints=False),
    Subcommand("mcp", "answer an assistant over the Model Context Protocol, on standard input and output",
            prints=False),
    Subcommand("login", "log in to a server, and keep the login where its own client looks",
            Argument("SYSTEM", "balsam", choices=("balsam",)), prints=False),
    Subcommand("init", "find out what there is to read, and write the configuration file when told to",
            Argument("FILE", "where to write it, else where jobtui looks for it", required=False), (
        Option("yes", "write it without asking, but never over one that is there"),
    ), prints=False),
    Subcommand("config", "the effective settings and where each came from"),
    Subcommand("completion", "the completion script for a shell",
            Argument("SHELL", "bash, zsh or fish; the script asks with the words that were typed after it",
                many=True, choices=("bash", "zsh", "fish")), prints=False),
)  # fmt: skip

COMMAND_BY_NAME: Mapping[str, Subcommand] = {command.name: command for command in COMMANDS}


def flags_of(command: Subcommand) -> tuple[Option, ...]:
    return command.flags + (OUTPUT_FLAGS if command.prints else ()) + GENERAL_FLAGS
