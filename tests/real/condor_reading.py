"""Prints what HTCondor's own library reads of event logs, an event a line. For a Python that has it."""

import json
import sys

import htcondor2

for path in sys.argv[1:]:
    for event in htcondor2.JobEventLog(path).events(stop_after=0):
        plain = {name: value for name, value in event.items() if isinstance(value, str | int | float)}
        print(json.dumps({"path": path, **plain}))  # noqa: T201
