"""Every command on a hostile site, in every format: nothing raises, is printed raw, or breaks columns.

To add a command: what may follow its name, one line of words for each call, in
`tests/fixtures/hostile_commands.toml`. `TEXT` is each text in turn. All else is of those of FEW: `JOB` a job
and `NEXT` the one after it, `NUMBER` the number of a text, `AFTER` the next, `SOME` a text; `MATCHING` and
`PATTERN` match it.
"""

import csv
import io
import json
import re
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.printing import Report
from jobtui.commands.reader import Reader
from jobtui.grammar import COMMAND_BY_NAME
from tests.commands.running import Ran, Runner
from tests.hostile.site import HostileSite, trace_of
from tests.hostile.texts import FEW, SECRET, TEXTS, cells, faults_in
from tests.rows import table

Words = list[str]
CASES: dict[str, list[str]] = table("hostile_commands")
CASES["report"] += ("throughput", "utilization", "nodes", "states")


def calls(command: str, site: HostileSite, most: int = 99) -> Iterator[Words]:
    """What is printed for its first cases, at most this number."""
    for line in CASES[command][:most]:
        yield from _filled(line.split(), site)


def _filled(words: Words, site: HostileSite) -> Iterator[Words]:
    named = {word for one in words for word in re.findall("[A-Z]+", one)}
    jobs = [*site.jobs.values()]
    known: dict[str, str] = {
        "WORST": site.jobs["everything"], "CSI": site.jobs["csi"], "FIRST": jobs[0], "ROOT": str(site.root),
        "BUNDLE": str(site.bundle), "RECORDING": str(site.recording), "LOG": str(site.supervisor_log),
        "ARCHIVE": str(site.archive), "MADE": str(site.made_bundle()) if "MADE" in named else "",
    }  # fmt: skip
    rows = [*_rows(site)]
    if not named & rows[0].keys():
        rows = rows[:1]
    elif not named & {"TEXT", "NAMED"}:
        rows = [rows[[*TEXTS].index(name)] for name in FEW]
    for row in rows:
        values = known | row
        yield [re.sub("[A-Z]+", partial(_value, values), word) for word in words]


def _value(values: Mapping[str, str], name: re.Match[str]) -> str:
    return values[name[0]]


def _rows(site: HostileSite) -> Iterator[dict[str, str]]:
    jobs = [*site.jobs.values()]
    for number, (job, text) in enumerate(zip(jobs, TEXTS.values(), strict=True), start=1):
        yield {
            "JOB": job, "NEXT": jobs[number % len(jobs)], "NUMBER": str(number), "TRACE": trace_of(number),
            "AFTER": str(number % len(jobs) + 1), "TEXT": text, "SOME": text, "BADLY": text or "x",
            "DASH": text or "-", "NAMED": f'name:"{text}"', "MATCHING": re.escape(text),
            "PATTERN": re.escape(text)[:500],
            "SHORT": text[:500], "SHORTEST": text[:50].replace("\0", ""),
            "BELOW": f"{site.supervisor_log}/{text}".replace("\0", ""),
        }  # fmt: skip


AT = "2026-11-20T21:00:00Z"
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
HEADING = re.compile(r" *[A-Z%#][A-Z%# ]*(  +[A-Z%#][A-Z%# ]*)+")
NOTE = re.compile(r"(\S \S|  \S)[^:]*: |no configuration file")
"""What may stand right below a table without being one of its rows."""
WIDTH = 100
TERMINAL = "terminal"
FORMATS = {
    TERMINAL: OutputFormat.TABLE,
    **{one.value: one for one in OutputFormat if one != OutputFormat.TABLE},
}
MARK = "\x1c"
"""Before what is printed in one format; nothing else prints it."""
BY_FLAG = {"logs": 1, "report": 99, "script": 1}
"""Commands that look at the format before there is a report; so many of their cases are said in each."""


def print_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each report be printed in every format: what it says is worked out once."""
    form, in_one = [TERMINAL], Report.print

    def in_all(report: Report, context: Context, reader: Reader | None = None) -> None:
        for form[0] in FORMATS:
            sys.stdout.write(f"{MARK}{form[0]}\n")
            in_one(report, context, reader)
        form[0] = TERMINAL

    monkeypatch.setattr(Report, "print", in_all)
    monkeypatch.setattr(Context, "format", property(lambda _: FORMATS[form[0]]))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> HostileSite:
    return HostileSite(tmp_path_factory.mktemp("hostile"))


def test_every_command_has_a_case() -> None:
    missing = COMMAND_BY_NAME.keys() - CASES.keys()
    assert not missing, "a new command needs a case in tests/hostile/test_commands.py"
    assert CASES.keys() <= COMMAND_BY_NAME.keys()


@pytest.mark.parametrize("command", sorted(COMMAND_BY_NAME))
def test_a_command_prints_nothing_raw(
    command: str, site: HostileSite, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where what is made without a place of its own may lie
    monkeypatch.setattr(Context, "colour", property(lambda self: self.format is OutputFormat.TABLE))
    limit = property(lambda self: WIDTH if self.format is OutputFormat.TABLE else None)
    monkeypatch.setattr(Context, "width", limit)
    if command in ("changed", "seen"):
        site.remember()
    flags: list[list[str]] = [[]]
    if COMMAND_BY_NAME[command].prints and command in BY_FLAG:
        flags += [[f"--{form}"] for form in FORMATS if form != TERMINAL]
    elif COMMAND_BY_NAME[command].prints:
        print_in_all(monkeypatch)
    found: set[str] = set()
    for flag in flags:
        for words in calls(command, site, BY_FLAG.get(command, 99) if flag else 99):
            ran = run("--at", AT, *site.flags, command, *flag, *words)
            form = "".join(flag).removeprefix("--") or TERMINAL
            forms = [*printed(ran, form)]
            faults = [fault for name, one in forms for fault in faults_of(one, name)]
            assert not faults, f"{command} {flag} {words!a}: {faults}"
            found.update(name for name, one in forms if one.out)
    assert found == FORMATS.keys() if COMMAND_BY_NAME[command].prints else not flags[1:]


def printed(ran: Ran, form: str) -> Iterator[tuple[str, Ran]]:
    """What was printed in each format; in this one before anything names another."""
    first, *others = ran.out.split(MARK)
    if first or not others:
        yield form, ran._replace(out=first)
    for text in others:
        name, _, out = text.partition("\n")
        yield name, ran._replace(out=out)


def faults_of(ran: Ran, form: str) -> Iterator[str]:
    if ran.code not in range(6):
        yield f"exit code {ran.code}"
    for line in ran.err.split("\n"):
        yield from (f"on stderr: {fault}: {line!a}" for fault in faults_in(line))
    if SECRET in ran.out:
        yield "a secret"
    if form == "json":
        yield from json_faults(ran)
        return
    out = COLOURS.sub("", ran.out) if form == TERMINAL else ran.out
    lines = out.split("\n")
    for line in lines:
        yield from (f"{fault}: {line!a}" for fault in faults_in(line))
    if form == "csv":
        if len({len(row) for row in csv.reader(io.StringIO(ran.out))}) > 1:
            yield "rows of several lengths"
    else:
        yield from unaligned(lines, WIDTH if form == TERMINAL else None)


def json_faults(ran: Ran) -> Iterator[str]:
    if ran.out and not ran.out.isascii():
        yield "JSON that is not ASCII"
    if ran.out:
        document = json.loads(ran.out)
        if next(iter(document)) != "schema":
            yield "no schema"
    elif ran.code not in (2, 4):
        yield f"no JSON with exit code {ran.code}"


def unaligned(lines: list[str], limit: int | None = None) -> Iterator[str]:
    """Rows of a table that are too wide, or with a column that begins, and ends, beside its heading."""
    heading: list[tuple[int, int]] = []
    for line in lines:
        if HEADING.fullmatch(line):
            heading = [found.span() for found in re.finditer(r"[^ ]+(?: [^ ]+)*", line)]
        elif not line.strip() or NOTE.match(line):
            heading = []
        else:
            row = in_cells(line)
            if heading and limit is not None and len(row) > limit:
                yield f"a row of {len(row)} cells: {line!a}"
            for begin, end in heading:
                if not (is_blank(row, begin - 1) or is_blank(row, end)):
                    yield f"the column at {begin} is out of line: {line!a}"


def in_cells(line: str) -> list[str]:
    row: list[str] = []
    for char in line:
        size = cells(char)
        row += [char, *[""] * (size - 1)] if size else []
    return row


def is_blank(row: list[str], at: int) -> bool:
    return not 0 <= at < len(row) or row[at] == " "


def test_the_site_is_read(site: HostileSite, run: Runner) -> None:
    ran = run("--at", AT, *site.flags, "jobs", "--json")
    assert {job["id"] for job in ran.json["jobs"]} >= {*site.jobs.values()}
    assert [source["state"] for source in ran.json["sources"]] != ["down"] * 3
    ran = run("--at", AT, *site.flags, "timeline", site.jobs["everything"], "--json")
    assert [op["sends"] for op in ran.json["ops"]] == [1]


def test_names_of_files_are_found(site: HostileSite) -> None:
    assert len([*site.run_dir("everything").iterdir()]) > 20
    assert Path(site.supervisor_log).stat().st_size > 100_000
