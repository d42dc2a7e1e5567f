"""The job table alone, on many jobs of which some change every second: a program to be measured from outside.

    python -m benchmarks.table_live [--jobs 100000] [--share 0.02] [--live 0.01] [--visible 0] [--sort KEY]

It is ready when `ready` is on the wire. Changed jobs are handed over four times a second, as a screen does.
With `--visible N` so many of the rows on the screen change in a second too, with 0 as a share nothing else.
"""

import argparse
import random
from time import time_ns

import msgspec
from textual.app import ComposeResult
from textual.screen import Screen

from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from jobtui.render.columns import RowContext
from jobtui.terminal.app import LeanApp
from jobtui.theme import DARK, THEMES
from jobtui.widgets.frame import Header
from jobtui.widgets.job_table import JobTable
from jobtui.widgets.row_view import Move

FLUSH_S = 0.25
LIVE = (JobStatus.RUNNING, JobStatus.RUNNING, JobStatus.PENDING)
ENDED = (JobStatus.COMPLETED, JobStatus.COMPLETED, JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELED)
MODELS = ("heightWeightReport", "multiElectronAnimation", "fluxAnimation", "intensityReport", "animation")
APPS = ("srw", "warppba", "elegant", "myapp", "opal")
MODES = ("sequential", "parallel", "sbatch")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def made_jobs(count: int, live: float, rng: random.Random) -> list[Job]:
    now = time_ns()
    users = ["".join(rng.choices(LETTERS, k=8)) for _ in range(max(1, count // 40))]
    return [made_job(rng, rng.choice(users), now, is_live=rng.random() < live) for _ in range(count)]


def made_job(rng: random.Random, user: str, now: int, *, is_live: bool) -> Job:
    status = rng.choice(LIVE if is_live else ENDED)
    at = now - rng.randrange(3_000 if is_live else 90 * 86_400) * SECOND
    model = rng.choice(MODELS)
    started = None if status is JobStatus.PENDING else Nanos(at + rng.randrange(60) * SECOND)
    return Job(
        id=JobId(f"{user}-{''.join(rng.choices(LETTERS, k=8))}-{model}"),
        system="sirepo",
        status=status,
        native_status=status.value,
        source="/srv/sirepo/db",
        owner=user,
        name=f"Beamline {rng.randrange(10_000)} survey",
        app=rng.choice(APPS),
        model=model,
        mode=rng.choice(MODES),
        queued_at=Nanos(at),
        started_at=started,
        updated_at=Nanos(at + 90 * SECOND),
        ended_at=None if is_live else Nanos(at + rng.randrange(90, 3_600) * SECOND),
        runs=1,
        percent=float(rng.randrange(100)),
        message="Waiting for CPU resources await=cpu_slot" if status is JobStatus.PENDING else None,
        error="no such element: crystal3" if status is JobStatus.FAILED else None,
    )


class TableScreen(Screen[None]):
    BINDINGS = [(key, f"move('{move}')", "") for key, move in zip("kj", ("up", "down"), strict=True)]
    BINDINGS += [("up", "move('up')", ""), ("down", "move('down')", ""), ("G,end", "move('bottom')", "")]
    BINDINGS += [("pageup", "move('page_up')", ""), ("pagedown", "move('page_down')", "")]
    BINDINGS += [("g,home", "move('top')", ""), ("r", "reverse", ""), ("q", "app.quit", "")]

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        self._rng = random.Random(1)
        self._share = options.share
        self._sort = options.sort
        self._visible = options.visible
        self._jobs = made_jobs(options.jobs, options.live, self._rng)
        self._header = Header(self.now, "table")
        self._table = JobTable(lambda: RowContext(now=self.now()))

    def now(self) -> Nanos:
        return Nanos(time_ns())

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._table

    def on_mount(self) -> None:
        self._table.apply(self._jobs)
        if self._sort:
            self._table.sort_by(self._sort)
        self.set_interval(FLUSH_S, self._change)
        self.set_interval(1.0, self._tick)

    def action_move(self, move: str) -> None:
        self._table.move(Move(move))

    def action_reverse(self) -> None:
        key, reverse = self._table.sorted_by
        self._table.sort_by(key, reverse=not reverse)

    def on_job_table_recounted(self) -> None:
        self._header.title = "table" if self._table.is_sorting else "ready"

    def _change(self) -> None:
        now = self.now()
        changed = []
        for _ in range(round(len(self._jobs) * self._share * FLUSH_S)):
            at = int(self._rng.random() * len(self._jobs))
            self._jobs[at] = job = changed_job(self._jobs[at], now, self._rng)
            changed.append(job)
        self._table.apply(changed)

    def _change_visible(self) -> None:
        jobs = self._table.visible_jobs
        for job in self._rng.sample(jobs, min(self._visible, len(jobs))):
            self._table.apply([changed_job(job, self.now(), self._rng)])

    def _tick(self) -> None:
        rows = self._table.rows
        self._header.set_counts(rows.tally.counts(self.now()), len(rows.needy))
        self._table.tick()
        if self._visible:
            self._change_visible()


def changed_job(job: Job, now: Nanos, rng: random.Random) -> Job:
    """The same job with other news; now and then it ends."""
    if job.status.is_live and rng.random() < 0.02:
        return msgspec.structs.replace(
            job, status=JobStatus.COMPLETED, ended_at=now, updated_at=now, message=None
        )
    return msgspec.structs.replace(job, percent=float(int(rng.random() * 100)), updated_at=now)


class TableApp(LeanApp[None]):
    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        self.animation_level = "none"
        self._options = options
        for known in THEMES:
            self.register_theme(known)
        self.theme = DARK.name

    def get_default_screen(self) -> Screen[None]:
        return TableScreen(self._options)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--share", type=float, default=0.02, help="how many of them change in a second")
    parser.add_argument("--live", type=float, default=0.01, help="how many of all are pending or running")
    parser.add_argument("--visible", type=int, default=0, help="rows on the screen that change in a second")
    parser.add_argument("--sort", help="a column to sort by; without it what needs a person comes first")
    TableApp(parser.parse_args()).run(mouse=False)


if __name__ == "__main__":
    main()
