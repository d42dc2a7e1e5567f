"""What a shell offers for a command line. Each key waits for it: it imports nothing heavy."""

import json
import os
import re
import stat
import sys
import time
from binascii import crc32
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from mmap import ACCESS_READ, mmap

from jobtui.model.tables import home_of, text_of

Row = Sequence[str]
Flag = tuple[list[str], str, bool, list[str] | None]
"""Its spellings, its help, whether it is a setting, and words for its value, None if it takes none."""
Command = tuple[str, list[str], bool, bool, list[Flag]]
"""Its help, words for its argument, whether that is a job, whether it wraps a command line, its flags."""
Table = tuple[dict[str, Command], list[Flag], dict[str, list[str]]]
"""Commands, "" for the dashboard; flags of settings; fields of filters, and the words that they have."""

OFFERED, WAIT_S = 200, 2.0
"""How many jobs are offered; how long a shell waits for them where no list of them is kept."""
FRESH_S, MAKING_S = 5.0, 120
"""An older list is offered once more while it is made again; how long making one may take."""
RECORDS_READ, ROWS_LISTED, LISTS_KEPT = 5_000, 200_000, 16
"""How many of Sirepo's newest jobs have words in a list; the longest list; how many lists are kept."""
VARIABLES = ("JOBTUI_", "SIREPO_", "BALSAM_", "SLURM_", "XDG_CONFIG", "PWD")
"""Beginnings of the names of variables on which the list of jobs may depend."""


def offer(shell: str, words: Sequence[str]) -> int:
    """Print the completions of the last word typed so far; gives the exit code."""
    if shell == "bash":
        # readline splits words at colons, so completions begin after the last one
        words = re.sub("\0?:\0?", ":", "\0".join(words)).split("\0")
    found, begun = list(_offered(words)), words[-1]
    paths = [row for row in found if row[0].startswith(":")]
    fits = [row for row in found if row[0].startswith(begun) and row not in paths]
    done = begun.rpartition(":")[0] + ":" if shell == "bash" and ":" in begun else ""
    lines = []
    for word, text in fits or paths:
        word = word.removeprefix(done)
        if shell == "zsh" and not word.startswith(":"):
            word = word.replace(":", "\\:")
        between = {"zsh": ":", "fish": "\t"}.get(shell, "") if text else ""
        lines.append(f"{word}{between}{text if between else ''}\n")
    sys.stdout.write("".join(lines))
    return 0


def _offered(words: Sequence[str]) -> Iterable[Row]:
    """The words that can be typed, each with a description; `:file` and `:directory` stand for paths."""
    *before, begun = words
    if "=" in (begun, *before[-1:]) or (begun.startswith("--") and "=" in begun):
        return [(":file", "")]
    commands, settings, fields = table()
    name, sources = "", dict[str, tuple[str, ...]]()
    flag: Flag | None = None
    pieces = (part for word in before for part in (word.split("=", 1) if word[:2] == "--" else (word,)))
    for piece in filter(None, pieces):
        if flag is None:
            if piece in commands and (not name or commands[name][3]):
                name = piece
            known = (*commands[name][4], *settings)
            flag = next((one for one in known if piece in one[0] and one[3] is not None), None)
        elif piece != "=":  # readline splits --flag=value into three words
            if flag[2]:
                setting = flag[0][0].removeprefix("--").replace("-", "_")
                sources[setting] = (*sources.get(setting, ()), piece)
            flag = None
    if flag is not None:
        return [(word, "") for word in flag[3] or ()]
    _, choices, takes_job, wraps, flags = commands[name]
    if begun.startswith("-"):
        return [(word, one[1]) for one in (*flags, *settings) for word in one[0]]
    rows = [(one, commands[one][0]) for one in commands if one] if not name or wraps else []
    rows += [(word, "") for word in (*choices, *(_filter_words(begun, fields) if name == "jobs" else ()))]
    is_elsewhere = any(commands[word][3] for word in before if word in commands)
    is_command = not name and any(one.startswith(begun) for one in commands if one)
    return [*rows, *(_jobs(sources, begun) if takes_job and not is_elsewhere and not is_command else ())]


def table() -> Table:
    """What `release.words` made of the tables of the program."""
    commands, settings, fields = json.loads(text_of("jobtui", "completion.json"))
    return commands, settings, fields


def _filter_words(begun: str, fields: Mapping[str, Sequence[str]]) -> Iterable[str]:
    """Fields of a filter, or the words that may be the value of the one that is begun."""
    end = max(map(begun.rfind, ":=<>,")) + 1
    field = begun.partition(":")[0].partition("=")[0].removesuffix("!").lower()
    return (begun[:end] + word for word in fields.get(field, ())) if end else (f"{name}:" for name in fields)


def _jobs(sources: Mapping[str, tuple[str, ...]], begun: str) -> Iterable[Row]:
    """The jobs of the named sources whose ids begin so, failed ones first, from the list on disk."""
    path, until = _list_of(sources), time.monotonic() + WAIT_S
    while True:
        kept: bytes | mmap = b""
        rows, at, age_s = list[Row](), 0, FRESH_S + 1
        with suppress(OSError, ValueError), open(os.open(path, os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            if (status.st_uid, status.st_mode) == (os.geteuid(), stat.S_IFREG | 0o600):  # ours alone
                kept, age_s = mmap(file.fileno(), 0, access=ACCESS_READ), abs(time.time() - status.st_mtime)
        while len(rows) < OFFERED and (at := kept.find(b"\n" + os.fsencode(begun), at) + 1):
            job_id, _, text = kept[at : kept.find(b"\n", at)].decode(errors="replace").partition("\t")
            if job_id and (job_id + text).isprintable():
                rows.append((job_id, text))
        is_coming = age_s > FRESH_S and _renew(path, sources)
        if rows or not is_coming or time.monotonic() > until:
            return rows
        time.sleep(0.01)


def _list_of(sources: Mapping[str, tuple[str, ...]]) -> str:
    """The file of the list for these settings, with this directory and these variables."""
    variables = sorted(one for one in os.environ.items() if one[0].startswith(VARIABLES))
    name = f"{crc32(os.fsencode(repr((sources, variables)))):08x}"
    return os.path.join(home_of("CACHE"), "jobtui-completion", name)


def _renew(path: str, sources: Mapping[str, tuple[str, ...]]) -> bool:
    """Start a process that makes the list, unless one runs. True if one runs now."""
    begun = f"{path}.new"
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            if time.time() - os.stat(begun).st_mtime > MAKING_S:
                os.unlink(begun)  # the process that made it did not finish
        file = os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        if os.fork() == 0:
            try:
                _make(path, sources, file)
            finally:
                os._exit(0)
        os.close(file)
        return True
    return os.path.exists(begun)


def _make(path: str, sources: Mapping[str, tuple[str, ...]], file: int) -> None:
    """Write the list to an open file, and put it in its place."""
    for number in range(3):
        os.dup2(os.open(os.devnull, os.O_RDWR), number)  # the shell waits until its pipe is closed
    os.setsid()
    os.nice(10)
    import signal

    from jobtui.commands.context import make_context
    from jobtui.commands.jobs import list_for_shell
    from jobtui.commands.reader import in_session
    from jobtui.config import load
    from jobtui.grammar import DASHBOARD, Invocation

    signal.alarm(MAKING_S)
    rows = list[str]()
    invocation, config = Invocation(DASHBOARD, (), {}, {}), load(sources, os.environ)
    context = make_context(invocation, config, lambda *about: None)
    in_session(context, lambda reader: list_for_shell(reader, RECORDS_READ, MAKING_S / 2, rows))
    with open(file, "w", encoding="utf-8") as lines:
        lines.write("\n".join(["", *rows[:ROWS_LISTED], ""]))
    os.replace(f"{path}.new", path)
    for one in sorted(os.scandir(os.path.dirname(path)), key=lambda one: one.stat().st_mtime)[:-LISTS_KEPT]:
        os.unlink(one.path)
