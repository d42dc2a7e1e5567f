"""A walk through the dashboard by keys, in a real terminal: on the way each of its questions is answered."""

import sys
from functools import partial

from tests.tmux import Tmux

NAMED = frozenset({"Enter", "Escape", "Tab", "C-p"})
STEPS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    # what a person wants, the keys, what the window shows then; "-" before what it shows no longer
    ("why the first job failed", "", ("✗ failed", "% sure", "run.log:", "next")),
    ("hide that", "d", ("-% sure",)),
    ("show it again", "d", ("% sure",)),
    ("only what failed or is stuck", "F", ("/failed or stuck",)),
    ("beside the last good run", "C", ("the last good run", "difference")),
    ("back", "Escape", ("/failed or stuck",)),
    ("the steps of the job", "Enter", ("timeline", "status error")),
    ("why it failed", "w", ("evidence", "program output")),
    ("its lines", "l", ("lines of ",)),
    ("its runs", "h", ("RUN ", "RESULT")),
    ("its files", "f", ("in.json",)),
    ("its trace", "T", ("parent ",)),
    ("its record", "r", ('"jobRunMode"',)),
    ("what went wrong lately", "7", ("IN COMMON", "elsewhere")),
    ("a report of that", "m", ("copied #",)),
    ("a bundle of that", "b", ("copied jobtui",)),
    ("its jobs", "o", (" × program_failed",)),
    ("all lines", "2", ("following", "Driver(")),
    ("what lines have in common", "c", ("RECORDS", "level", "uid")),
    ("the lines again", "Escape", ("following",)),
    ("those of ten minutes ago", ": -10m Enter", ("-following",)),
    ("those that say the same folded", "z", ("folded",)),
    ("charts", "4", ("jobs waiting", "✗")),
    ("the next chart", "Tab", ("jobs done",)),
    ("a picture of it", "b", ("copied jobtui",)),
    ("traces", "5", ("FAILED STEP", "✗ ")),
    ("beside the last good trace", "C", ("CHANGE", "OTHER")),
    ("back", "Escape", ("FAILED STEP",)),
    ("one trace", "Enter", ("took",)),
    ("a screen by another word", "C-p causes", ("What went wrong lately, grouped",)),
    ("not that", "Escape", ("-grouped",)),
    ("the keys", "?", ("On this screen (trace)",)),
    ("back", "Escape", ("took",)),
    ("a screen by name", ": nodes Enter", ("name one with --slurm",)),
    ("all jobs", "1", ("REASON", "/failed or stuck")),
    ("all of them", "F", ("-/failed or stuck",)),
)


def press(window: Tmux, keys: str) -> None:
    for word in keys.split():
        window.keys(word) if word in NAMED or len(word) == 1 else window.type(word)
        if word in {":", "C-p"}:
            window.wait_text("\n : " if word == ":" else "an action, a job")


def shows(words: tuple[str, ...], text: str) -> bool:
    return all((word.lstrip("-") in text) != word.startswith("-") for word in words)


def test_every_question_is_answered_by_keys() -> None:
    with Tmux([sys.executable, "-m", "jobtui", "demo", "--seed", "3"], 120, 40) as window:
        for wanted, keys, shown in STEPS:
            press(window, keys)
            try:
                window.wait_text(partial(shows, shown))
            except AssertionError as error:
                raise AssertionError(f"{wanted}: {keys}\n{error}") from error
        window.press("q", until="[ended 0]")
