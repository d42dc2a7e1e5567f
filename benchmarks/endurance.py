"""The dashboard left on a site under a rush while everything faults in turn: what was lost, doubled, or grew.

    python -m benchmarks.endurance [--minutes N] [--rate N] [--seed N] [--only WORDS] [--json]

As `benchmarks.soak`, which goes through all screens and compares the records; here 200 jobs begin each
second, ops are let go of all the time, and every half minute something else goes wrong (`benchmarks.faults`),
sooner where there would not be the time for everything that can. After each the site is let come to rest, and
what is known is compared with what the site noted: as many ops as there were, none twice, each as it was; and
every source is well again. Beside the site are sources of all other kinds that this machine has the programs
for (`benchmarks.side_sources`), in which little happens and which fault in their turn; what they wrote is
compared as well. 1 when anything differs.
"""

import argparse
import itertools
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.balsam_stand_in import BalsamStandIn
from benchmarks.faults import FAULTS, Place
from benchmarks.painted import Painted
from benchmarks.rows import Row, at_least, report
from benchmarks.rush_apart import AnyRush, RushApart
from benchmarks.side_sources import left_out, made_sides
from benchmarks.sides import Side, Sides, Wait
from benchmarks.soak import (
    COLUMNS,
    END_WITHIN_S,
    ROWS,
    SEEN_WITHIN_S,
    VIEW,
    Soak,
    Stopped,
    leave,
    printed_jobs,
    rows_of,
    tell_more,
)
from benchmarks.soak_dashboard import NOTED
from benchmarks.soak_sites import flags_of
from benchmarks.startup import TABLE_HEAD, isolated
from benchmarks.terminal import Program, Terminal

FAULT_EVERY_S = 30.0
"""Sooner where not all of them would come otherwise."""
TOUR_S = 5.0
"""The tour goes on for at least so long between two faults."""
WELL_AGAIN_S = 90.0
"""How long a source may take to be well again: it is asked less often while it fails."""
SHARE = 0.9
"""How much of the rate must be reached: users who are all busy begin nothing."""
LEFT = 400
"""Jobs that are left for the table to be read row by row."""
MOST_MB = 512.0
"""What all that is kept at most takes with these sources: docs/performance.md."""
NOT_WELL = ("down",)
TOAST = ":toast: "
ALL_TIME = ("--since", "2000-01-01T00:00:00Z")
"""Otherwise a look at an old job would have all logs read again, also those that are rotated away by then."""


class Endurance(Soak):
    """A dashboard on a site under a rush."""

    def __init__(self, place: Place, sides: Sides, home: Path, only: str = "") -> None:
        super().__init__(place.terminal, home, place.site.directory / "db")
        self.place = place
        self.sides = sides
        self.befell: Counter[str] = Counter()
        self.ops_compared = 0
        every = all_faults(place, sides, self._waits)
        self.faults = {name: fault for name, fault in every.items() if only in name}
        if not self.faults:
            sys.exit(f"no fault has these words in its name: {only}; there are {', '.join(every)}")
        self._turns: Iterator[str] = itertools.cycle(self.faults)
        self._to_look_at = itertools.cycle(side for side in sides.sides if side.keys)
        self._looked_at: Side | None = None

    def endure(self, minutes: float) -> None:
        """Go on with the tour for so long, with faults in between. Raises Stopped."""
        begin = time.monotonic()
        until, faults = begin + minutes * 60, itertools.count(1)
        every_s = min(FAULT_EVERY_S, minutes * 60 / len(self.faults))
        while time.monotonic() < until:
            if (side := next(self._to_look_at, None)) is not None:
                self._looked_at = None
                self.look(side, SEEN_WITHIN_S)
            due = begin + next(faults) * every_s
            self.run(min(until, max(time.monotonic() + TOUR_S, due)))
            self.befall(next(self._turns))

    def befall(self, name: str) -> None:
        """Let something go wrong, and compare when it is over. Raises Stopped."""
        self.home()
        self._looked_at = None
        self.faults[name]()
        self.befell[name] += 1
        self.place.terminal.set_size(COLUMNS, ROWS)
        self.read(SEEN_WITHIN_S)
        self._paint_anew()
        if (side := self.sides.asked(name)) is not None and not self.shows(side):
            self.found.wrong.append(f"after {name}: {side.shown!r} is not shown:\n{self.painted.text()}")
        with self.place.site.at_rest(), self.sides.at_rest():
            self.compare_ops(f"after {name}")

    def look(self, side: Side, seconds: float) -> None:
        """Look at what a source is asked for only then, for so long, and let it know what the screen says."""
        until = time.monotonic() + seconds
        if self._looked_at is not side:
            self.home()
            self.type(*side.keys)
            self._looked_at = side
        self.read(max(0.0, until - time.monotonic()))
        side.saw(self.painted.text())

    def shows(self, side: Side) -> bool:
        """Whether the screen says what it should of a source, looked at until it does. Raises Stopped."""
        until = time.monotonic() + WELL_AGAIN_S
        while time.monotonic() < until:
            self._looked_at = None
            self.look(side, 0.0)
            if self.wait(side.shown):
                return True
        return False

    def compare_ops(self, when: str) -> None:
        """Compare the ops, and the health of the sources, while nothing happens. Raises Stopped."""
        site, until = self.place.site, time.monotonic() + WELL_AGAIN_S
        wrong = ["nothing was told"]
        while wrong and time.monotonic() < until:
            self.read(1.0)
            told = self.tell()
            wrong = [*ops_wrong(told, site), *self.sides.wrong(told), *sources_wrong(told)]
        self.ops_compared += len(told["ops"])
        self.found.wrong += [f"{when}: {one}" for one in (*wrong, *self.sides.missed())]

    def _waits(self, name: str) -> Wait:
        """What waits while a fault lasts: for what is asked only then, by looking at it."""
        side = self.sides.asked(name)
        return self.place.wait if side is None else partial(self.look, side)

    def _paint_anew(self) -> None:
        """Forget what was painted in other sizes, and have all of it sent again."""
        strays = self.painted.strays
        self.place.terminal.set_size(COLUMNS - 1, ROWS)
        self.read(1.0)
        self.painted = Painted(COLUMNS, ROWS)
        self.painted.strays = strays
        self.place.terminal.set_size(COLUMNS, ROWS)
        self.settle()


def all_faults(place: Place, sides: Sides, waits: Callable[[str], Wait]) -> Mapping[str, Callable[[], None]]:
    """Everything that can go wrong, by name: with the site and with what is beside it in turn."""
    of_site = [(name, partial(fault, place)) for name, fault in FAULTS.items()]
    beside = [(name, partial(fault, waits(name))) for name, fault in sides.faults.items()]
    return dict(turn for pair in itertools.zip_longest(of_site, beside) for turn in pair if turn)


def ops_wrong(told: dict[str, Any], site: AnyRush) -> list[str]:
    """In what the ops that are known differ from those there were."""
    known = Counter(tuple(op) for op in told["ops"])
    missed = site.count() - told["dropped"] - sum(known.values())
    wrong = [f"{abs(missed)} ops {'lost' if missed > 0 else 'too many'}"] if missed else []
    return wrong + [f"op not as it was, or twice: {op}" for op in (known - Counter(site.ops()))][:10]


def sources_wrong(told: dict[str, Any]) -> list[str]:
    """Sources that are not well."""
    return [f"{name} is {state}: {error}" for name, state, _, error in told["sources"] if state in NOT_WELL]


def endure_on(
    site: AnyRush, server: BalsamStandIn, sides: Sides, home: Path, minutes: float, only: str = ""
) -> tuple[Endurance, list[Row]]:
    """Leave a dashboard there for so long. What it finds, also when it ended before its time."""
    (config := home / ".config" / "jobtui").mkdir(parents=True)
    (config / "views.json").write_text(json.dumps(VIEW))
    server.write_login(home)
    flags = [*flags_of(site.specs), "--balsam", server.url]
    argv = [sys.executable, "-m", "benchmarks.soak_dashboard", str(home), *flags, *sides.flags, *ALL_TIME]
    environ = {**isolated(home), "TMPDIR": str(home), **sides.environ}
    program = Program(argv=argv, ready=TABLE_HEAD, environ=environ, columns=COLUMNS, rows=ROWS)
    with Terminal(program) as terminal:
        soak = Endurance(Place(site, server, terminal, partial(drain, terminal)), sides, home, only)
        try:
            soak.read(SEEN_WITHIN_S)
            site.start()
            sides.start()
            soak.endure(minutes)
            finish(soak, site, flags, home)
        except Stopped as error:
            soak.found.wrong.append(str(error))
        left, code = leave(soak, terminal)
    noted = without_toasts((home / NOTED).read_text())
    return soak, [*more_rows(soak, site), *rows_of(site.name, soak, noted, code, left, MOST_MB)]


def without_toasts(noted: str) -> str:
    """What went wrong within the program: of sources that fault it has to tell."""
    return "\n".join(line for line in noted.splitlines() if TOAST not in line)


def drain(terminal: Terminal, seconds: float) -> None:
    """Take what the program sends for so long, whatever it is. Raises Stopped."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if terminal.read(left) == b"":
            raise Stopped("the dashboard ended")


def finish(soak: Endurance, site: AnyRush, flags: Sequence[str], home: Path) -> None:
    """Compare everything when all is over, the table with the records that are left. Raises Stopped."""
    site.stop()
    soak.sides.stop()
    soak.sample()
    soak.compare_ops("in the end")
    site.thin_out(LEFT)
    soak.read(END_WITHIN_S / 2)
    soak.compare_jobs(printed_jobs(flags, home))


def more_rows(soak: Endurance, site: AnyRush) -> Iterator[Row]:
    """What there was of it."""
    name = site.name
    yield at_least(f"{name}: jobs begun", site.begun / max(1.0, site.lived_s), "jobs/s", SHARE * site.rate)
    yield Row(what=f"{name}: lived, beside the times at rest", measured=site.lived_s / 60, unit="min")
    yield Row(what=f"{name}: jobs begun in all", measured=site.begun, unit="jobs")
    yield Row(what=f"{name}: ops in all", measured=site.count(), unit="ops")
    yield Row(what=f"{name}: ops compared, each as it was", measured=soak.ops_compared, unit="ops")
    yield Row(what=f"{name}: written by the sources beside it", measured=soak.sides.written, unit="records")
    yield Row(what=f"{name}: faults", measured=soak.befell.total(), unit="faults")
    yield Row(
        what=f"{name}: kinds of faults", measured=len(soak.befell), unit="kinds", reference=len(soak.faults)
    )


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=200.0, help="jobs that begin each second")
    parser.add_argument("--seed", type=int, default=1, help="which of the simulated sites")
    parser.add_argument("--only", metavar="WORDS", default="", help="faults with these words in their name")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jobtui-endurance-") as place, closing(BalsamStandIn()) as server:
        for directory in (root := Path(place, "site"), home := Path(place, "home")):
            directory.mkdir()
        site = RushApart(root, options.rate, options.seed)
        (beside := Path(place, "beside")).mkdir()
        sides = Sides(made_sides(beside, site.directory / "db"))
        try:
            soak, rows = endure_on(site, server, sides, home, options.minutes, options.only)
        finally:
            sides.close()
            site.close()
        noted = (home / NOTED).read_text()
    tell_more(soak, noted)
    print("faults:", dict(soak.befell), file=sys.stderr)
    for name, missing in left_out().items():
        print(f"left out: {name}, which needs {missing}", file=sys.stderr)
    return report(rows, options.json)


if __name__ == "__main__":
    sys.exit(main())
