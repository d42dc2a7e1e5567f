"""The commands, one entry each, with the flags that are no settings."""

from collections.abc import Mapping

from jobtui.grammar.kinds import Argument, Command, Expects, Flag

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
        "serve",
        "the dashboard in a browser, on this machine only unless told otherwise",
        Argument("THING", "where it opens; or demo, or replay FILE", required=False, many=True),
        (
            Flag(
                "listen",
                "where, 127.0.0.1:8417 without it; port 0 for any that is free",
                metavar="HOST:PORT",
                expects=Expects.TEXT,
            ),
        ),
        prints=False,
    ),
    Command(
        "login",
        "log in to a server, and keep the login where its own client looks",
        Argument("SYSTEM", "balsam", choices=("balsam",)),
        prints=False,
    ),
    Command(
        "init",
        "find out what there is to read, and write the configuration file when told to",
        Argument("FILE", "where to write it, else where jobtui looks for it", required=False),
        (Flag("yes", "write it without asking, but never over one that is there"),),
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


def flags_of(command: Command) -> tuple[Flag, ...]:
    """Every flag of a command that is no setting."""
    return command.flags + (OUTPUT_FLAGS if command.prints else ()) + GENERAL_FLAGS
