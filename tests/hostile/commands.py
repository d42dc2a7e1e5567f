"""Every command with the words it takes, hostile ones among them.

To add a command: what may follow its name, one line of words for each call, in
`tests/fixtures/hostile_commands.toml`. `TEXT` is each
text in turn. All else is of those of FEW: `JOB` a job and `NEXT` the one after it, `NUMBER` the number of a
text and `AFTER` the next one, `SOME` a text; `MATCHING` and `PATTERN` are expressions that match it.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import partial

from jobtui.grammar import REPORTS
from tests.excerpts import FIXTURES
from tests.hostile.site import HostileSite, trace_of
from tests.hostile.texts import FEW, TEXTS

Words = list[str]
CASES: dict[str, list[str]] = tomllib.loads((FIXTURES / "hostile_commands.toml").read_text())
CASES["report"] += REPORTS


def calls(command: str, site: HostileSite, most: int = 99) -> Iterator[Words]:
    """What is said for the first of its cases, so many at most."""
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
