"""What can be read out of the Python dict that a supervisor or agent logs as `msg={...}`.

Such a text may be cut anywhere (`<SNIP>`) and holds outside data, so it is searched, not evaluated. The
first occurrence of a key is the message's own: nested replies come after it in sorted order.
"""

import re
from typing import NamedTuple

from jobtui.model.ids import JobId, OpId, is_full_id, split_jid

_FIELD = re.compile(r"'(opId|opName|computeJid|state|error|jid)': (?:'([^']*)'|\"([^\"]*)\"|(\w+))")


class Message(NamedTuple):
    """The parts of a message that correlation uses. All absent ones are None."""

    op_id: OpId | None
    op_name: str | None
    jid: JobId | None
    state: str | None
    error: str | None


NOTHING = Message(None, None, None, None, None)
"""What an empty text says."""


def read_message(text: str) -> Message:
    """What a logged message says of itself. Never raises; agent ids in it are not looked at."""
    if not text:
        return NOTHING
    found: dict[str, str] = {}
    for key, single, double, bare in _FIELD.findall(text):
        found.setdefault(key, single or double or bare)
    op_id = found.get("opId", "")
    jid = found.get("computeJid") or found.get("jid") or ""
    return Message(
        op_id=OpId(op_id) if is_full_id(op_id) else None,
        op_name=found.get("opName"),
        jid=JobId(jid) if split_jid(jid) else None,
        state=found.get("state"),
        error=found.get("error"),
    )
