"""Runs Sirepo's job supervisor and notes from inside what it does: the truth, not read from its logs.

    python witness.py NOTES COMMAND [ARGUMENT ...]

Runs inside an installed Sirepo. A JSON object a line: ops made, sent, answered, messages of runs, records.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

import sirepo.job_driver
import sirepo.job_supervisor
import sirepo.sirepo_console

Function = Callable[..., Any]


def watch(notes: TextIO) -> None:
    """Wrap the five places of the supervisor that make truth."""

    def note(what: str, **facts: object) -> None:
        known = {name: value for name, value in facts.items() if value is not None}
        notes.write(json.dumps({"at": time.time(), "what": what, **known}) + "\n")

    def made(original: Function) -> Function:
        def op_made(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            note("made", **identity(self.msg), jid=jid_of_op(self), api=self.msg.get("api"))

        return op_made

    def sent(original: Function) -> Function:
        def op_sent(self: Any, op: Any) -> Any:
            delivered = original(self, op)
            note("sent", **identity(op.msg), agent=self._agent_id, delivered=bool(delivered))
            return delivered

        return op_sent

    def received(original: Function) -> Function:
        def message_received(cls: Any, message: Any) -> Any:
            content = message.content
            reply = content.get("reply") or {}
            note(
                "received",
                **identity(content),
                agent=content.get("agentId"),
                jid=content.get("computeJid"),
                state=content.get("state") or reply.get("state"),
            )
            return original(cls, message)

        return message_received

    def written(original: Function) -> Function:
        def record_written(cls: Any, record: Any) -> Any:
            at, state = time.time(), record.status  # the record may be seen before this ends
            result = original(cls, record)
            note("written", jid=record.computeJid, at=at, state=state, message=record.jobStatusMessage)
            return result

        return record_written

    wrap(sirepo.job_supervisor._Op, "__init__", made)
    wrap(sirepo.job_driver.DriverBase, "send", sent)
    wrap(sirepo.job_driver.DriverBase, "receive", received)
    wrap(sirepo.job_supervisor._ComputeJob, "_db_write_file", written)


def wrap(owner: type, name: str, wrapper: Callable[[Function], Function]) -> None:
    found = owner.__dict__[name]
    is_of_class = isinstance(found, classmethod)
    wrapped = wrapper(found.__func__ if is_of_class else found)
    setattr(owner, name, classmethod(wrapped) if is_of_class else wrapped)


def identity(message: Mapping[str, Any]) -> dict[str, Any]:
    """What says which op a message is about."""
    return {"op_id": message.get("opId"), "name": message.get("opName"), "uid": message.get("uid")}


def jid_of_op(op: Any) -> str | None:
    """The job an op is made for: told by its message, else by who makes it."""
    told = op.msg.get("computeJid") or op.msg.get("jid")
    record = op._supervisor.get("db")
    return told or (record.computeJid if record else None)


if __name__ == "__main__":
    with open(sys.argv.pop(1), "a", buffering=1) as opened:
        watch(opened)
        sys.argv[0] = "sirepo"
        sys.exit(sirepo.sirepo_console.main())
