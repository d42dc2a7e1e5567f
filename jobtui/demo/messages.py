"""What browsers, the supervisor and agents say to each other."""

from collections.abc import Mapping

import msgspec


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request to the supervisor.

    `jid`, `run_dir` and what names a simulation are None or empty for requests about none. `serial` is the
    run that the browser means (0: any), `force` asks for a run even when the result is there. `password_ok`
    is what an sbatch login brings (None: no login).
    """

    api: str
    uid: str
    plan: str = "basic"
    jid: str | None = None
    app: str = ""
    simulation: str = ""
    model: str = ""
    name: str | None = None
    run_dir: str | None = None
    is_parallel: bool = False
    mode: str = ""
    method: str | None = None
    serial: int = 0
    force: bool = False
    password_ok: bool | None = None

    def __str__(self) -> str:
        return f"ServerReq({self.api}, {self.jid})"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a browser gets back. `live` says whether to ask again, `ok` whether the request was served."""

    state: str | None = None
    serial: int = 0
    next_s: float = 1.0
    frames: int = 0
    login_needed: bool = False
    ok: bool = True

    @property
    def live(self) -> bool:
        """Whether the browser should ask again."""
        return self.state in {"pending", "running"}


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """An op as it goes to an agent."""

    op_id: str | None
    name: str
    request: Request | None = None
    job_cmd: str | None = None
    run_dir: str | None = None
    serial: int = 0
    cancel_jid: str | None = None
    cancel_op: str | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message of an agent. `reply` is set on those that answer an op."""

    agent_id: str
    name: str
    op_id: str | None = None
    reply: Mapping[str, object] | None = None
    jid: str | None = None
    serial: int = 0
    state: str | None = None
    start: int | None = None
    error: str | None = None
    parallel: Mapping[str, object] | None = None
    stderr: str | None = None

    @property
    def is_error(self) -> bool:
        """Whether it is logged as an error."""
        return self.name == "error" or (self.reply is not None and self.reply.get("state") == "error")

    def __str__(self) -> str:
        fields = {
            "agentId": self.agent_id,
            "computeJid": self.jid,
            "computeJobSerial": self.serial or None,
            "computeJobStart": self.start,
            "error": self.error,
            "opId": self.op_id,
            "opName": self.name,
            "parallelStatus": self.parallel,
            "reply": self.reply,
            "state": self.state,
            "stderr": self.stderr,
        }
        text = str({key: value for key, value in fields.items() if value is not None})
        return text.replace("\\n", "\n")
