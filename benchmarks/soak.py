"""The dashboard left running for minutes while keys are pressed on every screen: what was lost, what grew.

    python -m benchmarks.soak [--minutes N] [--seed N] [--json]                         # on the demo
    python -m benchmarks.soak --srdb DIR --log ROLE=FILE [...] [--minutes N] [--json]   # on a live system

Runs the real dashboard on a pseudo-terminal, goes through all its screens again and again (`benchmarks.tour`)
and compares what it knows, and what its screen says, with the records as they are: in between with those that
have not changed for a while, in the end with all of them, with the ops as the simulator noted them (on a live
system: as a reading from the start tells them) and with what `jobtui jobs` prints. 1 when anything differs.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.painted import Painted
from benchmarks.rows import Row, at_most, report
from benchmarks.soak_dashboard import NOTED, TOLD
from benchmarks.soak_figures import Found, growth
from benchmarks.soak_sites import DemoSite, LiveSite, Records, Site, flags_of, opened
from benchmarks.startup import TABLE_HEAD, isolated
from benchmarks.terminal import Program, Terminal
from benchmarks.tour import ENTER, ESCAPE, Leg, tour
from jobtui.model.jobs import JobStatus
from jobtui.model.specs import parse_log, parse_srdb
from jobtui.render.status import WORDS

COLUMNS, ROWS = 120, 40
QUIET_S, ANSWER_S = 0.03, 0.12
"""The next key is pressed when nothing came for so long after an answer, or no answer for so long."""
ASKED_S = 0.2
"""How long what asks for a text has to appear before the text is typed."""
ESCAPE_GAP_S = 0.15
"""How long after escape, which within a tenth of a second would be the beginning of another key."""
SEEN_WITHIN_S = 3.0
"""How long a change may take to be known, and to be on the screen."""
END_WITHIN_S = 30.0
"""How long the last of it may take."""
SAMPLE_EVERY_S = 30.0
POOLED = "asyncio_"
"""Threads of the event loop's own pool: one more whenever more is asked at once, up to a few."""
COUNTED = ("tasks", "listeners", "objects", "blocks", "heap_mb")
VIEW = {"": {"start": {"filter": "", "sort": None, "reverse": False, "columns": ["state", "id"]}}}
PAGE_DOWN = "\x1b[6~"
EMPTY_COMMAND = "jobs, sources"
"""What stands in an empty line for a command."""
GOTO = "goto "
HEADING = "  ID"
HOME_WITHIN_S = 60.0
"""How long the way back to the jobs may take, on a machine that has much else to do."""
STATUS_WORDS: Mapping[str, str] = {
    "error": WORDS[JobStatus.FAILED],
    "job_run_purged": WORDS[JobStatus.PURGED],
    **{status.value: WORDS[status] for status in JobStatus},
}
"""What a status of the supervisor is called on the screen."""
ROW = re.compile(r"^.{1,8}?(?P<word>[a-z]+) +(?P<id>\w{8}-\w+-\w+)")
MARK_OF_QUASI = "-_1_st"


class Stopped(Exception):
    """The dashboard ended by itself or no longer answers."""


class Soak:
    """A dashboard on a terminal, and what it should show."""

    def __init__(self, terminal: Terminal, place: Path, srdb: Path) -> None:
        self.found = Found()
        self.painted = Painted(COLUMNS, ROWS)
        self.records = Records(srdb)
        self._terminal = terminal
        self._place = place
        self._legs: Iterator[Leg] = iter(())
        self._sampled_at = 0.0

    def read(self, for_s: float) -> None:
        """Take in what comes for so long. Raises Stopped."""
        until = time.monotonic() + for_s
        while (left := until - time.monotonic()) > 0:
            data = self._terminal.read(left)
            if data == b"":
                raise Stopped(f"the dashboard ended:\n{self.painted.text()}")
            if data:
                self.painted.feed(data)

    def settle(self) -> None:
        """Take in the answer to a key. Raises Stopped."""
        start, until = self._terminal.received, time.monotonic() + ANSWER_S
        last = -1
        while time.monotonic() < until and (last in (-1, start) or last != self._terminal.received):
            last = self._terminal.received
            self.read(QUIET_S)

    def type(self, *texts: str) -> None:
        """Type, each text at once, with a moment after it."""
        for text in texts:
            if len(text) > 1 and not text.startswith(ESCAPE):
                self.read(ASKED_S)
                if text.startswith(GOTO) and not self.wait(EMPTY_COMMAND):
                    return  # its letters would be taken for keys, one of which may end the dashboard
            self._terminal.write(text.encode())
            self.found.keys += 1
            if text.endswith(ESCAPE):
                self.read(ESCAPE_GAP_S)
            else:
                self.settle()

    def tell(self) -> dict[str, Any]:
        """What the dashboard knows now. Raises Stopped."""
        answer = self._place / TOLD
        answer.unlink(missing_ok=True)
        os.kill(self._terminal.pid, signal.SIGUSR1)
        until = time.monotonic() + END_WITHIN_S
        while not answer.exists():
            if time.monotonic() > until:
                raise Stopped(f"the dashboard does not answer:\n{self.painted.text()}")
            self.read(0.02)
        told: dict[str, Any] = json.loads(answer.read_text())
        self.found.screens[told["screens"][-1]] += 1
        return told

    def wait(self, text: str) -> bool:
        """Whether the screen shows this, for which it is given some time. Raises Stopped."""
        until = time.monotonic() + SEEN_WITHIN_S
        while text not in self.painted.text() and time.monotonic() < until:
            self.read(QUIET_S)
        return text in self.painted.text()

    def home(self) -> None:
        """Back to the jobs from wherever it is, with the view that shows ids. Raises Stopped."""
        until = time.monotonic() + HOME_WITHIN_S
        while time.monotonic() < until:
            self.type(ESCAPE, ESCAPE, ESCAPE, "1", ESCAPE)
            if "paused" in self.painted.text():
                self.type("p")
            self.type(":")
            if self.wait(EMPTY_COMMAND):
                self.type("view start" + ENTER, "g")
                if self.wait(HEADING) and self.shown():
                    return
            self.read(1.0)
        raise Stopped(f"there is no way back to the jobs:\n{self.painted.text()}")

    def run(self, until: float) -> None:
        """Go on with the tour until a time, with samples in between. Raises Stopped."""
        while time.monotonic() < until:
            leg = next(self._legs, None)
            if leg is None:
                self.home()
                self._legs = tour(self._somebody())
                continue
            self.type(ESCAPE, *leg.way)
            self.type(*leg.typed)
            if time.monotonic() > self._sampled_at + SAMPLE_EVERY_S:
                self.sample()

    def sample(self) -> None:
        """Compare what is known, and what is on the screen, with the records that are at rest."""
        found, self._sampled_at = self.found, time.monotonic()
        self.tell()
        self.home()
        self.records.read()
        self.read(SEEN_WITHIN_S)
        told, shown = self.tell(), self.shown()
        self.records.read()
        expected = self.records.settled(SEEN_WITHIN_S)
        found.samples += 1
        found.compared += len(expected)
        found.differ("known", expected, told["jobs"])
        visible = {job: STATUS_WORDS[status] for job, status in expected.items() if job in shown}
        found.rows_compared += len(visible)
        found.differ("on the screen", visible, shown)
        found.rss_mb.append((time.monotonic(), self._terminal.rss_mb()))
        counts = {name: told[name] for name in COUNTED}
        counts["threads"] = sum(not name.startswith(POOLED) for name in told["threads"])
        found.threads = told["threads"]
        found.counts.append({**counts, "jobs": len(told["jobs"]), "ops": len(told["ops"])})

    def shown(self) -> dict[str, str]:
        """The word for the status of each job on the screen, by its id."""
        rows = map(ROW.match, self.painted.lines())
        return {row["id"]: row["word"] for row in rows if row}

    def shown_in_all(self) -> dict[str, str]:
        """The same of the whole table, page by page."""
        self.home()
        self.read(1.0)
        shown, asked_at = self.shown(), time.monotonic()
        while time.monotonic() < asked_at + SEEN_WITHIN_S:
            known = len(shown)
            self.type(PAGE_DOWN)
            self.read(0.2)
            shown |= self.shown()
            if len(shown) > known:
                asked_at = time.monotonic()
        return shown

    def compare_all(self, site: Site, printed: Mapping[str, str]) -> None:
        """Compare everything, when nothing happens any more."""
        found = self.found
        known = {tuple(op) for op in self.tell()["ops"]}
        ops = {tuple(op) for op in site.ops()}
        until = time.monotonic() + END_WITHIN_S
        while ops != known and time.monotonic() < until:
            self.read(1.0)
            known, ops = {tuple(op) for op in self.tell()["ops"]}, set(site.ops())
        found.wrong += [f"op not as it was: {op}" for op in sorted(map(str, ops ^ known))]
        found.compared += len(ops)
        self.compare_jobs(printed)

    def compare_jobs(self, printed: Mapping[str, str]) -> None:
        """Compare all jobs, as they are known, printed and shown, with the records. Raises Stopped."""
        found = self.found
        self.records.read()
        expected = self.records.now()
        found.differ("known in the end", expected, self.tell()["jobs"])
        found.differ("printed in the end", expected, printed)
        wanted = {job: STATUS_WORDS[status] for job, status in expected.items() if MARK_OF_QUASI not in job}
        shown = self.shown_in_all()
        found.differ("on the screen in the end", wanted, shown)
        found.compared += len(expected)
        found.rows_compared += len(wanted)

    def _somebody(self) -> str:
        """The user with most jobs."""
        self.records.read()
        users = Counter(job.partition("-")[0] for job in self.records.now())
        return users.most_common(1)[0][0] if users else "nobody"


def rows_of(
    name: str, soak: Soak, noted: str, exit_code: int, left: str, most_mb: float | None = None
) -> Iterator[Row]:
    """What came out, each figure with what it may be; memory may grow up to `most_mb` where that is given."""
    found = soak.found
    yield Row(what=f"{name}: keys pressed", measured=found.keys, unit="keys")
    yield Row(what=f"{name}: jobs and ops compared with the truth", measured=found.compared, unit="times")
    yield Row(what=f"{name}: rows of the screen compared", measured=found.rows_compared, unit="rows")
    yield at_most(f"{name}: of these lost, late or wrong", len(found.wrong), "", 0)
    yield at_most(f"{name}: exceptions, warnings, toasts of errors", len(noted.splitlines()), "lines", 0)
    yield at_most(f"{name}: stray sequences on the wire", len(soak.painted.strays), "", 0)
    yield at_most(f"{name}: exit code after q, and words left behind", exit_code + len(left.split()), "", 0)
    yield from growth(name, found, most_mb)


def printed_jobs(flags: Sequence[str], home: Path) -> dict[str, str]:
    """The status of every job that the one-shot command prints."""
    command = [sys.executable, "-m", "jobtui", *flags, "jobs", "quasi:no or quasi:yes", "--json"]
    ran = subprocess.run(command, env={**os.environ, **isolated(home)}, stdout=subprocess.PIPE, check=False)
    return {job["id"]: job["native_status"] for job in json.loads(ran.stdout)["jobs"]}


def soak_on(site: Site, minutes: float, place: Path) -> tuple[Soak, list[Row]]:
    """Leave a dashboard running on a site. What it finds, also when it ended before its time."""
    (config := place / ".config" / "jobtui").mkdir(parents=True)
    (config / "views.json").write_text(json.dumps(VIEW))
    flags = flags_of(site.specs)
    srdb = next(Path(spec.target) for spec in site.specs if spec.setting == "srdb")
    argv = [sys.executable, "-m", "benchmarks.soak_dashboard", str(place), *flags]
    environ = {**isolated(place), "TMPDIR": str(place)}
    program = Program(argv=argv, ready=TABLE_HEAD, environ=environ, columns=COLUMNS, rows=ROWS)
    with Terminal(program) as terminal:
        soak = Soak(terminal, place, srdb)
        try:
            soak.read(SEEN_WITHIN_S)
            soak.run(time.monotonic() + minutes * 60)
            site.stop()
            soak.sample()
            soak.compare_all(site, printed_jobs(flags, place))
        except Stopped as error:
            soak.found.wrong.append(str(error))
        left, code = leave(soak, terminal)
    return soak, list(rows_of(site.name, soak, (place / NOTED).read_text(), code, left))


def leave(soak: Soak, terminal: Terminal) -> tuple[str, int]:
    """Quit; what is on the terminal then, and the exit code."""
    try:
        soak.type(ESCAPE)
        soak.read(SEEN_WITHIN_S)  # a q that is read together with the escape is another key
        soak.type("q")
        soak.read(END_WITHIN_S)
    except Stopped:
        return soak.painted.text().strip(), terminal.exit_code()
    return "it goes on after q", 1


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1, help="which of the simulated sites")
    parser.add_argument("--srdb", metavar="DIR", help="the database of a live system")
    parser.add_argument("--log", metavar="[ROLE=]FILE", action="append", default=[], help="a log of it")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jobtui-soak-") as place:
        site: Site
        if options.srdb:
            site = LiveSite([parse_srdb(options.srdb), *map(parse_log, options.log)])
        else:
            (root := Path(place, "site")).mkdir()
            site = DemoSite(root, options.seed)
        (home := Path(place, "home")).mkdir()
        with opened(site):
            soak, rows = soak_on(site, options.minutes, home)
        noted = (home / NOTED).read_text()
    tell_more(soak, noted)
    return report(rows, options.json)


def tell_more(soak: Soak, noted: str) -> None:
    """Say on stderr what the figures do not: what was wrong, and how it went."""
    found = soak.found
    for line in [*found.wrong[:50], *noted.splitlines()[:50], *soak.painted.strays]:
        print(repr(line), file=sys.stderr)
    print("screens:", dict(found.screens), file=sys.stderr)
    print("memory, MB:", *(f"{mb:.0f}" for _, mb in found.rss_mb), file=sys.stderr)
    for what in ("objects", "blocks", "heap_mb", "jobs", "ops"):
        print(f"{what}:", *(counts[what] for counts in found.counts), file=sys.stderr)
    print("threads:", *found.threads, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
