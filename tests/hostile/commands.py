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
    for number in range(1, len(TEXTS) + 1):
        yield [trace_of(number)]
    for text in (TEXTS[name] for name in FILTERED):
        yield ["--", text]


def of_scripts(site: HostileSite) -> Iterator[Words]:
    """Each script, beside the next one; what they contain; and each text in place of each word."""
    archive = f"--archive={site.archive}"
    for number, text in enumerate(TEXTS.values(), start=1):
        yield [archive, str(number)]
        yield [archive, str(number), f"--diff={number % len(TEXTS) + 1}"]
        yield [archive, "--", text]
    for text in (TEXTS[name] for name in FILTERED):
        yield [archive, f"--grep={re.escape(text)[:500]}", f"--user={text}"]
        yield [archive, "1", f"--diff={text}"]
        yield [f"--archive={site.archive}/none/{text[:50]}".replace("\0", ""), "1"]


def of_bundles(site: HostileSite) -> Iterator[Words]:
    """A job in which everything is hostile, a place that cannot be written, and each text as a job."""
    yield [site.jobs["everything"], f"--output={site.bundle}"]
    yield [site.jobs["csi"], f"--output={site.root}"]
    for text in (TEXTS[name] for name in ("markup", "csi", "surrogates", "secret")):
        yield ["--", text]


def of_recordings(site: HostileSite) -> Iterator[Words]:
    """A moment of everything, and each text as a time, a size and a place below a file."""
    yield [str(site.recording), "--for=0.2s"]
    for text in TEXTS.values():
        yield [str(site.recording), f"--for={text or 'x'}"]
        yield [str(site.recording), "--for=1s", f"--limit={text}"]
        yield ["--for=0.1s", "--", f"{site.supervisor_log}/{text}".replace("\0", "")]


def of_replays(site: HostileSite) -> Iterator[Words]:
    """What was kept of the site, looked at by other commands; files that are no recording; texts as files."""
    made = str(site.made_bundle())
    job = site.jobs["everything"]
    for words in (
        [],
        ["jobs"],
        ["show", job],
        ["timeline", job],
        ["explain", job],
        ["logs", job],
        ["doctor"],
    ):
        yield [made, *words]
    for text in TEXTS.values():
        yield [made, "show", "--", text]
        yield ["--", text]
    yield [str(site.supervisor_log)]
    yield [made, "wait", job]


def of_files(site: HostileSite) -> Iterator[Words]:
    """A configuration as it would be written, and texts as the place, below what is no directory."""
    yield []
    for text in TEXTS.values():
        yield ["--yes", "--", f"{site.supervisor_log}/{text}".replace("\0", "")]


def of_servers(site: HostileSite) -> Iterator[Words]:
    """Only what cannot be served: each text as a place to listen, and commands that are no dashboard."""
    for text in TEXTS.values():
        yield [f"--listen={text or 'x'}:no"]
        yield ["jobs", text]


CASES: Mapping[str, Callable[[HostileSite], Iterator[Words]]] = {
    "agents": of_nothing, "bundle": of_bundles, "completion": of_shells, "compare": of_pairs,
    "config": of_nothing, "demo": of_demo, "doctor": of_nothing, "explain": of_each_job, "find": of_texts,
    "incidents": of_nothing, "init": of_files, "jobs": of_texts, "login": of_shells, "logs": of_logs,
    "record": of_recordings, "replay": of_replays, "report": of_reports, "script": of_scripts,
    "serve": of_servers, "show": of_each_job, "status": of_nothing, "timeline": of_each_job,
    "trace": of_traces, "wait": of_waits,
}  # fmt: skip
"""What stands behind each command."""
