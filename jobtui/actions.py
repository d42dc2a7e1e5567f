"""Every action and its keys, in one table, of which bindings, footer, help and palette are made."""

from collections.abc import Iterator
from typing import NamedTuple

from jobtui.action_types import EVERYWHERE as EVERYWHERE
from jobtui.action_types import SHOWN_KEYS as SHOWN_KEYS
from jobtui.action_types import Action as Action
from jobtui.action_types import Place as Place
from jobtui.action_types import Topic as Topic
from jobtui.action_types import shown_key as shown_key

_JOBS = frozenset({Place.JOBS})
_JOB = frozenset({Place.JOB})
_LOGS = frozenset({Place.LOGS})
_CHOOSING = frozenset({Place.CHOOSING})
_COLUMNS = frozenset({Place.COLUMNS})
_LOG_SET = frozenset({Place.LOG_SET})
_AGENTS = frozenset({Place.AGENTS})
_INCIDENTS = frozenset({Place.INCIDENTS})
_CHARTS = frozenset({Place.CHARTS})
_TRACES = frozenset({Place.TRACES})
_TRACE = frozenset({Place.TRACE})
_LISTS = frozenset({Place.JOBS, Place.JOB, Place.AGENTS, Place.SOURCES, Place.INCIDENTS, Place.TRACES})

ACTIONS: tuple[Action, ...] = (
    Action("app.go('jobs')", ("1",), "All jobs", Topic.GO, hint="jobs", rank=5),
    Action("app.go('logs')", ("2",), "The logs, line by line", Topic.GO, hint="logs", rank=4),
    Action("app.go('agents')", ("3",), "The agents, what they hold", Topic.GO, hint="agents", rank=4),
    Action("app.go('charts')", ("4",), "Charts of jobs over time", Topic.GO, hint="charts", rank=4),
    Action("app.go('traces')", ("5",), "Recent traces of jobs", Topic.GO, hint="traces", rank=4),
    Action(
        "app.go('sources')",
        ("6",),
        "What is read, how old it is, what went wrong",
        Topic.GO,
        hint="sources",
        rank=4,
    ),
    Action(
        "app.go('incidents')", ("7",), "What went wrong lately, grouped", Topic.GO, hint="incidents", rank=4
    ),
    Action("app.go('allocations')", ("8",), "Sites, and the nodes schedulers give them", Topic.GO),
    Action("open", ("enter",), "Open the trace under the cursor", Topic.GO, _TRACES, "open", 2),
    Action("open", ("enter",), "Open the first job of the group", Topic.GO, _INCIDENTS, "first job", 2),
    Action("jobs", ("o",), "List the jobs of the group", Topic.GO, _INCIDENTS, "its jobs", 3),
    Action(
        "window",
        ("w",),
        "What went wrong in the last hour, 6 hours, day, week",
        Topic.LOOK,
        _INCIDENTS,
        "window",
        3,
    ),
    Action("open", ("enter",), "Open the job under the cursor", Topic.GO, _JOBS, "open", 2),
    Action(
        "open",
        ("enter",),
        "Read the line behind the step, or the file; open the log at the line",
        Topic.GO,
        _JOB,
        "read",
        2,
    ),
    Action(
        "open",
        ("enter",),
        "Read all about the source under the cursor",
        Topic.GO,
        frozenset({Place.SOURCES}),
        "read",
        2,
    ),
    Action(
        "open",
        ("enter",),
        "Read the log of the agent, or what to type to read it",
        Topic.GO,
        _AGENTS,
        "its log",
        2,
    ),
    Action("jobs", ("o",), "To the job whose op the agent holds", Topic.GO, _AGENTS, "its job", 3),
    Action(
        "back",
        ("escape",),
        "Back; on the jobs: end the filter, then forget the marks",
        Topic.GO,
        hint="back",
        rank=1,
    ),
    Action("open", ("enter",), "Go to the one under the cursor", Topic.GO, _CHOOSING, "go", 2),
    Action("open", ("enter",), "Show the jobs with these columns", Topic.GO, _COLUMNS, "done", 2),
    Action(
        "command", ("colon",), "A command, or anything to go to", Topic.GO, EVERYWHERE - _LOGS, "command", 5
    ),
    Action("move('up')", ("k", "up"), "A line up", Topic.MOVE),
    Action("move('down')", ("j", "down"), "A line down", Topic.MOVE),
    Action("move('half_up')", ("ctrl+u",), "Half a page up", Topic.MOVE),
    Action("move('half_down')", ("ctrl+d",), "Half a page down", Topic.MOVE),
    Action("move('page_up')", ("pageup", "ctrl+b"), "A page up", Topic.MOVE),
    Action("move('page_down')", ("pagedown", "ctrl+f"), "A page down", Topic.MOVE),
    Action("move('top')", ("g", "home"), "To the first line, and stay with whatever comes first", Topic.MOVE),
    Action("move('bottom')", ("G", "end"), "To the last line", Topic.MOVE),
    Action(
        "switch_pane",
        ("tab",),
        "From one pane to the other: ops and steps, files and text",
        Topic.MOVE,
        _JOB,
        "pane",
        4,
    ),
    Action("filter", ("slash",), "Filter the jobs", Topic.LOOK, _JOBS, "filter", 2),
    Action("filter", ("slash",), "Filter the agents: state:lost host:v4", Topic.LOOK, _AGENTS, "filter", 2),
    Action(
        "filter",
        ("slash",),
        "Filter the traces: service:fife dur>10m error:yes",
        Topic.LOOK,
        _TRACES,
        "filter",
        2,
    ),
    Action("sort", ("s",), "Sort by the next column", Topic.LOOK, _JOBS | _AGENTS | _TRACES, "sort"),
    Action("reverse", ("S",), "Sort the other way round", Topic.LOOK, _JOBS | _AGENTS | _TRACES),
    Action("mark", ("space",), "Mark the job under the cursor, or take the mark away", Topic.LOOK, _JOBS),
    Action(
        "show_hidden", ("x",), "Show the jobs that are only compute calls, or hide them", Topic.LOOK, _JOBS
    ),
    Action(
        "show_hidden",
        ("x",),
        "Show the ops that only ask for a status, or hide them",
        Topic.LOOK,
        _JOB,
        "hidden",
        4,
    ),
    Action(
        "columns", ("c",), "Choose columns, their order, and by which to sort", Topic.LOOK, _JOBS, "columns"
    ),
    Action("mark", ("space",), "Show the column, or leave it out", Topic.LOOK, _COLUMNS, "show", 2),
    Action(
        "shift(-1)", ("K", "shift+up"), "Put the column further to the left", Topic.LOOK, _COLUMNS, "left"
    ),
    Action(
        "shift(1)", ("J", "shift+down"), "Put the column further to the right", Topic.LOOK, _COLUMNS, "right"
    ),
    Action(
        "sort",
        ("s",),
        "Sort by the column; again: in reverse; again: urgent first",
        Topic.LOOK,
        _COLUMNS,
        "sort",
    ),
    Action("usual", ("d",), "The usual columns", Topic.LOOK, _COLUMNS, "usual"),
    Action("tab('timeline')", ("o",), "Its ops and what happened to them", Topic.JOB, _JOB, "ops", 3),
    Action(
        "tab('why')",
        ("w",),
        "Why it stands so: the lines that prove it, what to type next",
        Topic.JOB,
        _JOB,
        "why",
        2,
    ),
    Action("tab('logs')", ("l",), "The lines of all logs that belong to it", Topic.JOB, _JOB, "logs", 3),
    Action("tab('history')", ("h",), "Its runs, beside the last good one", Topic.JOB, _JOB, "history", 3),
    Action(
        "tab('script')",
        ("s",),
        "The script it was submitted with, its environment",
        Topic.JOB,
        _JOB,
        "script",
        4,
    ),
    Action("tab('files')", ("f",), "Its run directory, and what its files say", Topic.JOB, _JOB, "files", 3),
    Action("tab('trace')", ("T",), "Its trace: which span failed, and why", Topic.JOB, _JOB, "trace", 3),
    Action("tab('raw')", ("r",), "Its record as it is stored", Topic.JOB, _JOB, "raw", 3),
    Action("run(-1)", ("left_square_bracket",), "The run before", Topic.JOB, _JOB, "run", 4),
    Action("run(1)", ("right_square_bracket",), "The next run", Topic.JOB, _JOB),
    Action(
        "compare", ("d",), "Beside the last good run: steps, times, inputs", Topic.JOB, _JOB, "compare", 4
    ),
    Action("error", ("e",), "Read its error as a whole", Topic.JOB, _JOB, "error", 4),
    Action(
        "error",
        ("e",),
        "Read the error of the source as a whole",
        Topic.GO,
        frozenset({Place.SOURCES}),
        "error",
        4,
    ),
    Action("app.times", ("t",), "Ages or times of day", Topic.LOOK, _LISTS, "times", 4),
    Action("app.zone", ("u",), "Times in UTC or in the zone of this machine", Topic.LOOK),
    Action(
        "app.pause",
        ("p",),
        "Pause: everything stays as it is; and go on. In a replay: play, faster, stop",
        Topic.LOOK,
        hint="pause",
        rank=5,
    ),
    Action(
        "app.copy",
        ("y",),
        "Copy what is selected or under the cursor: the id, the line, the text, how to read a log",
        Topic.TAKE,
        hint="copy",
    ),
    Action("next_chart(1)", ("tab",), "The next chart", Topic.CHARTS, _CHARTS, "chart", 2),
    Action("next_chart(-1)", ("shift+tab",), "The chart before", Topic.CHARTS, _CHARTS),
    Action(
        "cursor(-1)",
        ("left", "h"),
        "The cursor to the left; what it is on is told above",
        Topic.CHARTS,
        _CHARTS,
        "cursor",
        3,
    ),
    Action("cursor(1)", ("right", "l"), "The cursor to the right", Topic.CHARTS, _CHARTS),
    Action("zoom(0.5)", ("plus", "equals_sign"), "Look at half as much", Topic.CHARTS, _CHARTS, "zoom", 2),
    Action("zoom(2)", ("minus",), "Look at twice as much", Topic.CHARTS, _CHARTS),
    Action("whole", ("0",), "Look at all that is known", Topic.CHARTS, _CHARTS, "all", 3),
    Action("pan(-0.5)", ("shift+left", "H"), "Look at earlier times", Topic.CHARTS, _CHARTS, "earlier", 3),
    Action("pan(0.5)", ("shift+right", "L"), "Look at later times", Topic.CHARTS, _CHARTS),
    Action(
        "window",
        ("w",),
        "Look at the last 5 minutes, 15 minutes, hour, 6 hours, day, week, at all",
        Topic.CHARTS,
        _CHARTS,
        "window",
        3,
    ),
    Action("open", ("enter",), "Read all that the chart says", Topic.CHARTS, _CHARTS, "read", 3),
    Action(
        "filter",
        ("slash",),
        "Filter the jobs that count: app:srw user:vn9m",
        Topic.CHARTS,
        _CHARTS,
        "filter",
        2,
    ),
    Action("failure(1)", ("e", "n"), "To the next span that failed", Topic.TRACES, _TRACE, "failure", 2),
    Action("failure(-1)", ("E", "N"), "To the span that failed before", Topic.TRACES, _TRACE),
    Action(
        "failures", ("x",), "Show only what leads to failures, or all again", Topic.TRACES, _TRACE, "why", 2
    ),
    Action("open", ("enter",), "Read all about the span; unfold like ones", Topic.TRACES, _TRACE, "read", 3),
    Action("fold(-1)", ("left", "h"), "Fold what is below; again: to what it is in", Topic.TRACES, _TRACE),
    Action("fold(1)", ("right", "l"), "Unfold what is below", Topic.TRACES, _TRACE),
    Action("toggle_fold", ("space",), "Fold what is below, or unfold it", Topic.TRACES, _TRACE, "fold", 3),
    Action("fold_all", ("z",), "Fold everything, or unfold it", Topic.TRACES, _TRACE, "all", 4),
    Action(
        "filter",
        ("slash",),
        "Filter the spans: service:worker dur>10ms error:yes host.name:w03",
        Topic.TRACES,
        _TRACE,
        "filter",
        2,
    ),
    Action("zoom(0.5)", ("plus", "equals_sign"), "Look at half of the time", Topic.TRACES, _TRACE, "zoom", 3),
    Action("zoom(2)", ("minus",), "Look at twice as much", Topic.TRACES, _TRACE),
    Action("zoom_to", ("f",), "Fill the axis with the span", Topic.TRACES, _TRACE, "fill", 4),
    Action("whole", ("0",), "Look at all of the time", Topic.TRACES, _TRACE),
    Action("pan(-0.25)", ("shift+left", "H"), "Look at earlier times", Topic.TRACES, _TRACE),
    Action("pan(0.25)", ("shift+right", "L"), "Look at later times", Topic.TRACES, _TRACE),
    Action(
        "path", ("c",), "Mark the critical path: on what the time went", Topic.TRACES, _TRACE, "critical", 3
    ),
    Action(
        "squeeze", ("w",), "Squeeze times in which nothing ran, or show them to scale", Topic.TRACES, _TRACE
    ),
    Action(
        "switch_pane", ("tab",), "From the spans to the text below, or back", Topic.TRACES, _TRACE, "text", 4
    ),
    Action("open", ("enter",), "Read the whole line", Topic.LOGS, _LOGS, "line", 3),
    Action(
        "search",
        ("slash",),
        "Search a text; ~ before it: a regular expression",
        Topic.LOGS,
        _LOGS,
        "search",
        2,
    ),
    Action("hit(1)", ("n",), "To the next line found", Topic.LOGS, _LOGS, "next", 3),
    Action("hit(-1)", ("N",), "To the line found before", Topic.LOGS, _LOGS),
    Action(
        "matches", ("ampersand",), "Show only the lines found, or all again", Topic.LOGS, _LOGS, "filter", 3
    ),
    Action("error(1)", ("e",), "To the next error", Topic.LOGS, _LOGS, "error", 2),
    Action("error(-1)", ("E",), "To the error before", Topic.LOGS, _LOGS),
    Action(
        "follow", ("f",), "Stay at the end while lines come, or no longer", Topic.LOGS, _LOGS, "follow", 3
    ),
    Action(
        "next_log(1)",
        ("tab",),
        "The next log; the first are all in one, by time",
        Topic.LOGS,
        _LOGS,
        "log",
        3,
    ),
    Action("log_set", ("s",), "Choose which logs are shown in one", Topic.LOGS, _LOGS, "sources", 4),
    Action("mark", ("space",), "Take the log in, or leave it out", Topic.LOGS, _LOG_SET, "mark", 2),
    Action("mark_all", ("a",), "Take all logs in, or none", Topic.LOGS, _LOG_SET, "all", 3),
    Action("open", ("enter",), "Show the chosen logs in one, by time", Topic.LOGS, _LOG_SET, "show", 2),
    Action("next_log(-1)", ("shift+tab",), "The log before", Topic.LOGS, _LOGS),
    Action("wrap", ("w",), "Break long lines, or go sideways", Topic.LOGS, _LOGS, "wrap", 4),
    Action("heads", ("x",), "Show the heads of lines, or the time only", Topic.LOGS, _LOGS, "heads", 5),
    Action("sideways(-1)", ("left", "h"), "To the left", Topic.LOGS, _LOGS),
    Action("sideways(1)", ("right", "l"), "To the right", Topic.LOGS, _LOGS),
    Action(
        "command",
        ("colon",),
        "To a line by its number; else a command as anywhere",
        Topic.LOGS,
        _LOGS,
        "line",
        5,
    ),
    Action("bookmark", ("m",), "Set a bookmark, or take it away", Topic.LOGS, _LOGS),
    Action("next_bookmark", ("apostrophe",), "To the next bookmark", Topic.LOGS, _LOGS),
    Action("select_lines", ("v",), "Begin to select lines, or end it", Topic.LOGS, _LOGS),
    Action("select('up')", ("shift+up",), "Select upwards", Topic.LOGS, _LOGS),
    Action("select('down')", ("shift+down",), "Select downwards", Topic.LOGS, _LOGS),
    Action(
        "copy_block", ("Y",), "Copy the selected lines, or the line with its traceback", Topic.LOGS, _LOGS
    ),
    Action(
        "app.copy_block", ("Y",), "Copy all about what is under the cursor", Topic.TAKE, EVERYWHERE - _LOGS
    ),
    Action("app.copy_command", ("ctrl+y",), "Copy the command that shows the same outside", Topic.TAKE),
    Action("app.page", ("P",), "Open the log at the line, or the record, in your $PAGER", Topic.TAKE),
    Action("app.edit", ("ctrl+e",), "The same in your $EDITOR, read only", Topic.TAKE),
    Action("app.step(-60)", ("comma",), "In a replay: a minute back", Topic.REPLAY),
    Action("app.step(60)", ("full_stop",), "In a replay: on by a minute", Topic.REPLAY),
    Action("app.change(False)", ("less_than_sign",), "In a replay: to what happened before", Topic.REPLAY),
    Action("app.change(True)", ("greater_than_sign",), "In a replay: to what happens next", Topic.REPLAY),
    Action("app.mouse", ("M",), "Use the mouse, or leave it to the terminal", Topic.PROGRAM),
    Action("app.suspend_process", ("ctrl+z",), "Back to the shell; fg comes back", Topic.PROGRAM),
    Action("app.command_palette", ("ctrl+p",), "Palette: every action by name", Topic.PROGRAM),
    Action("app.keys", ("question_mark",), "This page", Topic.PROGRAM, hint="keys", rank=1),
    Action("app.quit", ("q", "ctrl+c"), "Quit", Topic.PROGRAM, hint="quit", rank=1),
)
"""All of them, in the order of footer and help."""


class Keymap:
    """The actions with the keys that hold in this process: those of the table until a user wants others."""

    actions = ACTIONS


def actions_at(place: Place) -> Iterator[Action]:
    """The actions that can be taken on a screen."""
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
    """What the footer of a screen names: not the way to itself, and on the jobs no way back."""
    needless = {f"app.go('{place}')"} | ({"back"} if place is Place.JOBS else set())
    return [
        Hint(shown_key(action.keys[0]), action.hint, action.rank)
        for action in actions_at(place)
        if action.hint and action.keys and action.call not in needless
    ]
