"""The dashboard left on a site under a rush while everything faults in turn: what was lost, doubled, or grew.

    scripts/bench endurance --minutes 30
    .venv/bin/python -m benchmarks.endurance [--minutes N] [--rate N] [--seed N] [--only WORDS] [--json]

Runs the real dashboard, as it starts without `--since`, on a pseudo-terminal and a site (`benchmarks.site`)
that has lived before, in which jobs begin all the time, and whose logs are given under several names and
rotated in all ways (`benchmarks.site_logs`). It goes through all screens again and again (`benchmarks.tour`).

- Every half minute something goes wrong (`benchmarks.faults`), sooner where there would not be the time for
  everything. After each the site is let come to rest, and all ops that are known are compared with what the
  site noted: as many as there were, none twice, each as it was; and every source is well again.
- Every minute, or sooner likewise, one stage of jobtui raises an exception (`benchmarks.telling.STAGES`):
  it must be counted with its place, keys be answered, and every source be polled after it.
- Jobs, as they are known, shown and printed, are compared with their records.

The line that begins with RESULT sums up. 1 when anything differs.
"""

import argparse
import itertools
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.balsam_server import BalsamServer
from benchmarks.faults import FAULTS, Place
from benchmarks.painted import Painted
from benchmarks.rows import Row, at_least, at_most, report
from benchmarks.site import Site, held, site_apart
from benchmarks.startup import TABLE_HEAD, isolated
from benchmarks.telling import NOTED, ORDER, STAGES, TELL, TOLD, Injected
from benchmarks.terminal import Program, Terminal
from benchmarks.tour import ENTER, ESCAPE, Leg, tour
from jobtui.commands.streams import Exit
from jobtui.model.health import SEE
from jobtui.model.jobs import JobStatus
from jobtui.render.styles import WORDS

COLUMNS, ROWS = 120, 40
QUIET_S, ANSWER_S = 0.03, 0.12
"""The next key is pressed when nothing came for so long after an answer, or no answer for so long."""
ASKED_S = 0.2
"""How long what asks for a text has to appear before the text is typed."""
ESCAPE_GAP_S = 0.15
"""How long after escape, which within a tenth of a second would be the beginning of another key."""
SEEN_WITHIN_S = 3.0
"""How long a change may take to be known, and to be on the screen."""
ANSWERED_WITHIN_S = 15.0
"""How long the answer to a key may take, on a machine that has much else to do: the slowest is told."""
END_WITHIN_S = 30.0
"""How long the last of it may take."""
HOME_WITHIN_S = 60.0
"""How long the way back to the jobs may take, on a machine that has much else to do."""
WELL_AGAIN_S = 90.0
"""How long a source may take to be well again: it is asked less often while it fails."""
FAULT_EVERY_S, INJECT_EVERY_S, SAMPLE_EVERY_S = 30.0, 60.0, 30.0
"""Sooner where not all of them would come otherwise."""
TOUR_S = 5.0
"""The tour goes on for at least so long between two faults."""
SHARE = 0.9
"""How much of the rate must be reached: users who are all busy begin nothing."""
SAID_AT_ONCE = 200
LEFT = 400
"""Jobs that are left for the table to be read row by row."""
MOST_MB = 512.0
"""What all that is kept at most takes with these sources: docs/performance.md."""
WARM_UP_SHARE = 0.4
COUNTED = ("tasks", "threads", "listeners")
"""What must not become more."""
POOLED = "asyncio_"
"""Threads of the event loop's own pool: one more whenever more is asked at once, up to a few."""
VIEW = {"": {"start": {"filter": "", "sort": None, "reverse": False, "columns": ["state", "id"]}}}
PAGE_DOWN = "\x1b[6~"
EMPTY_COMMAND = "jobs, sources"
"""What stands in an empty line for a command."""
GOTO = "goto "
HEADING = "  ID"
LEADS_TO: Mapping[str, tuple[str, ...]] = {"explainer": ("1", "g", ENTER)}
"""What is typed so that a stage has something to do, where it has not all the time."""
STATUS_WORDS: Mapping[str, str] = {
    "error": WORDS[JobStatus.FAILED],
    "job_run_purged": WORDS[JobStatus.PURGED],
    **{status.value: WORDS[status] for status in JobStatus},
}
"""What a status of the supervisor is called on the screen."""
ROW = re.compile(r"^.{1,8}?(?P<word>[a-z]+) +(?P<id>\w{8}-\w+-\w+)")
MARK_OF_QUASI = "-_1_st"
TOAST = ":toast: "
LINE_CELLS = 1_000
OWN_NAME = "jobtui: "


class Stopped(Exception):
    """The dashboard ended by itself or no longer answers."""


class Differences(NamedTuple):
    lost: int
    doubled: int
    others: tuple[str, ...]
    """Ops that are not as they were."""


def differences(told: Mapping[str, Any], site: Site) -> Differences:
    """Compare the ops that are known with those there were, of which the oldest may be dropped."""
    known, true = Counter(map(tuple, told["ops"])), Counter(site.ops())
    extra = list((known - true).elements())
    names_known, names_true = (Counter(op[:3] for op in ops.elements()) for ops in (known, true))
    twice = [op for op in extra if op in true or names_known[op[:3]] > max(1, names_true[op[:3]])]
    missed = site.lived().ops - told["dropped"] - known.total()
    was = {op[:3]: op[3:] for op in (true - known).elements()}
    others = tuple(f"op not as it was: {op}, was {was.get(op[:3])}" for op in extra if op not in twice)
    return Differences(max(0, missed + len(twice)), max(len(twice), -missed), others)


@dataclass(slots=True)
class Found:
    """What a run has seen. `wrong` says in words what should not be."""

    wrong: list[str] = field(default_factory=list)
    keys: int = 0
    ops_compared: int = 0
    jobs_compared: int = 0
    rows_compared: int = 0
    lost: int = 0
    doubled: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    injected: Counter[str] = field(default_factory=Counter)
    counted: int = 0
    asked: int = 0
    answered: int = 0
    """Keys after an exception that must be answered, and those that were."""
    slowest_s: float = 0.0
    """How long the slowest answer to them took."""
    screens: Counter[str] = field(default_factory=Counter)
    memory_mb: list[float] = field(default_factory=list)
    files_mb: list[float] = field(default_factory=list)
    """Of each sample: its memory, and what of that are mapped files, which the system may take back."""
    counts: list[dict[str, int]] = field(default_factory=list)
    """Of each sample: how many there were of what must not become more."""

    def differ(self, where: str, expected: Mapping[str, str], seen: Mapping[str, str]) -> None:
        self.note(
            *(
                f"{where}: {job} is {status}, seen as {seen.get(job)}"
                for job, status in expected.items()
                if seen.get(job) != status
            )
        )

    def note(self, *wrong: str) -> None:
        self.wrong += wrong
        if wrong and len(self.wrong) <= SAID_AT_ONCE:
            print(*wrong[:10], sep="\n", file=sys.stderr, flush=True)

    def result(self, jobs: int) -> str:
        comparisons = self.ops_compared + self.jobs_compared + self.rows_compared
        return (
            f"RESULT jobs {jobs:,}; comparisons {comparisons:,}; lost {self.lost}; doubled {self.doubled}; "
            f"other differences {len(self.wrong)}; injected {self.injected.total()}; "
            f"faults counted {self.counted}; keys answered {self.answered} of {self.asked}; "
            f"memory {max(self.memory_mb, default=0.0):.0f} MB"
        )


@dataclass(slots=True)
class Records:
    """The status of every job as its record says it, and since when, read without jobtui."""

    directory: Path
    _known: dict[str, tuple[tuple[int, ...], str, float]] = field(default_factory=dict)

    def read(self) -> None:
        paths = {path.stem: path for path in self.directory.glob("*.json")}
        for gone in self._known.keys() - paths.keys():
            del self._known[gone]
        for job, path in paths.items():
            try:
                self._look(job, path)
            except FileNotFoundError:
                self._known.pop(job, None)  # removed since: what it said last was never read

    def _look(self, job: str, path: Path) -> None:
        stat = path.stat()
        stamp = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
        before = self._known.get(job)
        if before is None or before[0] != stamp:
            try:
                self._known[job] = stamp, str(json.loads(path.read_bytes())["status"]), time.time()
            except (ValueError, KeyError, TypeError):
                self._known.pop(job, None)  # torn: it is looked at again

    def now(self, for_s: float = 0.0) -> Mapping[str, str]:
        before = time.time() - for_s
        return {job: status for job, (_, status, since) in self._known.items() if since <= before}


class Endurance:
    def __init__(self, site: Site, server: BalsamServer, terminal: Terminal, home: Path) -> None:
        self.site = site
        self.found = Found()
        self.painted = Painted(COLUMNS, ROWS)
        self.records = Records(site.records())
        self._terminal = terminal
        self._home = home
        self._place = Place(site, server, terminal, self._drain, self.order)
        self._legs: Iterator[Leg] = iter(())
        self._sampled_at = 0.0
        self._differed = Differences(0, 0, ())
        """What was wrong when ops were compared last, which no time mends."""

    def endure(self, minutes: float, only: str, seed: int) -> None:
        """Go on with the tour for so long, with faults and exceptions in between. Raises Stopped."""
        faults = {name: fault for name, fault in FAULTS.items() if only in name}
        if not faults:
            sys.exit(f"no fault has these words in its name: {only}; there are {', '.join(FAULTS)}")
        turns, stages = itertools.cycle(faults.items()), _shuffled(STAGES, random.Random(seed))
        begin = time.monotonic()
        until = begin + minutes * 60
        fault_every = min(FAULT_EVERY_S, minutes * 60 / len(faults))
        inject_every = min(INJECT_EVERY_S, minutes * 60 / len(STAGES))
        fault_due, inject_due = begin + fault_every, begin + inject_every / 2
        while (now := time.monotonic()) < until:
            self.tour(min(until, max(now + TOUR_S, min(fault_due, inject_due))))
            if time.monotonic() >= inject_due:
                inject_due += inject_every
                self.inject(next(stages))
            if time.monotonic() >= fault_due:
                fault_due += fault_every
                self.befall(*next(turns))

    def befall(self, name: str, fault: Any) -> None:
        """Let something go wrong, and compare when it is over. Raises Stopped."""
        self.home()
        fault(self._place)
        self.found.faults[name] += 1
        self._terminal.set_size(COLUMNS, ROWS)
        self._drain(SEEN_WITHIN_S)  # what was sent for another size is none of this one
        self._paint_again()
        self.compare_ops(f"after {name}")

    def inject(self, stage: str) -> None:
        """Let a stage raise once: it is counted, keys are answered, all is polled. Raises Stopped."""
        self.home()
        counted, at = _counted(self.tell()), time.time_ns()
        self.order(stage)
        self.found.injected[stage] += 1
        self.type(*LEADS_TO.get(stage, ()))
        until, told = time.monotonic() + WELL_AGAIN_S, self.tell()
        while time.monotonic() < until and not (_counted(told) > counted and _polled(told, at)):
            self.read(0.5)
            told = self.tell()
        self.found.counted = _counted(told)
        print(f"injected into {stage}: {self.found.counted} faults counted", file=sys.stderr)
        if self.found.counted != counted + 1:
            self.found.note(f"{stage}: {self.found.counted - counted} faults counted: {told['faults']}")
        if any(kind != Injected.__name__ or "?" in place for kind, _, place, _ in told["faults"]):
            self.found.note(f"{stage}: not only what was injected, or not where: {told['faults']}")
        if not _polled(told, at):
            late = [one for one in told["sources"] if (one[3] or 0) <= at]
            self.found.note(f"{stage}: not polled since {at}: {late}")
        self.answers()

    def answers(self) -> None:
        """Whether keys are answered, after each of which something else is shown. Raises Stopped."""
        self.home()
        for key, shown in ((":", EMPTY_COMMAND), ("?", "esc"), ("6", "SOURCE"), ("1", HEADING)):
            self.found.asked += 1
            pressed = time.monotonic()
            self.type(key)
            is_answered = self.wait(shown, ANSWERED_WITHIN_S)
            self.found.slowest_s = max(self.found.slowest_s, time.monotonic() - pressed)
            self.found.answered += is_answered
            if not is_answered:
                self.found.note(f"{key!r} is not answered:\n{self.painted.text()}")
            self.back_from(shown)

    def back_from(self, shown: str) -> None:
        """Back to where this is not shown, or to the jobs. Raises Stopped.

        An escape that is not read when the next key comes would be another key with it.
        """
        until = time.monotonic() + ANSWERED_WITHIN_S
        while time.monotonic() < until:
            self.type(ESCAPE)
            self.tell()  # it has read the escape: with the next key it would be another one
            if shown == HEADING or self.wait(shown, gone=True):
                return

    def look_back(self) -> None:
        """Open the oldest job: the logs are read back to it, and all ops are known. Raises Stopped."""
        self.records.read()
        oldest = min(self.site.records().glob("*.json"), key=lambda path: path.stat().st_mtime_ns).stem
        known = len(self.tell()["ops"])
        if self.site.lived().ops <= known:
            self.found.note("nothing is left to be read back to")
        self.type(":", f"{GOTO}{oldest}{ENTER}")
        self.compare_ops(f"after looking back to {oldest}")

    def compare_ops(self, when: str) -> None:
        """Compare the ops, and the health of the sources, while nothing happens. Raises Stopped."""
        until = time.monotonic() + WELL_AGAIN_S
        with held(self.site, at_rest=True):
            while True:
                self.read(1.0)
                told = self.tell()
                found, down = differences(told, self.site), sources_down(told)
                is_known = found == self._differed and not down
                if is_known or not (any(found) or down) or time.monotonic() > until:
                    break
        self._differed = found
        self.found.ops_compared += len(told["ops"])
        self.found.lost = max(found.lost, self.found.lost)
        self.found.doubled = max(found.doubled, self.found.doubled)
        if found.lost or found.doubled:
            self.found.note(f"{when}: {found.lost} ops lost, {found.doubled} doubled")
        print(f"{when}: {len(told['ops'])} ops, {found.lost} lost, {found.doubled} doubled", file=sys.stderr)
        self.found.note(*(f"{when}: {one}" for one in (*found.others[:10], *down)))

    def tour(self, until: float) -> None:
        """Go through the screens until a time, with samples in between. Raises Stopped."""
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
        """Compare what is known, and what is on the screen, with the records that have not changed lately."""
        found, self._sampled_at = self.found, time.monotonic()
        self.tell()
        self.home()
        self.records.read()
        self.read(SEEN_WITHIN_S)
        told, shown = self.tell(), self.shown()
        self.records.read()
        expected = self.records.now(SEEN_WITHIN_S)
        found.jobs_compared += len(expected)
        found.differ("known", expected, told["jobs"])
        visible = {job: STATUS_WORDS[status] for job, status in expected.items() if job in shown}
        found.rows_compared += len(visible)
        found.differ("on the screen", visible, shown)
        found.memory_mb.append(self._terminal.rss_mb())
        found.files_mb.append(self._terminal.rss_of_files_mb())
        threads = sum(not name.startswith(POOLED) for name in told["threads"])
        found.counts.append(
            {**{name: told[name] for name in COUNTED if name != "threads"}, "threads": threads}
        )

    def finish(self, flags: Sequence[str]) -> None:
        """Compare everything when all is over, the table with the records that are left. Raises Stopped."""
        self.site.stop()
        self.sample()
        self.compare_ops("in the end")
        self.site.thin_out(LEFT)
        self.read(END_WITHIN_S / 2)
        self.records.read()
        expected = self.records.now()
        wanted = {job: STATUS_WORDS[status] for job, status in expected.items() if MARK_OF_QUASI not in job}
        self.found.differ("known in the end", expected, self.tell()["jobs"])
        self.found.differ("printed in the end", expected, printed_jobs(flags, self._home))
        self.found.differ("on the screen in the end", wanted, self._shown_in_all(wanted))
        self.found.jobs_compared += 2 * len(expected)
        self.found.rows_compared += len(wanted)

    def leave(self) -> Iterator[str]:
        """Quit; what should not be after that: another exit code, text that is left on the terminal."""
        try:
            self.type(ESCAPE)
            self.read(SEEN_WITHIN_S)  # a q that is read together with the escape is another key
            self._paint_on(Painted(LINE_CELLS, ROWS))  # what is said on leaving may be wrapped by a terminal
            self.type("q")
            self.read(END_WITHIN_S)
        except Stopped:
            code, wanted = self._terminal.exit_code(), Exit.FAULT if self.found.counted else Exit.FINE
            if code != wanted:
                yield f"exit code {code} and not {wanted:d}"
            said = [line for line in self.painted.lines() if line]
            if self.found.counted and said and said[-1].startswith(OWN_NAME) and said[-1].endswith(SEE):
                said.pop()  # the faults that were injected are told of on leaving
            yield from said
        else:
            yield "it goes on after q"

    # What is typed, ordered and read.

    def read(self, for_s: float) -> None:
        """Take in what comes for so long. Raises Stopped."""
        until = time.monotonic() + for_s
        while (left := until - time.monotonic()) > 0:
            data = self._terminal.read(left)
            if data == b"":
                raise Stopped(f"the dashboard ended:\n{self.painted.text()}")
            if data:
                self.painted.feed(data)

    def type(self, *texts: str) -> None:
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
                self._settle()

    def order(self, what: str) -> None:
        """Have the dashboard do something, and wait until it has. Raises Stopped."""
        order, draft = self._home / ORDER, self._home / f"{ORDER}.new"
        draft.write_text(what)
        draft.replace(order)
        os.kill(self._terminal.pid, signal.SIGUSR1)
        until = time.monotonic() + END_WITHIN_S
        while order.exists():
            if time.monotonic() > until:
                raise Stopped(f"the dashboard does not answer:\n{self.painted.text()}")
            self.read(0.02)

    def tell(self) -> dict[str, Any]:
        """What the dashboard knows now. Raises Stopped."""
        self.order(TELL)
        told: dict[str, Any] = json.loads((self._home / TOLD).read_text())
        self.found.screens[told["screens"][-1]] += 1
        return told

    def wait(self, text: str, within_s: float = SEEN_WITHIN_S, *, gone: bool = False) -> bool:
        """Whether the screen shows this, or no longer, for which it is given some time. Raises Stopped."""
        until = time.monotonic() + within_s
        while (text in self.painted.text()) is gone and time.monotonic() < until:
            self.read(QUIET_S)
        return (text in self.painted.text()) is not gone

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

    def shown(self) -> dict[str, str]:
        rows = map(ROW.match, self.painted.lines())
        return {row["id"]: row["word"] for row in rows if row}

    def _shown_in_all(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """The same of the whole table, page by page, until all that is wanted was seen. Raises Stopped.

        A page that is not painted before the next key is never seen: then it goes through all once more.
        """
        until, shown = time.monotonic() + HOME_WITHIN_S, dict[str, str]()
        while not wanted.items() <= shown.items() and time.monotonic() < until:
            self.home()
            is_end = False
            while not is_end:
                page = self.shown()
                shown |= page
                self.type(PAGE_DOWN)
                changes_until = time.monotonic() + SEEN_WITHIN_S
                while self.shown() == page and time.monotonic() < changes_until:
                    self.read(QUIET_S)
                self.read(ANSWER_S)
                is_end = self.shown() == page
        return shown

    def _settle(self) -> None:
        """Take in the answer to a key. Raises Stopped."""
        start, until = self._terminal.received, time.monotonic() + ANSWER_S
        last = -1
        while time.monotonic() < until and (last in (-1, start) or last != self._terminal.received):
            last = self._terminal.received
            self.read(QUIET_S)

    def _drain(self, seconds: float) -> None:
        """Take what the program sends for so long, in whatever size the terminal has. Raises Stopped."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._terminal.read(left) == b"":
                raise Stopped("the dashboard ended")

    def _paint_again(self) -> None:
        self._terminal.set_size(COLUMNS - 1, ROWS)
        self._drain(1.0)
        self._paint_on(Painted(COLUMNS, ROWS))
        self._terminal.set_size(COLUMNS, ROWS)
        self._settle()

    def _paint_on(self, painted: Painted) -> None:
        painted.strays = self.painted.strays
        self.painted = painted

    def _somebody(self) -> str:
        self.records.read()
        users = Counter(job.partition("-")[0] for job in self.records.now())
        return users.most_common(1)[0][0] if users else "nobody"


def _shuffled(names: Mapping[str, Any], rng: random.Random) -> Iterator[str]:
    while True:
        yield from rng.sample(list(names), len(names))


def _counted(told: Mapping[str, Any]) -> int:
    return sum(count for _, _, _, count in told["faults"])


def _polled(told: Mapping[str, Any], since: int) -> bool:
    return all(read_at is not None and read_at > since for _, _, _, read_at in told["sources"])


def sources_down(told: Mapping[str, Any]) -> list[str]:
    return [f"{name} is down: {error}" for name, state, error, _ in told["sources"] if state == "down"]


def printed_jobs(flags: Sequence[str], home: Path) -> dict[str, str]:
    command = [sys.executable, "-m", "jobtui", *flags, "jobs", "quasi:no or quasi:yes", "--json"]
    ran = subprocess.run(command, env={**os.environ, **isolated(home)}, stdout=subprocess.PIPE, check=False)
    return {job["id"]: job["native_status"] for job in json.loads(ran.stdout)["jobs"]}


def flags_of(site: Site) -> Iterator[str]:
    for spec in site.specs():
        role = f"{spec.role}=" if spec.setting == "log" else ""
        yield from (f"--{spec.setting}", f"{role}{spec.target}")


def endure(site: Site, server: BalsamServer, home: Path, options: argparse.Namespace) -> list[Row]:
    """Leave a dashboard on a site for so long. What it finds, also when it ended before its time."""
    (config := home / ".config" / "jobtui").mkdir(parents=True)
    (config / "views.json").write_text(json.dumps(VIEW))
    server.write_login(home)
    flags = [*flags_of(site), "--balsam", server.url]
    argv = [sys.executable, "-m", "benchmarks.telling", str(home), *flags]
    environ = {**isolated(home), "TMPDIR": str(home)}
    program = Program(argv=argv, ready=TABLE_HEAD, environ=environ, columns=COLUMNS, rows=ROWS)
    with Terminal(program) as terminal:
        run = Endurance(site, server, terminal, home)
        try:
            run.read(2 * SEEN_WITHIN_S)
            run.look_back()
            site.start()
            run.endure(options.minutes, options.only, options.seed)
            run.finish(flags)
        except Stopped as error:
            run.found.note(str(error))
        left = list(run.leave())
    noted = [line for line in (home / NOTED).read_text().splitlines() if TOAST not in line]
    for line in [*noted[:50], *run.painted.strays, *left]:
        print(line, file=sys.stderr)
    print("faults:", dict(run.found.faults), "injected:", dict(run.found.injected), file=sys.stderr)
    print("screens:", dict(run.found.screens), file=sys.stderr)
    print("memory, MB:", *(f"{mb:.0f}" for mb in run.found.memory_mb), file=sys.stderr)
    print(run.found.result(site.lived().begun), file=sys.stderr)
    return list(rows_of(run, options.rate, noted, len(left)))


def rows_of(run: Endurance, rate: float, noted: Sequence[str], left: int) -> Iterator[Row]:
    found, lived = run.found, run.site.lived()
    row = partial(Row, measured=0.0, unit="")
    yield at_least(
        "jobs begun, beside the times at rest", lived.begun / max(1.0, lived.seconds), "jobs/s", SHARE * rate
    )
    yield row(what="jobs begun in all", measured=lived.begun, unit="jobs")
    yield row(what="ops in all", measured=lived.ops, unit="ops")
    yield row(what="ops compared, each as it was", measured=found.ops_compared, unit="ops")
    yield row(what="jobs compared", measured=found.jobs_compared, unit="times")
    yield row(what="rows of the screen compared", measured=found.rows_compared, unit="rows")
    yield at_most("ops lost", found.lost, "ops", 0)
    yield at_most("ops doubled", found.doubled, "ops", 0)
    yield at_most("of all these lost, late or wrong", len(found.wrong), "", 0)
    yield row(what="faults of the site", measured=found.faults.total(), unit="faults")
    yield row(what="kinds of them", measured=len(found.faults), unit="kinds", reference=len(FAULTS))
    yield at_least("stages that raised", len(found.injected), "stages", len(STAGES))
    yield at_least("exceptions injected, each counted", found.counted, "faults", found.injected.total())
    yield row(what="keys pressed", measured=found.keys, unit="keys")
    yield at_least("keys answered after exceptions", found.answered, "keys", found.asked)
    yield row(what="the slowest of these answers", measured=found.slowest_s, unit="s")
    yield at_most("other exceptions and warnings", len(noted), "lines", 0)
    yield at_most("stray sequences on the wire", len(run.painted.strays), "", 0)
    yield at_most("lines left behind, or a wrong exit code, after q", left, "", 0)
    yield at_most("memory, highest", max(found.memory_mb, default=0.0), "MB", MOST_MB)
    yield row(what="of memory, files that are mapped", measured=max(found.files_mb, default=0.0), unit="MB")
    warm = found.memory_mb[int(len(found.memory_mb) * WARM_UP_SHARE) :]
    if len(warm) > 1:
        grown = statistics.median(warm[-(len(warm) // 2) :]) - statistics.median(warm[: len(warm) // 2])
        yield row(what="memory, growth after the warm-up", measured=grown, unit="MB")
        first = found.counts[: len(found.counts) // 2]
        for what in COUNTED:
            yield at_most(f"{what}, at the end", found.counts[-1][what], "", max(one[what] for one in first))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=100.0, help="jobs that begin each second")
    parser.add_argument("--seed", type=int, default=1, help="which of the simulated sites")
    parser.add_argument("--only", metavar="WORDS", default="", help="faults with these words in their name")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what runs beside it ends, too
    with tempfile.TemporaryDirectory(prefix="jobtui-endurance-") as place, closing(BalsamServer()) as server:
        (home := Path(place, "home")).mkdir()
        with site_apart(Path(place, "site"), options.rate, options.seed) as site:
            rows = endure(site, server, home, options)
    return report(rows, options.json)


if __name__ == "__main__":
    sys.exit(main())
