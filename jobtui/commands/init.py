"""`init`: find out what there is to read, ask what is wanted, and write a configuration file when told to.

Without a terminal the file is printed, and nothing is written unless `--yes` says so. A file that is there is
never replaced unasked, and then kept beside the new one.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from jobtui.backends.discovery import Finding, discover
from jobtui.backends.suggestions import suggest
from jobtui.commands.context import Context
from jobtui.commands.exits import Exit
from jobtui.commands.printing import print_lines
from jobtui.commands.reading import surroundings
from jobtui.commands.streams import complain
from jobtui.config import ConfigError, check_text, user_file
from jobtui.grammar import SETTING_BY_NAME, SETTINGS, Kind
from jobtui.model.specs import SourceSpec
from jobtui.render.text import show

HEAD = """\
# Settings of jobtui. `jobtui config` shows what holds and why, `jobtui --help` what there is.
"""
TAIL = """
# theme = "auto"           # dark, light, ansi, none
# [keys]
# copy = ["y", "ctrl+c"]
# [columns]
# jobs = ["state", "age", "user", "name", "app"]
"""
KEPT = ".old"
"""Behind the name of a file that was replaced."""
Chosen = Mapping[str, Sequence[tuple[str, str]]]
"""Values of settings, each with where it came from."""


def run(context: Context) -> Exit:
    """Ask, show, and write when told to."""
    path = "".join(context.words) or context.config.file or user_file()
    found = _found()
    is_asked = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    agreed = context.flag("yes") is not None
    try:
        text = file_text(_asked(found) if is_asked and not agreed else _values(found))
        check_text(path, text)
        if agreed:
            return _write(path, text, may_replace=False)
        if not is_asked:
            sys.stdout.write(text)
            return Exit.FINE
        return _offer(path, text)
    except (EOFError, KeyboardInterrupt):
        complain("nothing was written")
        return Exit.INTERRUPTED
    except (ConfigError, OSError, ValueError) as error:  # the last for names that no file can have
        complain(f"{path}: {error.strerror}" if isinstance(error, OSError) else str(error))
        return Exit.USAGE


def _found() -> list[Finding]:
    """What there is, each source once."""
    around = surroundings()
    both = (*discover(around), *suggest(around))
    return list({(one.spec.setting, one.spec.target): one for one in reversed(both)}.values())[::-1]


def _asked(found: Sequence[Finding]) -> Chosen:
    """What of it is wanted, and what else."""
    if not found:
        print_lines(["Nothing was found that could be read."])
    chosen = [one for one in found if _yes(f"{_spelled(one)}  ({show(one.origin)})", default=True)]
    print_lines(["Other sources, one at a time, such as log=supervisor=/var/log/sirepo.log; none ends it."])
    while line := input("> ").strip():
        name, _, value = line.removeprefix("--").replace("-", "_", 1).partition("=")
        setting = SETTING_BY_NAME.get(name)
        if setting is None or setting.parse is None:
            known = ", ".join(one.name for one in SETTINGS if one.kind is Kind.SOURCE)
            complain(f"no source is called {name}; there are {known}")
            continue
        try:
            setting.parse(value)
        except ValueError as error:
            complain(f"{name}: {value!r}: {error}")
            continue
        chosen.append(Finding(SourceSpec(name, value), "given"))
    return _values(chosen)


def _spelled(finding: Finding) -> str:
    return show(f"{finding.spec.setting} = {finding.spec.target}")


def _yes(question: str, *, default: bool) -> bool:
    """The answer to a question; the default for none."""
    answer = input(f"{question} {'[Y/n]' if default else '[y/N]'} ").strip().lower()
    return default if not answer else answer.startswith("y")


def _values(found: Iterable[Finding]) -> Chosen:
    values: dict[str, list[tuple[str, str]]] = {}
    for one in found:
        values.setdefault(one.spec.setting, []).append((one.spec.target, one.origin))
    return values


def file_text(chosen: Chosen) -> str:
    """A configuration file with these values."""
    lines = [HEAD]
    for setting in SETTINGS:
        for value, origin in chosen.get(setting.name, ()):
            lines.append(f"# {show(value)}: {show(origin)}")
        if values := [value for value, _ in chosen.get(setting.name, ())]:
            lines.append(f"{setting.name} = {json.dumps(values, ensure_ascii=True)}\n")
    if not chosen:
        lines.append('# srdb = ["/srv/sirepo/db"]\n# log = ["supervisor=/var/log/sirepo/supervisor.log"]\n')
    return "\n".join(lines) + TAIL


def _offer(path: str, text: str) -> Exit:
    """Show the file, and write it when told to."""
    print_lines(["", *text.splitlines(), ""])
    is_there = os.path.lexists(path)
    question = (
        f"{show(path)} is there already. Replace it, and keep it as {show(path + KEPT)}?"
        if is_there
        else f"Write it to {show(path)}?"
    )
    if _yes(question, default=False):
        return _write(path, text, may_replace=is_there)
    print_lines(["Nothing was written."])
    return Exit.FINE


def _write(path: str, text: str, *, may_replace: bool) -> Exit:
    """Write the file for its owner alone. Raises OSError, also when one came to be there meanwhile."""
    target = Path(path)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if may_replace:
        os.replace(target, f"{target}{KEPT}")
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    print_lines([f"written to {show(path)}; `jobtui doctor` says what the sources are worth"])
    return Exit.FINE
