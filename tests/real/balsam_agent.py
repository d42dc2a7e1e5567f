"""An agent of a Balsam site and its launcher, as far as the server sees them: they move jobs on."""

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.real.balsam_system import BalsamSystem

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
        """Let jobs be no more."""
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
        times = {
            "start_time": (end - ran).isoformat(),
            "end_time": end.isoformat(),
            "state": "finished",
        }
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
