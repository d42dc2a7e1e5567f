"""Files of HTCondor beside a simulated site: a schedd's own event log, and the ads of its queue.

Some jobs are told of by events and by ads, some by ads only. They are suspended, held, evicted, released, and
now and then one is submitted that ends. What the dashboard knows is compared with the state that each is in.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.sides import LASTS_S, Fault, Side, Wait

SCHEDD = "schedd.example.org"
HOST = "<10.0.0.1:9618?addrs=10.0.0.1-9618&alias=schedd.example.org&noUDP&sock=schedd_1>"
NODE = "<10.0.0.2:9618?addrs=10.0.0.2-9618&alias=node1.example.org&noUDP&sock=startd_1>"
JOBS = 8
"""Jobs that go on for ever, of those with events and of those with ads only."""
FIRST_OF_ADS = 500
FIRST = 1_000
BEGINS_EVERY, ENDS_AFTER = 30, 15
ADS_EVERY = 3
NULS = 1 << 16


class Step(NamedTuple):
    """What happens to a job next: the number and text of its event, and the state it is in then."""

    event: int
    text: str
    state: str


SUBMITTED = Step(0, f"Job submitted from host: {HOST}", "IDLE")
EXECUTES = Step(1, f"Job executing on host: {NODE}", "RUNNING")
ENDED = Step(5, "Job terminated.\n\t(1) Normal termination (return value 0)", "COMPLETED")
LIVES = (
    EXECUTES,
    Step(10, "Job was suspended.\n\tNumber of processes actually suspended: 1", "SUSPENDED"),
    Step(11, "Job was unsuspended.", "RUNNING"),
    Step(4, "Job was evicted.\n\t(0) CPU times\n\t(0) Job was not checkpointed.", "IDLE"),
    EXECUTES,
    Step(12, "Job was held.\n\tTransfer input files failure\n\tCode 13 Subcode 2", "HELD"),
    Step(13, "Job was released.\n\tvia condor_release (by user jdoe)", "IDLE"),
)  # fmt: skip
"""What happens to a job over and over."""
CODES = {"IDLE": 1, "RUNNING": 2, "COMPLETED": 4, "HELD": 5, "SUSPENDED": 7}


class CondorSide(Side):
    """An event log that grows, and a file of ads."""

    name = "condor"

    def __init__(self, directory: Path) -> None:
        super().__init__()
        directory.mkdir()
        self._log, self._ads = directory / "EventLog", directory / "queue.ads"
        self.source = str(self._log)
        self.flags = ("--condor-log", self.source, "--condor-log", str(self._ads))
        self._ticks, self._begun, self._rotations, self._skipped = 0, FIRST, 0, 0
        self._at = int(time.time())
        """When what happens now happens: in another second than what happened before."""
        self._states: dict[int, tuple[str, int]] = {}
        self._steps: Counter[int] = Counter()
        self._write(self._head())
        for job in range(1, JOBS + 1):
            self._write(self._event(job, SUBMITTED))
            self._state(FIRST_OF_ADS + job, "IDLE")
        self._write_ads()

    def tick(self) -> None:
        """Something happens to a job; some begin and end; now and then there are new ads."""
        self._ticks += 1
        self._at = max(self._at + 1, int(time.time()))
        self._write(self._next_event())
        if self._ticks % BEGINS_EVERY == 0:
            self._begun += 1
            self._write(self._event(self._begun, SUBMITTED) + self._event(self._begun, EXECUTES))
        elif self._ticks % BEGINS_EVERY == ENDS_AFTER and self._begun > FIRST:
            self._write(self._event(self._begun, ENDED))
        if self._ticks % ADS_EVERY == 0:
            of_ads = FIRST_OF_ADS + self._ticks // ADS_EVERY % JOBS + 1
            self._state(of_ads, self._next_step(of_ads).state)
            self._write_ads()

    @property
    def faults(self) -> Mapping[str, Fault]:
        """What befalls its files."""
        return {
            "half an event": self._half,
            "rotated": self._rotated,
            "half the ads": self._half_ads,
            "an event damaged": self._damaged,
            "away and back": self._away,
            "a run of NULs": self._nuls,
        }

    def wrong(self, told: Mapping[str, Any]) -> list[str]:
        """Also the jobs that are known otherwise than they are, and what was skipped that is not damaged."""
        return [*super().wrong(told), *self._jobs_wrong(told["jobs"]), *self._skips_wrong(told["sources"])]

    def _jobs_wrong(self, jobs: Mapping[str, str]) -> Iterator[str]:
        known = {job: state for job, state in jobs.items() if job.endswith(f"@{SCHEDD}")}
        true = {f"{number}.0@{SCHEDD}": state for number, (state, _) in self._states.items()}
        for job in sorted(true.keys() | known.keys()):
            if true.get(job) != known.get(job):
                yield f"{self.name}: {job} is {true.get(job)}, known as {known.get(job)}"

    def _skips_wrong(self, sources: Any) -> Iterator[str]:
        allowed = {self.source: self._skipped, str(self._ads): 0}
        for name, _, skipped, _ in sources:
            if skipped != allowed.get(name, skipped):
                yield f"{name}: {skipped} skipped, not {allowed[name]}"

    def _next_event(self) -> str:
        job = self._ticks % JOBS + 1
        return self._event(job, self._next_step(job))

    def _next_step(self, job: int) -> Step:
        self._steps[job] += 1
        return LIVES[(self._steps[job] - 1) % len(LIVES)]

    def _event(self, job: int, step: Step) -> str:
        """What the log says when that happens, which it does now."""
        self.written += 1
        self._state(job, step.state)
        return _written(step.event, f"{job:03}.000.000", self._at, step.text)

    def _head(self) -> str:
        """What a schedd's own log begins with."""
        self.written += 1
        self._rotations += 1
        words = f"Global JobLog: ctime={self._at} id=0.17.1.{self._rotations} sequence={self._rotations}"
        return _written(
            8, "-01.-01.-01", self._at, f"{words} size=0 events=0 offset=0 event_off=0 max_rotation=1"
        )

    def _state(self, job: int, state: str) -> None:
        self._states[job] = state, self._at

    def _write(self, text: str) -> None:
        with self._log.open("a") as file:
            file.write(text)

    def _write_ads(self) -> None:
        draft = self._ads.with_suffix(".new")
        draft.write_text(self._ads_text())
        draft.replace(self._ads)

    def _ads_text(self) -> str:
        return "".join(
            f'ClusterId = {number}\nProcId = 0\nGlobalJobId = "{SCHEDD}#{number}.0#1"\nOwner = "jdoe"\n'
            f"JobStatus = {CODES[state]}\nEnteredCurrentStatus = {at}\n\n"
            for number, (state, at) in self._states.items()
            if number < FIRST
        )

    def _half(self, wait: Wait) -> None:
        text = self._next_event()
        for part in (text[: len(text) // 2], text[len(text) // 2 :]):
            self._write(part)
            wait(LASTS_S)

    def _damaged(self, wait: Wait) -> None:
        """One event loses its head, another its end, as on a disk that was full; the others do not."""
        torn = _written(6, "001.000.000", self._at, "Image size of job updated: 17\n\t17  -  Memory")[:-8]
        self._write("\x02\x01 garbage\n...\n" + self._next_event() + torn + "\n" + self._next_event())
        self._skipped += 2
        wait(LASTS_S)

    def _rotated(self, wait: Wait) -> None:
        """Moved away when all of it has been read, as nothing says where the rest is."""
        wait(LASTS_S)
        self._log.replace(self._log.with_suffix(".old"))
        self._write(self._head())
        self.tick()

    def _away(self, wait: Wait) -> None:
        away = self._log.with_suffix(".away")
        self._log.rename(away)
        wait(LASTS_S)
        away.rename(self._log)
        self.tick()

    def _nuls(self, wait: Wait) -> None:
        """A hole, as a crash of its host leaves it."""
        self._write("\0" * NULS + self._next_event())
        wait(LASTS_S)

    def _half_ads(self, wait: Wait) -> None:
        """Written in its place, half of it for a while."""
        text = self._ads_text()
        self._ads.write_text(text[: len(text) // 2])
        wait(LASTS_S)
        self._write_ads()


def _written(number: int, job: str, at: int, text: str) -> str:
    """An event in the classic form."""
    return f"{number:03} ({job}) {time.strftime('%Y-%m-%d %H:%M:%SZ', time.gmtime(at))} {text}\n...\n"
