"""Every action and its keys, in one table, of which bindings, footer, help and palette are made."""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple


class Place(StrEnum):
    """A screen on which an action can be taken."""

    JOBS = "jobs"
    JOB = "job"
    AGENTS = "agents"
    CHARTS = "charts"
    SOURCES = "sources"
    INCIDENTS = "incidents"
    ALLOCATIONS = "allocations"
    READING = "reading"
    LOGS = "logs"
    CHOOSING = "choosing"
    COLUMNS = "columns"
    LOG_SET = "log set"
    TRACES = "traces"
    TRACE = "trace"


EVERYWHERE = frozenset(Place)


class Topic(StrEnum):
    """A heading of the help screen."""

    GO = "Go to"
    MOVE = "Move"
    LOOK = "Look at jobs"
    JOB = "On one job"
    LOGS = "Read logs"
    CHARTS = "Look at charts"
    TRACES = "Look at a trace"
    TAKE = "Take along"
    REPLAY = "Go through a recording"
    PROGRAM = "Program"


OF_ONE_SCREEN = frozenset({Topic.JOB, Topic.LOGS, Topic.CHARTS, Topic.TRACES})
"""Topics whose name is that of a screen."""
FEW_PLACES = 3


class Action(NamedTuple):
    """One thing a user can do.

    `keys` are Textual's names of keys, the first one is shown; `call` is what is called on the screen
    (`app.` before it: on the app). `hint` is its word in the footer, None when it is not there; where there
    is little room those with the lowest `rank` stay.
    """

    call: str
    keys: tuple[str, ...]
    help: str
    topic: Topic
    places: frozenset[Place] = EVERYWHERE
    hint: str | None = None
    rank: int = 3

    @property
    def name(self) -> str:
        words = NAMES.get(self.call) or self.call.removeprefix("app.")
        return words.replace("('", "-").replace("')", "").replace("_", "-")

    @property
    def shown_keys(self) -> str:
        return " ".join(map(shown_key, self.keys))

    def is_of(self, place: Place) -> bool:
        return place in self.places and len(self.places) <= FEW_PLACES

    @property
    def where(self) -> str:
        if self.topic in OF_ONE_SCREEN or len(self.places) > FEW_PLACES:
            return ""
        return ", ".join(sorted(self.places))


NAMES = {
    "app.keys": "keys", "app.step(-60)": "step-back", "app.step(60)": "step-on",
    "app.change(False)": "change-before", "app.change(True)": "change-next", "shift(-1)": "column-left",
    "shift(1)": "column-right", "run(-1)": "run-before", "run(1)": "run-next",
    "next_chart(1)": "chart-next", "next_chart(-1)": "chart-before", "cursor(-1)": "cursor-left",
    "cursor(1)": "cursor-right", "zoom(0.5)": "zoom-in", "zoom(2)": "zoom-out", "pan(-0.5)": "pan-left",
    "pan(0.5)": "pan-right", "pan(-0.25)": "pan-left", "pan(0.25)": "pan-right",
    "failure(1)": "failure-next", "failure(-1)": "failure-before", "fold(-1)": "fold", "fold(1)": "unfold",
    "hit(1)": "hit-next", "hit(-1)": "hit-before", "error(1)": "error-next", "error(-1)": "error-before",
    "next_log(1)": "log-next", "next_log(-1)": "log-before", "sideways(-1)": "sideways-left",
    "sideways(1)": "sideways-right",
}  # fmt: skip
"""Names of actions whose call does not say enough in words."""

SHOWN_KEYS = {
    "comma": ",", "full_stop": ".", "less_than_sign": "<", "greater_than_sign": ">", "enter": "↵",
    "escape": "esc", "slash": "/", "question_mark": "?", "left_square_bracket": "[",
    "right_square_bracket": "]", "plus": "+", "minus": "-", "equals_sign": "=", "shift+left": "shift+←",
    "shift+right": "shift+→", "up": "↑", "down": "↓", "pageup": "pgup", "pagedown": "pgdn", "left": "←",
    "right": "→", "ampersand": "&", "colon": ":", "apostrophe": "'", "shift+up": "shift+↑",
    "shift+down": "shift+↓",
}  # fmt: skip


class Signs:
    """Whether this process may name keys by signs such as arrows; a terminal may not have them."""

    in_words = False


def shown_key(key: str) -> str:
    shown = SHOWN_KEYS.get(key, key)
    return key if Signs.in_words and not shown.isascii() else shown


GO, MOVE, LOOK, JOB, LOGS, CHARTS, TRACES, TAKE, REPLAY, PROGRAM = Topic
NOT_LOGS = EVERYWHERE - {Place.LOGS}
SORTED = frozenset({Place.JOBS, Place.AGENTS, Place.TRACES})
LISTS = SORTED | {Place.JOB, Place.SOURCES, Place.INCIDENTS}


def _action(
    call: str,
    keys: str,
    help: str,
    topic: Topic,
    places: Place | frozenset[Place] = EVERYWHERE,
    hint: str | None = None,
    rank: int = 3,
) -> Action:
    on = frozenset({places}) if isinstance(places, Place) else places
    return Action(call, tuple(keys.split()), help, topic, on, hint, rank)


ACTIONS: tuple[Action, ...] = (
    _action("app.go('jobs')", "1", "All jobs", GO, hint="jobs", rank=5),
    _action("app.go('logs')", "2", "The logs, line by line", GO, hint="logs", rank=4),
    _action("app.go('agents')", "3", "The agents, what they hold", GO, hint="agents", rank=4),
    _action("app.go('charts')", "4", "Charts of jobs over time", GO, hint="charts", rank=4),
    _action("app.go('traces')", "5", "Recent traces of jobs", GO, hint="traces", rank=4),
    _action("app.go('sources')", "6", "What is read, how old it is, what went wrong",
            GO, hint="sources", rank=4),
    _action("app.go('incidents')", "7", "What went wrong lately, grouped", GO, hint="incidents", rank=4),
    _action("app.go('allocations')", "8", "Sites, and the nodes schedulers give them", GO),
    _action("open", "enter", "Open the trace under the cursor", GO, Place.TRACES, "open", 2),
    _action("open", "enter", "Open the first job of the group", GO, Place.INCIDENTS, "first job", 2),
    _action("jobs", "o", "List the jobs of the group", GO, Place.INCIDENTS, "its jobs"),
    _action("window", "w", "What went wrong in the last hour, 6 hours, day, week",
            LOOK, Place.INCIDENTS, "window"),
    _action("open", "enter", "Open the job under the cursor", GO, Place.JOBS, "open", 2),
    _action("open", "enter", "Read the line behind the step, or the file; open the log at the line",
            GO, Place.JOB, "read", 2),
    _action("open", "enter", "Read all about the source under the cursor", GO, Place.SOURCES, "read", 2),
    _action("open", "enter", "Read the log of the agent, or what to type to read it",
            GO, Place.AGENTS, "its log", 2),
    _action("jobs", "o", "To the job whose op the agent holds", GO, Place.AGENTS, "its job"),
    _action("back", "escape", "Back; on the jobs: end the filter, then forget the marks",
            GO, hint="back", rank=1),
    _action("open", "enter", "Go to the one under the cursor", GO, Place.CHOOSING, "go", 2),
    _action("open", "enter", "Show the jobs with these columns", GO, Place.COLUMNS, "done", 2),
    _action("command", "colon", "A command, or anything to go to", GO, NOT_LOGS, "command", 5),
    _action("move('up')", "k up", "A line up", MOVE),
    _action("move('down')", "j down", "A line down", MOVE),
    _action("move('half_up')", "ctrl+u", "Half a page up", MOVE),
    _action("move('half_down')", "ctrl+d", "Half a page down", MOVE),
    _action("move('page_up')", "pageup ctrl+b", "A page up", MOVE),
    _action("move('page_down')", "pagedown ctrl+f", "A page down", MOVE),
    _action("move('top')", "g home", "To the first line, and stay with whatever comes first", MOVE),
    _action("move('bottom')", "G end", "To the last line", MOVE),
    _action("switch_pane", "tab", "From one pane to the other: ops and steps, files and text",
            MOVE, Place.JOB, "pane", 4),
    _action("filter", "slash", "Filter the jobs", LOOK, Place.JOBS, "filter", 2),
    _action("filter", "slash", "Filter the agents: state:lost host:v4", LOOK, Place.AGENTS, "filter", 2),
    _action("filter", "slash", "Filter the traces: service:fife dur>10m error:yes",
            LOOK, Place.TRACES, "filter", 2),
    _action("sort", "s", "Sort by the next column", LOOK, SORTED, "sort"),
    _action("reverse", "S", "Sort the other way round", LOOK, SORTED),
    _action("failed", "F", "Only jobs that failed or are stuck, or all again", LOOK, Place.JOBS, "failed", 2),
    _action("detail", "d", "Show or hide why the job under the cursor is as it is", LOOK, Place.JOBS),
    _action("mark", "space", "Mark the job under the cursor, or take the mark away", LOOK, Place.JOBS),
    _action("show_hidden", "x", "Show the jobs that are only compute calls, or hide them", LOOK, Place.JOBS),
    _action("show_hidden", "x", "Show the ops that only ask for a status, or hide them",
            LOOK, Place.JOB, "hidden", 4),
    _action("columns", "c", "Choose columns, their order, and by which to sort", LOOK, Place.JOBS, "columns"),
    _action("mark", "space", "Show the column, or leave it out", LOOK, Place.COLUMNS, "show", 2),
    _action("shift(-1)", "K shift+up", "Put the column further to the left", LOOK, Place.COLUMNS, "left"),
    _action("shift(1)", "J shift+down", "Put the column further to the right", LOOK, Place.COLUMNS, "right"),
    _action("sort", "s", "Sort by the column; again: in reverse; again: urgent first",
            LOOK, Place.COLUMNS, "sort"),
    _action("usual", "d", "The usual columns", LOOK, Place.COLUMNS, "usual"),
    _action("tab('timeline')", "o", "Its ops and what happened to them", JOB, Place.JOB, "ops"),
    _action("tab('why')", "w", "Why it is in this state: the lines that prove it, what to type next",
            JOB, Place.JOB, "why", 2),
    _action("tab('logs')", "l", "The lines of all logs that belong to it", JOB, Place.JOB, "logs"),
    _action("tab('history')", "h", "Its runs, beside the last good one", JOB, Place.JOB, "history"),
    _action("tab('script')", "s", "The script it was submitted with, its environment",
            JOB, Place.JOB, "script", 4),
    _action("tab('files')", "f", "Its run directory, and what its files say", JOB, Place.JOB, "files"),
    _action("tab('trace')", "T", "Its trace: which span failed, and why", JOB, Place.JOB, "trace"),
    _action("tab('raw')", "r", "Its record as it is stored", JOB, Place.JOB, "raw"),
    _action("run(-1)", "left_square_bracket", "The run before", JOB, Place.JOB, "run", 4),
    _action("run(1)", "right_square_bracket", "The next run", JOB, Place.JOB),
    _action("compare", "d", "Beside the last good run: steps, times, inputs", JOB, Place.JOB, "compare", 4),
    _action("error", "e", "Read its error as a whole", JOB, Place.JOB, "error", 4),
    _action("error", "e", "Read the error of the source as a whole", GO, Place.SOURCES, "error", 4),
    _action("app.times", "t", "Ages or times of day", LOOK, LISTS, "times", 4),
    _action("app.zone", "u", "Times in UTC or in the zone of this machine", LOOK),
    _action("app.pause", "p", "Pause: everything stays as it is; and go on. In a replay: play, faster, stop",
            LOOK, hint="pause", rank=5),
    _action("app.copy", "y",
            "Copy what is selected or under the cursor: the id, the line, the text, how to read a log",
            TAKE, hint="copy"),
    _action("next_chart(1)", "tab", "The next chart", CHARTS, Place.CHARTS, "chart", 2),
    _action("next_chart(-1)", "shift+tab", "The chart before", CHARTS, Place.CHARTS),
    _action("cursor(-1)", "left h", "The cursor to the left; what is under it is shown above",
            CHARTS, Place.CHARTS, "cursor"),
    _action("cursor(1)", "right l", "The cursor to the right", CHARTS, Place.CHARTS),
    _action("zoom(0.5)", "plus equals_sign", "Look at half as much", CHARTS, Place.CHARTS, "zoom", 2),
    _action("zoom(2)", "minus", "Look at twice as much", CHARTS, Place.CHARTS),
    _action("whole", "0", "Look at all that is known", CHARTS, Place.CHARTS, "all"),
    _action("pan(-0.5)", "shift+left H", "Look at earlier times", CHARTS, Place.CHARTS, "earlier"),
    _action("pan(0.5)", "shift+right L", "Look at later times", CHARTS, Place.CHARTS),
    _action("window", "w", "Look at the last 5 minutes, 15 minutes, hour, 6 hours, day, week, at all",
            CHARTS, Place.CHARTS, "window"),
    _action("open", "enter", "Read all that the chart says", CHARTS, Place.CHARTS, "read"),
    _action("filter", "slash", "Filter the jobs that count: app:srw user:vn9m",
            CHARTS, Place.CHARTS, "filter", 2),
    _action("failure(1)", "e n", "To the next span that failed", TRACES, Place.TRACE, "failure", 2),
    _action("failure(-1)", "E N", "To the span that failed before", TRACES, Place.TRACE),
    _action("failures", "x", "Show only what leads to failures, or all again", TRACES, Place.TRACE, "why", 2),
    _action("open", "enter", "Read all about the span; unfold like ones", TRACES, Place.TRACE, "read"),
    _action("fold(-1)", "left h", "Fold what is below; again: to what it is in", TRACES, Place.TRACE),
    _action("fold(1)", "right l", "Unfold what is below", TRACES, Place.TRACE),
    _action("toggle_fold", "space", "Fold what is below, or unfold it", TRACES, Place.TRACE, "fold"),
    _action("fold_all", "z", "Fold everything, or unfold it", TRACES, Place.TRACE, "all", 4),
    _action("filter", "slash", "Filter the spans: service:worker dur>10ms error:yes host.name:w03",
            TRACES, Place.TRACE, "filter", 2),
    _action("zoom(0.5)", "plus equals_sign", "Look at half of the time", TRACES, Place.TRACE, "zoom"),
    _action("zoom(2)", "minus", "Look at twice as much", TRACES, Place.TRACE),
    _action("zoom_to", "f", "Fill the axis with the span", TRACES, Place.TRACE, "fill", 4),
    _action("whole", "0", "Look at all of the time", TRACES, Place.TRACE),
    _action("pan(-0.25)", "shift+left H", "Look at earlier times", TRACES, Place.TRACE),
    _action("pan(0.25)", "shift+right L", "Look at later times", TRACES, Place.TRACE),
    _action("path", "c", "Mark the critical path: on what the time went", TRACES, Place.TRACE, "critical"),
    _action("squeeze", "w", "Squeeze times in which nothing ran, or show them to scale", TRACES, Place.TRACE),
    _action("switch_pane", "tab", "From the spans to the text below, or back",
            TRACES, Place.TRACE, "text", 4),
    _action("open", "enter", "Read the whole line", LOGS, Place.LOGS, "line"),
    _action("search", "slash", "Search a text; ~ before it: a regular expression",
            LOGS, Place.LOGS, "search", 2),
    _action("hit(1)", "n", "To the next line found", LOGS, Place.LOGS, "next"),
    _action("hit(-1)", "N", "To the line found before", LOGS, Place.LOGS),
    _action("matches", "ampersand", "Show only the lines found, or all again", LOGS, Place.LOGS, "filter"),
    _action("error(1)", "e", "To the next error", LOGS, Place.LOGS, "error", 2),
    _action("error(-1)", "E", "To the error before", LOGS, Place.LOGS),
    _action("follow", "f", "Stay at the end while lines come, or no longer", LOGS, Place.LOGS, "follow"),
    _action("next_log(1)", "tab", "The next log; the first are all in one, by time", LOGS, Place.LOGS, "log"),
    _action("log_set", "s", "Choose which logs are shown in one", LOGS, Place.LOGS, "sources", 4),
    _action("mark", "space", "Take the log in, or leave it out", LOGS, Place.LOG_SET, "mark", 2),
    _action("mark_all", "a", "Take all logs in, or none", LOGS, Place.LOG_SET, "all"),
    _action("open", "enter", "Show the chosen logs in one, by time", LOGS, Place.LOG_SET, "show", 2),
    _action("next_log(-1)", "shift+tab", "The log before", LOGS, Place.LOGS),
    _action("wrap", "w", "Break long lines, or go sideways", LOGS, Place.LOGS, "wrap", 4),
    _action("heads", "x", "Show the heads of lines, or the time only", LOGS, Place.LOGS, "heads", 5),
    _action("sideways(-1)", "left h", "To the left", LOGS, Place.LOGS),
    _action("sideways(1)", "right l", "To the right", LOGS, Place.LOGS),
    _action("command", "colon", "To a line by its number; else a command as anywhere",
            LOGS, Place.LOGS, "line", 5),
    _action("bookmark", "m", "Set a bookmark, or take it away", LOGS, Place.LOGS),
    _action("next_bookmark", "apostrophe", "To the next bookmark", LOGS, Place.LOGS),
    _action("select_lines", "v", "Begin to select lines, or end it", LOGS, Place.LOGS),
    _action("select('up')", "shift+up", "Select upwards", LOGS, Place.LOGS),
    _action("select('down')", "shift+down", "Select downwards", LOGS, Place.LOGS),
    _action("copy_block", "Y", "Copy the selected lines, or the line with its traceback", LOGS, Place.LOGS),
    _action("app.copy_block", "Y", "Copy all about what is under the cursor", TAKE, NOT_LOGS),
    _action("app.copy_command", "ctrl+y", "Copy the command that shows the same outside", TAKE),
    _action("app.page", "P", "Open the log at the line, or the record, in your $PAGER", TAKE),
    _action("app.edit", "ctrl+e", "The same in your $EDITOR, read only", TAKE),
    _action("app.step(-60)", "comma", "In a replay: a minute back", REPLAY),
    _action("app.step(60)", "full_stop", "In a replay: on by a minute", REPLAY),
    _action("app.change(False)", "less_than_sign", "In a replay: to what happened before", REPLAY),
    _action("app.change(True)", "greater_than_sign", "In a replay: to what happens next", REPLAY),
    _action("app.mouse", "M", "Use the mouse, or leave it to the terminal", PROGRAM),
    _action("app.suspend_process", "ctrl+z", "Back to the shell; fg comes back", PROGRAM),
    _action("app.command_palette", "ctrl+p", "Palette: every action by name", PROGRAM),
    _action("app.keys", "question_mark", "This page", PROGRAM, hint="keys", rank=1),
    _action("app.quit", "q ctrl+c", "Quit", PROGRAM, hint="quit", rank=1),
)  # fmt: skip
"""All of them, in the order of footer and help."""


class Keymap:
    """The actions with the keys that hold in this process: those of the table until a user wants others."""

    actions = ACTIONS


def actions_at(place: Place) -> Iterator[Action]:
    return (action for action in Keymap.actions if place in action.places)


def key_of(call: str) -> str:
    """The key of an action as a person writes it, "" when it has none."""
    keys = next((action.keys for action in Keymap.actions if action.call == call), ())
    return shown_key(keys[0]) if keys else ""


class Hint(NamedTuple):
    """What the footer says of an action."""

    key: str
    word: str
    rank: int


def hints_at(place: Place) -> list[Hint]:
    needless = {f"app.go('{place}')"} | ({"back"} if place is Place.JOBS else set())
    return [
        Hint(shown_key(action.keys[0]), action.hint, action.rank)
        for action in actions_at(place)
        if action.hint and action.keys and action.call not in needless
    ]
