"""Every command with the words it takes, hostile ones among them.

To add a command: what may stand behind its name, one list of words for each call, in CASES.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from jobtui.grammar import REPORTS
from tests.hostile.site import HostileSite, trace_of
from tests.hostile.texts import TEXTS

Words = list[str]
FILTERED = ("markup", "csi", "nul", "cjk", "surrogates", "long", "empty", "secret", "everything")
"""Texts that lines are filtered by; the others would tell nothing more."""


def of_each_job(site: HostileSite) -> Iterator[Words]:
    """Each job, one more that has no record, and each text as an id."""
    for job in site.jobs.values():
        yield [job]
    for text in TEXTS.values():
        yield ["--", text]


def of_logs(site: HostileSite) -> Iterator[Words]:
    """The same, and with each filter."""
    yield from of_each_job(site)
    job = site.jobs["everything"]
    for text in (TEXTS[name] for name in FILTERED):
        yield [job, f"--agent={text}"]
        yield [job, f"--op={text}"]
        yield [job, f"--grep={re.escape(text)}"]
        yield [job, f"--grep={text[:500]}", "-n", "3"]


def of_texts(site: HostileSite) -> Iterator[Words]:
    """Each text, and nothing."""
    yield []
    for text in TEXTS.values():
        yield ["--", text]
        yield ["--", f"app:{text}", f'name:"{text}"']


def of_nothing(site: HostileSite) -> Iterator[Words]:
    """No words, and settings that make no sense."""
    yield []
    for text in TEXTS.values():
        yield [f"--since={text}"]
        yield [f"--profile={text}"]
        yield [text or "-"]


def of_demo(site: HostileSite) -> Iterator[Words]:
    """An incident nobody knows, and the list."""
    yield ["--incident", "list"]
    for text in TEXTS.values():
        yield [f"--incident={text or 'x'}"]


def of_shells(site: HostileSite) -> Iterator[Words]:
    """A shell nobody knows."""
    yield ["bash"]
    for text in TEXTS.values():
        yield ["--", text]


def of_reports(site: HostileSite) -> Iterator[Words]:
    """Each report, and each text as a flag of one."""
    for what in REPORTS:
        yield [what]
    for text in TEXTS.values():
        yield ["states", f"--job={text}"]
        yield ["throughput", f"--to-state={text}", f"--tag={text}"]
        yield ["--", text]


def of_pairs(site: HostileSite) -> Iterator[Words]:
    """Each job, and each beside the next one."""
    jobs = [*site.jobs.values()]
    for job, other in zip(jobs, jobs[1:] + jobs[:1], strict=True):
        yield [job]
        yield [job, other]
    for text in TEXTS.values():
        yield ["--", text, jobs[0]]


def of_waits(site: HostileSite) -> Iterator[Words]:
    """Each job, not for long; and each text as what is waited for."""
    for job in site.jobs.values():
        yield [job, "--timeout=0s"]
    for text in TEXTS.values():
        yield ["--timeout=0s", f"--until={text}", "x"]
        yield [f"--timeout={text}", "x"]


def of_traces(site: HostileSite) -> Iterator[Words]:
    """Each trace, and each text as what names one."""
    for number, text in enumerate(TEXTS.values(), start=1):
        yield [trace_of(number)]
        yield ["--", text]


CASES: Mapping[str, Callable[[HostileSite], Iterator[Words]]] = {
    "agents": of_nothing,
    "completion": of_shells,
    "compare": of_pairs,
    "config": of_nothing,
    "demo": of_demo,
    "doctor": of_nothing,
    "explain": of_each_job,
    "find": of_texts,
    "incidents": of_nothing,
    "jobs": of_texts,
    "login": of_shells,
    "logs": of_logs,
    "report": of_reports,
    "show": of_each_job,
    "status": of_nothing,
    "timeline": of_each_job,
    "trace": of_traces,
    "wait": of_waits,
}
"""What stands behind each command."""
