"""The sbatch driver: an agent on a cluster, reached by logging in there, and runs that Slurm schedules."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from jobtui.demo.agents import Agent
from jobtui.demo.batch_files import BatchJob
from jobtui.demo.commands import Command
from jobtui.demo.drivers import Driver
from jobtui.demo.messages import Message, Order
from jobtui.demo.ops import Fault, LoginNeeded, Op
from jobtui.demo.programs import Ending, Plan, parallel_status
from jobtui.demo.slots import Slots
from jobtui.model.clock import SECOND, Nanos, to_seconds

if TYPE_CHECKING:
    from jobtui.demo.supervisor import Supervisor

WITH_RUN_DIR = frozenset({"analysis", "io", "run", "run_status"})
SUBMIT_S = (0.35, 0.55)
FIRST_STATUS_S = (0.5, 1.1)
POLL_S = 5.0
LOG_WAIT_S = 5
TAIL_LINES = 200


class SbatchDriver(Driver):
    """The one agent a user has on the cluster. It needs a login for each start."""

    name = "SbatchDriver"
    starting_secs = 15
    untimed = True
    stays = True

    def __init__(self, supervisor: Supervisor, op: Op) -> None:
        settings = supervisor.settings
        super().__init__(supervisor, op, Slots(supervisor.kernel, 2 + settings.slots_run_sbatch))
        self.op_slots["run"] = Slots(supervisor.kernel, settings.slots_run_sbatch)
        self._password_ok: bool | None = None
        self._root: str | None = None
        self._agent: ClusterAgent | None = None

    @property
    def login(self) -> str:
        """The user's name on the cluster."""
        return f"u{self.uid[:5].lower()}"

    def check(self, op: Op) -> None:
        """Take the login that comes with an op, and give the op its directory on the cluster.

        Without a login Sirepo asks for one; with a cancel it stumbles over what that op does not have.
        """
        if op.request.password_ok is not None and op.name == "sbatch_login":
            self._password_ok = op.request.password_ok
        if self._root is None:
            if self._password_ok is None and op.name == "cancel":
                raise Fault("'PKDict' object has no attribute 'computeModel'")
            if self._password_ok is None:
                raise LoginNeeded("no-creds", op.request)
            self._root = self.supervisor.settings.cluster_root.format(user=self.login)
        if op.name in WITH_RUN_DIR:
            op.run_dir = f"{self._root}/user/{self.uid}/{op.request.app}/{op.request.jid}"

    async def start_agent(self, op: Op) -> None:
        """Log in and start the agent there. Raises LoginNeeded."""
        world, root = self.supervisor.world, self._root or ""
        dev = world.settings.dev
        if dev:
            self.log("agent_log", root)
        self._ssh(f"Opening SSH connection to {world.settings.cluster_host}, port 22")
        self._ssh(f"[conn=0] Beginning auth for user {self.login}")
        await world.kernel.sleep(world.rng.uniform(0.01, 0.05))
        good, self._password_ok = self._password_ok, None
        if not good:
            denied = f"Permission denied for user {self.login} on host {world.settings.cluster_host}"
            self._ssh(f"[conn=0] Auth failed for user {self.login}")
            self.log("ssh_failed", denied, self.supervisor.stack(f"asyncssh.misc.PermissionDenied: {denied}"))
            self._root = None
            raise LoginNeeded("invalid-creds", op.request)
        self._ssh(f"[conn=0] Auth for user {self.login} succeeded")
        self._keep_log("remote-before-start")
        self._launch(root)
        await world.kernel.sleep(LOG_WAIT_S)
        self._keep_log("remote-after-start")

    def _launch(self, root: str) -> None:
        world = self.supervisor.world
        identity = self.identity(root, root)
        process = world.agent_process(identity.prefix, world.cluster_stream(self.login))
        self._agent = ClusterAgent(world, process, identity, self._on_exit)
        world.agents[self._agent] = None
        self._agent.start(never_connects=world.agent_is_mute(self.uid))

    def _ssh(self, text: str) -> None:
        self.log("ssh", text)

    def _keep_log(self, kind: str) -> None:
        """Copy the end of the agent's log; in development the copy is echoed into the supervisor's log."""
        world = self.supervisor.world
        moment = datetime.fromtimestamp(to_seconds(self.supervisor.process.clock), UTC)
        directory = f"{world.settings.root}/user/{self.uid}/agent-sbatch/{world.settings.cluster_host}"
        path = f"{directory}/{moment.strftime('%Y%m%d%H%M%S')}-{kind}.log"
        tail = world.cluster_log(self.login).splitlines(keepends=True)[-TAIL_LINES:]
        document = {"filename": path, "stderr": "", "stdout": "".join(tail)}
        text = json.dumps(document, indent=4, sort_keys=True)
        world.disk.write(path, text.encode())
        if world.settings.dev:
            self.log("echo", text.replace("\\n", "\n"))

    async def kill(self) -> None:
        """Ask the agent to end; whether it does is not waited for."""
        if self.socket:
            self.socket.order(Order(op_id=None, name="kill"))

    async def free(self, caller: str) -> None:
        """Forget the login, and let the agent go."""
        self._root = None
        await super().free(caller)

    def _on_exit(self, returncode: int) -> None:
        self._agent = None


class ClusterAgent(Agent):
    """An agent that hands its runs to Slurm and asks it about them."""

    command_kind = "_SbatchRunStatus"
    fastcgi_kind = "_SbatchCmd"
    slurm = True

    @cached_property
    def _batch(self) -> dict[str, BatchJob]:
        """The runs it has submitted, by job."""
        return {}

    def _run(self, order: Order) -> None:
        request = self._request(order)
        jid = request.jid or ""
        for command in [c for c in self.commands if c.jid == jid]:
            self.destroy(command)
        run_dir = order.run_dir or ""
        self.process.work(self.rng.uniform(*SUBMIT_S))
        self.world.run_dirs.prepare(run_dir, request, on_cluster=True)
        number = self.world.slurm.submit(jid, order.serial, self.process.clock, self.world.plan_of(jid))
        self._keep_batch_files(order, number)
        self._follow(order, run_dir)
        self.send(self.reply(order, state="ok"))

    def _keep_batch_files(self, order: Order, number: int) -> None:
        site, identity = os.path.dirname(self.world.settings.root), self.identity
        batch = BatchJob(self.world.run_dirs, site, number, order.run_dir or "", order.serial)
        batch.submitted(
            self._request(order),
            root=identity.root, token=identity.token, port=identity.port, at=self.process.clock,
        )  # fmt: skip
        batch.noted("pending", None)
        self._batch[self._request(order).jid or ""] = batch

    def update(
        self,
        command: Command,
        state: str,
        *,
        error: str | None = None,
        parallel: Mapping[str, object] | None = None,
    ) -> None:
        """Tell the supervisor about a run, and note the same in its directory."""
        super().update(command, state, error=error, parallel=parallel)
        if (batch := self._batch.get(command.jid)) is not None:
            percent = self.world.slurm.state(command.jid, self.world.kernel.now)[1]
            batch.noted(state, command.start)
            batch.printed(self.world.plan_of(command.jid).log, percent, error)

    def _follow(self, order: Order, run_dir: str) -> None:
        detached = Order(op_id=None, name="run_status", serial=order.serial)
        jid = self._request(order).jid or ""
        command = self.launch(detached, jid, "sbatch_parallel_status", run_dir, state="pending")
        self.process.tasks.spawn(lambda: self._watch(command, self._request(order).model))

    async def _watch(self, command: Command, model: str) -> None:
        slurm, kernel = self.world.slurm, self.world.kernel
        await kernel.sleep(self.rng.uniform(*FIRST_STATUS_S))
        known = str(command.state)
        if not command.ended:
            self.update(command, known)
        while not command.ended:
            await kernel.sleep(POLL_S)
            if command.ended:
                return
            state, percent, frames = slurm.state(command.jid, kernel.now)
            status = parallel_status(percent, frames, model, self.seconds)
            if state in {"running", "completed"} and command.start is None:
                command.start = self.seconds
            if state == "error":
                self.update(command, "error", error=slurm.error(command.jid))
                self.destroy(command)
                return
            if state != known and state == "running":
                self.update(command, "running")
            if state != known or (state == "running" and slurm.news(command.jid, frames)):
                self.update(command, state, parallel=status)
            known = state
            if state == "completed":
                await kernel.sleep(self.rng.uniform(0.004, 0.05))
                self.finished(command)
                return

    def unknown_run(self, order: Order) -> Message:
        """After a new login: what Slurm knows of a run, `unknown` while it still goes on."""
        request = self._request(order)
        state = self.world.slurm.known(request.jid or "", order.serial, self.world.kernel.now)
        if state in {"pending", "running"}:
            self._follow(order, order.run_dir or "")
            self.commands[-1].state = state
            return self.reply(order, state="unknown")
        return self.reply(order, state=state)

    def destroy(self, command: Command, *, terminating: bool = False) -> None:
        """Stop following a run, and unless the agent itself ends, cancel it."""
        live = self.world.slurm.state(command.jid, self.world.kernel.now)[0] in {"pending", "running"}
        if not command.ended and command.job_cmd != "fastcgi" and live and not terminating:
            self.log("scancel", self.world.slurm.cancel(command.jid))
            if (batch := self._batch.get(command.jid)) is not None:
                batch.noted("canceled", command.start)
        super().destroy(command, terminating=terminating)


class Slurm:
    """What a cluster does with the runs it is given."""

    def __init__(self) -> None:
        self._jobs: dict[str, _SlurmJob] = {}
        self._numbers = 4000

    def submit(self, jid: str, serial: int, at: Nanos, plan: Plan) -> int:
        """Queue a run; its number."""
        self._numbers += 1
        self._jobs[jid] = _SlurmJob(self._numbers, serial, at, plan)
        return self._numbers

    def state(self, jid: str, now: Nanos) -> tuple[str, float, int]:
        """State, percent done and frames of a run."""
        job = self._jobs.get(jid)
        if job is None:
            return "canceled", 0.0, 0
        return job.state(now)

    def known(self, jid: str, serial: int, now: Nanos) -> str:
        """The state of that very run; `canceled` when it is not the latest of its job."""
        job = self._jobs.get(jid)
        return "canceled" if job is None or job.serial != serial else job.state(now)[0]

    def news(self, jid: str, frames: int) -> bool:
        """Whether there are more frames than when this was last asked."""
        job = self._jobs[jid]
        more, job.seen = frames > job.seen, max(frames, job.seen)
        return more

    def error(self, jid: str) -> str | None:
        """Why it failed, as far as the agent can tell."""
        return self._jobs[jid].plan.error

    def cancel(self, jid: str) -> str:
        """Cancel a run; its number."""
        job = self._jobs[jid]
        job.canceled = True
        return str(job.number)


class _SlurmJob:
    def __init__(self, number: int, serial: int, at: Nanos, plan: Plan) -> None:
        self.number = number
        self.serial = serial
        self.plan = plan
        self.canceled = False
        self.seen = 0
        self._starts = at + round(plan.queued_s * SECOND)

    def state(self, now: Nanos) -> tuple[str, float, int]:
        if self.canceled:
            return "canceled", 0.0, 0
        if now < self._starts:
            return "pending", 0.0, 0
        seconds = (now - self._starts) / SECOND
        if seconds < self.plan.duration_s:
            progress = self.plan.after(seconds)
            return "running", progress.percent, progress.frames
        if self.plan.ending is Ending.COMPLETED:
            return "completed", 100.0, self.plan.frames
        return "error", 0.0, 0
