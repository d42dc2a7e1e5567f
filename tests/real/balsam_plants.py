"""Every way in which a job of Balsam ends, waits or hangs, planted on a real server, with what is true of it.

Each family has a site of its own, so that its allocations are its own. States are set as the site's agent and
its launchers set them; what only time brings (heartbeats that grow old) is written into the database.
"""

import random
import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.real.balsam_system import BalsamSystem
from tests.real.live import Due

Patch = dict[str, Any]


class SiteAgent:
    """One site with an app, an allocation of so many nodes and its launcher."""

    def __init__(self, system: BalsamSystem, seed: int, *, has_nodes: bool = True) -> None:
        self._system = system
        self._random = random.Random(seed)
        self._added = 0
        self.site = system.call(
            "POST", "/sites/", json={
                "name": f"site-{seed}", "path": f"/projects/s{seed}",
                "transfer_locations": {"dtn": "globus://ddb59aef-6d04-11e5-ba46-22000b92c6ec"},
            },
        )  # fmt: skip
        deck = {
            "required": False,
            "direction": "in",
            "local_path": "in.dat",
            "description": "",
            "recursive": False,
        }
        self.app = system.call(
            "POST", "/apps/",
            json={
                "site_id": self.site["id"], "name": "Sim", "serialized_class": "", "source_code": "x",
                "transfers": {"deck": deck},
            },
        )  # fmt: skip
        self.batch_job = self.allocate(nodes=64) if has_nodes else {}

    def allocate(
        self,
        nodes: int,
        *,
        state: str = "running",
        tags: Mapping[str, str] | None = None,
        info: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """An allocation: in the queue, one that could not be submitted, or one that runs, with a launcher."""
        asked = {
            "site_id": self.site["id"], "project": "p", "queue": "q", "num_nodes": nodes, "wall_time_min": 60,
            "job_mode": "mpi", "filter_tags": tags or {}, "optional_params": {},
        }  # fmt: skip
        made = self._system.call("POST", "/batch-jobs/", json=asked)
        path = f"/batch-jobs/{made['id']}"
        if state == "submit_failed":
            self._system.call("PUT", path, json={"state": state, "status_info": info or {}})
            return dict(made)
        self._system.call("PUT", path, json={"state": "queued", "scheduler_id": 4000 + made["id"]})
        if state == "queued":
            return dict(made)
        self._system.call("PUT", path, json={"state": "running"})
        session = {"site_id": self.site["id"], "batch_job_id": made["id"]}
        self.session = self._system.call("POST", "/sessions/", json=session)
        return dict(made)

    def delete(self, jobs: list[int]) -> None:
        for job in jobs:
            self._system.call("DELETE", f"/jobs/{job}")

    def transfer(self, jobs: list[int], state: str, error: str) -> None:
        """Let the transfers of files to jobs be in a state."""
        found = self._system.call("GET", "/transfers/", params={"job_id": jobs})["results"]
        assert len(found) == len(jobs)
        for item in found:
            info = {"error": error} if state == "error" else {}
            told = {"state": state, "task_id": "t", "transfer_info": info}
            self._system.call("PUT", f"/transfers/{item['id']}", json=told)

    def finish(self, ran: timedelta = timedelta(minutes=20)) -> None:
        """End the allocation; its times come from the scheduler's accounting, in whole seconds."""
        end = datetime.now(UTC).replace(microsecond=0)
        times = {"start_time": (end - ran).isoformat(), "end_time": end.isoformat(), "state": "finished"}
        self._system.call("PUT", f"/batch-jobs/{self.batch_job['id']}", json=times)

    def add_jobs(self, count: int, *, parents: Sequence[int] = (), stage_in: bool = False) -> list[int]:
        """Jobs of several sizes, with tags."""
        self._added += 1
        transfers = {"transfers": {"deck": {"location_alias": "dtn", "path": "/data/in.dat"}}}
        more = {"parent_ids": list(parents), **(transfers if stage_in else {})}
        specs = [
            {
                "workdir": f"run/{self._added}/{number:04d}", "app_id": self.app["id"], **more,
                "tags": {"experiment": self._random.choice(["a", "b"])},
                "num_nodes": self._random.choice([1, 1, 4]),
                "node_packing_count": self._random.choice([1, 3, 8]),
            }
            for number in range(count)
        ]  # fmt: skip
        return [job["id"] for job in self._system.call("POST", "/jobs/", json=specs)]

    def move(self, jobs: list[int], state: str, late_s: float = 0.0, **detail: Any) -> None:
        """Bring jobs into a state, as of some seconds ago."""
        at = datetime.now(UTC).replace(tzinfo=None) - timedelta(seconds=late_s)
        patches: list[Patch] = [
            {"id": job, "state": state, "state_timestamp": at.isoformat(), "state_data": detail}
            for job in jobs
        ]
        self._system.call("PATCH", "/jobs/", json=patches)

    def run(self, jobs: list[int]) -> None:
        """Let jobs begin to run, by acquiring them as a launcher does."""
        asked = {
            "max_num_jobs": len(jobs), "max_nodes_per_job": 64, "max_aggregate_nodes": 10_000.0,
            "max_wall_time_min": 100_000, "filter_tags": {}, "states": ["PREPROCESSED", "RESTART_READY"],
        }  # fmt: skip
        got = self._system.call("POST", f"/sessions/{self.session['id']}", json=asked)
        for job in got:
            self.move([job["id"]], "RUNNING", num_nodes=job["num_nodes"] / job["node_packing_count"])

    def work(self, jobs: list[int]) -> None:
        """Take jobs to their ends: most finish, some fail, some run again, some updates come late."""
        self.move(jobs, "PREPROCESSED")
        self.run(jobs)
        failed, timed_out = jobs[::7], jobs[1::7]
        done = [job for job in jobs if job not in {*failed, *timed_out}]
        self.move(done, "RUN_DONE", late_s=0.02)
        self.move(failed, "RUN_ERROR", returncode=3, error="ValueError: no such element")
        self.move(failed, "FAILED")
        self.move(timed_out, "RUN_TIMEOUT")
        self.move(timed_out, "RESTART_READY")
        self.run(timed_out)
        self.move(timed_out, "RUN_DONE")
        self.move([*done, *timed_out], "JOB_FINISHED")


class Planted(NamedTuple):
    job: int
    family: str
    due: Due


FAMILIES: Mapping[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())


class Plants:
    """Plants families of jobs. `planted` is what is true of each; the server's clock is `off_s` off."""

    def __init__(self, system: BalsamSystem, seed: int, each: int, off_s: int = 0) -> None:
        self._system = system
        self._random = random.Random(seed)
        self._seed = seed
        self._each = each
        self._sites = 0
        self._off = timedelta(seconds=off_s)
        self.planted: list[Planted] = []

    def all(self) -> None:
        """Plant every family in an order of chance, then what must not be swept by what comes after it."""
        families: list[Callable[[], None]] = [
            *(partial(self.stepwise, family) for family in FAMILIES), self.parents, self.stage_in,
            self.timeout, self.killed, self.no_allocation, self.site_down, self.swept,
        ]  # fmt: skip
        self._random.shuffle(families)
        for family in families:
            family()
        self.dead_launcher()

    def by_clocks(self) -> None:
        """Plant what is told by the server's clock: who was heard of just now, and who long ago."""
        for family in ("finished", "runs", "waits for room"):
            self.stepwise(family)
        self.site_down()
        self.dead_launcher()

    def _ago(self, minutes: int) -> datetime:
        """So long ago by the server's clock."""
        return datetime.now(UTC).replace(tzinfo=None) + self._off - timedelta(minutes=minutes)

    def _site(self, *, has_nodes: bool = True) -> SiteAgent:
        self._sites += 1
        return SiteAgent(self._system, self._seed * 1_000 + self._sites, has_nodes=has_nodes)

    def _say(self, jobs: list[int], family: str, code: str, *words: str, never: tuple[str, ...] = ()) -> None:
        self.planted += [Planted(job, family, Due(code, words, never)) for job in jobs]

    def _running(self, agent: SiteAgent) -> list[int]:
        jobs = agent.add_jobs(self._each)
        agent.move(jobs, "PREPROCESSED")
        agent.run(jobs)
        return jobs

    def stepwise(self, family: str) -> None:
        agent = self._site()
        jobs = agent.add_jobs(self._each)
        told = FAMILIES[family]
        for nth, (state, *details) in enumerate(told["steps"]):
            if state != "RUN" or nth == 0:
                agent.move(jobs, "PREPROCESSED" if state == "RUN" else state, 0.0, **dict(*details))
            if state == "RUN":
                agent.run(jobs)
        self._say(jobs, family, told["code"], *told.get("words", ()), never=tuple(told.get("never", ())))

    def parents(self) -> None:
        """A parent failed, was deleted, was reset, or runs; and what waits for a job that cannot start."""
        agent = self._site()
        failed, reset, deleted, runs = (self._running(agent) for _ in range(4))
        waiting = {
            name: agent.add_jobs(self._each, parents=parents)
            for name, parents in (
                ("failed", [failed[0], runs[0]]), ("reset", [reset[0]]), ("deleted", [deleted[0]]),
                ("runs", [runs[0]]),
            )
        }  # fmt: skip
        below = agent.add_jobs(self._each, parents=waiting["failed"][:1])
        released = agent.add_jobs(self._each, parents=runs[1:2])
        for jobs in (failed, reset):
            agent.move(jobs, "RUN_ERROR", returncode=3, error="boom")
            agent.move(jobs, "FAILED")
        agent.move(reset, "RESTART_READY")
        agent.move([*deleted, runs[1]], "RUN_DONE")
        agent.move(runs[1:2], "POSTPROCESSED")
        agent.delete(deleted)
        self._say(waiting["failed"], "parent failed", "never_starts", f"balsam/{failed[0]} has failed")
        self._say(waiting["deleted"], "parent deleted", "never_starts", f"balsam/{deleted[0]} was deleted")
        self._say(waiting["reset"], "parent reset", "waiting_parents", "RESTART_READY")
        self._say(waiting["runs"], "parent runs", "waiting_parents", f"balsam/{runs[0]} (RUNNING)")
        self._say(below, "parent cannot start", "never_starts", "cannot start either")
        self._say(released, "parent finished", "staging")
        self._say(failed, "the parent itself", "program_failed")

    def stage_in(self) -> None:
        """The transfer of a file to them failed, or goes on."""
        agent = self._site()
        for state in ("error", "active"):
            jobs = agent.add_jobs(self._each, stage_in=True)
            agent.transfer(jobs, state, error="no such file on the dtn")
            if state == "error":
                self._say(jobs, "stage-in failed", "staging_failed", "in.dat", "no such file on the dtn")
            else:
                self._say(jobs, "stage-in goes on", "staging", "in.dat", never=("failed",))

    def timeout(self) -> None:
        """The time of their allocation was over."""
        agent = self._site()
        jobs = self._running(agent)
        agent.move(jobs, "RUN_TIMEOUT")
        agent.move(jobs, "RESTART_READY")
        agent.finish(ran=timedelta(minutes=60))
        self._say(jobs, "timeout", "timed_out")
        agent = self._site()
        jobs = self._running(agent)
        agent.move(jobs, "RUN_TIMEOUT")
        raised = "An exception occured in <bound method Sim.handle_timeout>"
        agent.move(jobs, "FAILED", 0.0, message=raised, exception="no more")
        agent.finish(ran=timedelta(minutes=60))
        self._say(jobs, "timeout, given up", "timed_out", "no more")

    def killed(self) -> None:
        """Somebody deleted their allocation; it is over, or about to be."""
        for is_over in (True, False):
            agent = self._site()
            jobs = self._running(agent)
            self._system.call(
                "PUT", f"/batch-jobs/{agent.batch_job['id']}", json={"state": "pending_deletion"}
            )
            agent.move(jobs, "RUN_TIMEOUT")
            agent.move(jobs, "RESTART_READY")
            if is_over:
                agent.finish(ran=timedelta(minutes=20))
            self._say(jobs, f"deleted allocation, {is_over=}", "allocation_killed")

    def no_allocation(self) -> None:
        """Nothing will run them: no allocation, one for other tags, one that could not be submitted."""
        for family in ("none", "other tags", "submit_failed", "queued"):
            agent = self._site(has_nodes=False)
            jobs = agent.add_jobs(self._each)
            agent.move(jobs, "PREPROCESSED")
            if family == "other tags":
                agent.allocate(4, tags={"experiment": "of others"})
            elif family == "submit_failed":
                agent.allocate(4, state="submit_failed", info={"error": "qsub: no budget for project p"})
            elif family == "queued":
                agent.allocate(4, state="queued")
            words = {"other tags": ("tags",), "submit_failed": ("no budget",)}.get(family, ())
            code = "waiting_allocation" if family == "queued" else "no_allocation"
            self._say(jobs, f"allocation: {family}", code, *words)

    def site_down(self) -> None:
        """The agent of their site is gone."""
        agent = self._site(has_nodes=False)
        jobs = agent.add_jobs(self._each)
        past = self._ago(self._random.randint(10, 500))
        self._system.sql(f"UPDATE sites SET last_refresh = '{past}' WHERE id = {agent.site['id']}")
        self._say(jobs, "site down", "site_agent_down")

    def swept(self) -> None:
        """Their launcher ended without a word, and the server noticed."""
        agent = self._site()
        jobs = self._running(agent)
        self._system.call("DELETE", f"/sessions/{agent.session['id']}")
        agent.finish(ran=timedelta(minutes=20))
        self._say(jobs, "launcher swept", "allocation_killed", "Session expired")

    def dead_launcher(self) -> None:
        """Their launcher died, and the server has not noticed yet."""
        agent = self._site()
        jobs = self._running(agent)
        waiting = agent.add_jobs(self._each)
        agent.move(waiting, "PREPROCESSED")
        past = self._ago(self._random.randint(6, 50))
        self._system.sql(f"UPDATE sessions SET heartbeat = '{past}' WHERE id = {agent.session['id']}")
        self._say([*jobs, *waiting], "launcher died", "launcher_stale")
