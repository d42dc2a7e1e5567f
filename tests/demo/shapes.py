"""Supervisor lines reduced to their shapes, so that captured and simulated sequences can be compared.

Written from the description of the format, apart from both `jobtui.formats` and `jobtui.demo`.
"""

import re
from collections.abc import Iterable

LINE = re.compile(
    r"^(?:(?P<mon>[A-Z][a-z]{2}) (?P<day>\d\d) (?P<hms>\d\d:\d\d:\d\d) (?P<pid> *\d+) (?P<thr> *\d+) )?"
    r"(?P<file>\S+?):(?P<line>\d+):(?P<func>[\w<>]+) (?P<msg>.*)$"
)
DRIVER = re.compile(r"(\w+Driver)\(a=\w{4} k=(sequential|parallel) u=\w{4} \[.*?\]\)(?=[ ]|$)")
JOB = re.compile(r"_ComputeJob\(\S+ u=\w+ (\w+) \[.*?\]\)(?=[ ]|$)")
OP = re.compile(r"_Op\((DESTROYED, )?(\w+), (\w{4})(?:, internal_error=[^)]*)?\)")
_REPLACED = (
    (re.compile(r"'?\w{8}-(?:\w{8}|_1_st\w+)-\w+'?"), "JID"),
    (re.compile(r"(runDir=)/\S+"), r"\1DIR"),
    (re.compile(r"(max_run_secs=)\S+"), r"\1N"),
    (re.compile(r"('opId': )'\w+'"), r"\1ID"),
    (re.compile(r"(method=)\w+"), r"\1M"),
    (re.compile(r"(error msg=\{).*"), r"\1"),
    (re.compile(r"(\bo=)\w{4}"), r"\1OP"),
    (re.compile(r"('computeModel': |'simulationId': )'\w+'"), r"\1X"),
)
AGENT_START = ("await=_do_agent_start", "await _do_agent_start", "await _websocket_ready", "websocket alive")
"""What a line about an op ends in when its agent is not there yet."""


def shape(message: str) -> str:
    message = JOB.sub(r"JOB(\1)", message)
    message = DRIVER.sub(r"\1(\2)", message)
    message = OP.sub(r"OP(\1\2)", message)
    for pattern, replacement in _REPLACED:
        message = pattern.sub(replacement, message)
    return message


def of_job(log: str, jid: str, ops: Iterable[str]) -> list[str]:
    """The shapes of the supervisor's lines about a job or one of its ops, repeats of progress once."""
    prefixes = "|".join(ops) or "----"
    about_op = re.compile(
        rf"(?:_Op\((?:DESTROYED, )?\w+, (?:{prefixes})\b|\bo=(?:{prefixes})$|'opId': '(?:{prefixes}))"
    )
    found: list[str] = []
    update = ""
    for match in filter(None, map(LINE.match, log.splitlines())):
        message = match["msg"]
        if not _from_supervisor(match["file"], match["func"], message):
            continue
        if message.endswith("opName=run_status_update o=None"):
            update = shape(message)
            continue
        if message.startswith(("new status=", "same status=")) and jid in message:
            found.append(update)
        bare = DRIVER.sub(r"\1(\2)", JOB.sub("", message))
        if (jid in message or about_op.search(bare)) and not message.endswith(AGENT_START):
            found.append(shape(message))
    return _once(found)


def _from_supervisor(file: str, function: str, message: str) -> bool:
    ours = file.endswith(("job_supervisor.py", "__init__.py"))
    return ours and not message.startswith("class=") and function not in {"_write", "_incoming"}


def _once(shapes: list[str]) -> list[str]:
    """Progress (an update and `same status=running`) that comes several times in a row, once."""
    kept: list[str] = []
    for index, text in enumerate(shapes):
        if text.startswith("same status=running") and kept[-3:-1] == [text, shapes[index - 1]]:
            kept.pop()
            continue
        kept.append(text)
    return kept
