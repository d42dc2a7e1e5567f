"""`config` and `init`: the effective settings and where they were set; a first configuration file.

Without a terminal `init` prints the file, and writes it only with `--yes`. An existing file is replaced only
after asking, and kept under another name.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from jobtui.backends.discovery import DiscoveredSource, discover, suggest
from jobtui.commands.context import Context
from jobtui.commands.printing import Report, print_lines
from jobtui.commands.reader import surroundings, warn
from jobtui.commands.streams import Exit, complain
from jobtui.config import ConfigError, Effective, WrittenSetting, check_text, user_file, written_tables
from jobtui.grammar import SETTING_BY_NAME, SETTINGS
from jobtui.model.secrets import mask_text
from jobtui.model.specs import SourceSpec
from jobtui.model.tables import text_of
from jobtui.render.columns import head, table_lines
from jobtui.render.spans import Piece
from jobtui.render.text import NONE, show

HEADS = (head("SETTING", 7), head("VALUE", 16), head("FROM", 12))
CSV_COLUMNS = ("name", "value", "origin")


def run(context: Context) -> Exit:
    warn(context)
    rows, config = _rows(context), context.config
    tables = list(written_tables(config.file, config.profile)) if config.file is not None else []

    def lines(width: int | None) -> Iterator[str]:
        cells = []
        for row in (*rows, *tables):
            value = ", ".join(row.value) if isinstance(row.value, list) else row.value
            cells.append([Piece(row.name), Piece(show(value or NONE)), Piece(show(row.origin), "settled")])
        yield from table_lines(HEADS, cells, width)
        if config.file is None:
            yield f"no configuration file at {show(user_file())}"
            return
        profile = f", profile {show(config.profile)}" if config.profile else ""
        known = f" of {', '.join(map(show, config.profiles))}" if config.profiles else ""
        yield f"configuration file {show(config.file)}{profile}{known}"

    Report(
        lambda: {
            "settings": [row._asdict() for row in rows],
            "file": config.file,
            "profile": config.profile,
            "profiles": list(config.profiles),
            "tables": [row._asdict() for row in tables],
        },
        CSV_COLUMNS,
        lambda: (row._asdict() for row in (*rows, *tables)),
        lines,
    ).print(context)
    return Exit.FINE


def _rows(context: Context) -> list[WrittenSetting]:
    config = context.config
    rows, found = list[WrittenSetting](), dict[str, DiscoveredSource]()
    if not config.sources:
        found = {one.spec.setting: one for one in discover(surroundings())}
    for setting in SETTINGS:
        effective = config.settings[setting.name]
        if one := found.get(setting.name):
            effective = Effective((one.spec.target,), one.origin)
        values = [mask_text(value) for value in effective.values]
        value = values if setting.repeatable else values[-1] if values else None
        rows.append(WrittenSetting(setting.name, value, mask_text(effective.origin)))
    return rows


HEAD = "# Settings of jobtui. `jobtui config` shows which are in effect, `jobtui --help` lists all.\n"
KEPT = ".old"
"""Added to the name of a file that was replaced."""


def run_init(context: Context) -> Exit:
    path = "".join(context.words) or context.config.file or user_file()
    around = surroundings()
    both = (*discover(around), *suggest(around))
    found = list({(one.spec.setting, one.spec.target): one for one in reversed(both)}.values())[::-1]
    is_asked = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    agreed = context.flag("yes") is not None
    try:
        text = file_text(_asked(found) if is_asked and not agreed else found)
        check_text(path, text)
        if agreed:
            return _write(path, text, may_replace=False)
        if not is_asked:
            sys.stdout.write(text)
            return complain(f"not written; `jobtui init --yes` writes it to {show(path)}", Exit.FINE)
        print_lines(["", *text.splitlines(), ""])
        is_there = os.path.lexists(path)
        question = f"Write it to {show(path)}?"
        if is_there:
            question = f"{show(path)} exists. Replace it, and keep the old one as {show(path + KEPT)}?"
        if _yes(question, default=False):
            return _write(path, text, may_replace=is_there)
        print_lines(["Nothing was written."])
        return Exit.FINE
    except (EOFError, KeyboardInterrupt):
        return complain("nothing was written", Exit.INTERRUPTED)
    except (ConfigError, OSError, ValueError) as error:  # the last for names that no file can have
        return complain(f"{path}: {error.strerror}" if isinstance(error, OSError) else str(error), Exit.USAGE)


def _asked(found: Sequence[DiscoveredSource]) -> list[DiscoveredSource]:
    if not found:
        print_lines(["Found nothing to read."])
    chosen = [
        one
        for one in found
        if _yes(show(f"{one.spec.setting} = {one.spec.target}  ({one.origin})"), default=True)
    ]
    print_lines(["Name other sources, one a line, such as log=supervisor=/var/log/sirepo.log; empty to end."])
    while line := input("> ").strip():
        name, _, value = line.removeprefix("--").replace("-", "_", 1).partition("=")
        setting = SETTING_BY_NAME.get(name)
        if setting is None or setting.parse is None:
            known = ", ".join(one.name for one in SETTINGS if one.parse)
            complain(f"unknown source {name}; expected one of {known}")
            continue
        try:
            setting.parse(value)
        except ValueError as error:
            complain(f"{name}: {value!r}: {error}")
            continue
        chosen.append(DiscoveredSource(SourceSpec(name, value), "given"))
    return chosen


def _yes(question: str, *, default: bool) -> bool:
    answer = input(f"{question} {'[Y/n]' if default else '[y/N]'} ").strip().lower()
    return default if not answer else answer.startswith("y")


def file_text(chosen: Sequence[DiscoveredSource]) -> str:
    lines = [HEAD]
    for setting in SETTINGS:
        own = [one for one in chosen if one.spec.setting == setting.name]
        lines += (f"# {show(one.spec.target)}: {show(one.origin)}" for one in own)
        if own:
            values = json.dumps([one.spec.target for one in own], ensure_ascii=True)
            lines.append(f"{setting.name} = {values}\n")
    if not chosen:
        lines.append('# srdb = ["/srv/sirepo/db"]\n# log = ["supervisor=/var/log/sirepo/supervisor.log"]\n')
    return "\n".join((*lines, text_of("jobtui.commands", "config_end.toml")))


def _write(path: str, text: str, *, may_replace: bool) -> Exit:
    """Write the file for its owner only. Raises OSError, also if the file exists by now."""
    target = Path(path)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if may_replace:
        os.replace(target, f"{target}{KEPT}")
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    print_lines([f"written to {show(path)}; `jobtui doctor` checks the sources"])
    return Exit.FINE
