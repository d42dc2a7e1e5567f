"""Any scrap names its job, in every command that takes an ID, and on a screen."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from jobtui.cli import parse
from jobtui.commands.context import make_context
from jobtui.commands.reader import Reader, configured
from jobtui.config import load
from jobtui.screens.choices import Jump, look_up
from jobtui.session import Session
from jobtui.session.evidence import Gatherer
from tests.commands.running import AT, CAPTURES, Ran, Runner, jobtui, sources_of
from tests.commands.sites import Flags, flags
from tests.condor import CONDOR
from tests.rows import table
from tests.tracing import EXPECTED, capture_file

__all__ = ["flags"]

COMMANDS = (
    ("show",), ("timeline",), ("explain",), ("compare",), ("wait",), ("logs",), ("report", "--markdown"),
    ("bundle", "--output", "bundle.jobtui"), ("script",), ("trace",), ("find",), (),
)  # fmt: skip
"""Those that take an ID; the last is `jobtui SCRAP`."""

SCRAPS = table("scraps")
ONE = [
    (site, scrap.replace("{condor}", str(CONDOR)), job_id)
    for site, jobs in SCRAPS["one"].items()
    for job_id, scraps in jobs.items()
    for scrap in scraps
]
"""A site, a scrap, and the one job that is meant."""
SEVERAL = [(site, scrap, *told) for scrap, (site, *told) in SCRAPS["several"].items()]
LOST, RESTARTED = "VUlhaMOD-rkZ6gZzZ-activityAnimation", "VUlhaMOD-fuSjgiZf-activityAnimation"


@pytest.fixture
def sources(flags: Flags, plain_environment: Path) -> Flags:
    """All of a site, with spans and scripts, which are of other systems."""
    more = [f"--trace-file={capture_file('job-fail', 'otlp.pb')}", f"--archive={plain_environment}"]
    return lambda site: [*flags(site), *more]


def on_screen(sources: Sequence[str], scrap: str) -> Jump:
    """Where `:` and a paste lead on a dashboard that has read this capture."""

    async def jump() -> Jump:
        invocation = parse(["jobs", "--at", AT, *sources])
        context = make_context(invocation, load(invocation.settings, {}), lambda *opened: None)
        async with Session((), context.clock) as session:
            reader = Reader(context, session, configured(context))
            await reader.read_jobs()
            await reader.read_logs(None)
            await reader.read_traces()
            return await look_up(scrap, session.store, session.logs().names(), Gatherer.of(session))

    return asyncio.run(jump())


def ran(run: Runner, command: tuple[str, ...], capture: str, scrap: str, *more: str) -> Ran:
    return run(*command, *more, "--at", AT, *sources_of(capture), "--", scrap)


LACKS = ("no good run of", "no script of", "number in a scheduler is", "no script was found", "no trace was")
"""What may be said of a job that is found: that no run is like it, that it has no script, or no trace."""


@pytest.mark.parametrize(("nth", "told"), enumerate(ONE))
def test_every_command_takes_the_one_job_that_is_meant(
    nth: int,
    told: tuple[str, str, str],
    run: Runner,
    sources: Flags,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each scrap on a screen and by every third command: all of them look it up in the same way."""
    capture, scrap, job_id = told
    monkeypatch.chdir(tmp_path)
    flags = sources(capture)
    if "/tracing/" not in scrap:
        jump = on_screen(flags, scrap)
        assert jump.is_clear, jump
        goal = jump.goals[0]
        assert goal.job == job_id or goal.trace is not None or f"{job_id}_" in (goal.filter or "")
    for command in COMMANDS[nth % 3 :: 3]:
        found = run(*command, "--at", AT, *flags, "--", scrap)
        why = (command, found)
        said = found.out + found.err
        assert found.code in (0, 1, 3) or any(words in found.err for words in LACKS), why
        is_quiet = command[:1] in (("bundle",), ("compare",), ("logs",), ("script",), ("trace",))
        assert job_id in said or is_quiet or EXPECTED["job-fail"]["traceID"] in found.out, why
        is_said = f"taken as job {job_id}" in found.err or f"its job is {job_id}" in found.err
        shows_trace = found.out.startswith(EXPECTED["job-fail"]["traceID"])  # `jobtui TRACE` does
        names_job = command[:1] not in (("find",), ("script",), ("trace",)) and not shows_trace
        if names_job and job_id in said:
            assert is_said is (job_id not in scrap and "user/" not in scrap), why


@pytest.mark.parametrize(("capture", "scrap", "kind", "count", "job_id"), SEVERAL)
def test_a_word_for_several_jobs_is_answered_for_each_of_them(
    capture: str, scrap: str, kind: str, count: int, job_id: str, run: Runner, sources: Flags
) -> None:
    flags = sources(capture)
    (goal, *_), is_clear, _ = on_screen(flags, scrap)
    assert is_clear
    assert goal.filter is not None
    assert goal.filter.startswith("user:") if kind == "a user" else goal.filter.count(",") == count - 1
    for command in COMMANDS:
        found = run(*command, "--at", AT, *flags, "--", scrap)
        if command in (("logs",), ("find",), ()):
            assert found.code == 0
            assert found.out.count("\n") > 1
        else:
            assert (found.code, found.out) == (4, ""), (command, found)
            assert f"is {kind} with {count} jobs" in found.err
            end = f"{' '.join(command[:1])} {job_id}"
            offered = [line for line in found.err.split("\n") if line.endswith(end)]
            assert count > 9 or (offered and all(": jobtui --" in line for line in offered)), offered


def test_the_log_of_a_unit_is_given_whole_and_by_time(run: Runner) -> None:
    whole = ran(run, ("logs",), "sbatch", "supervisor", "--json").json["lines"]
    text = (CAPTURES / "sbatch" / "supervisor.log").read_text()
    assert len(whole) == min(1000, text.count("\n"))
    assert all(line["ids"]["job"] is None and line["source"].endswith("supervisor.log") for line in whole)
    last = ran(run, ("logs",), "sbatch", "supervisor", "--json", "-n", "3").json["lines"]
    assert last == whole[-3:]
    since, until = "2026-11-20T20:48:00Z", "2026-11-20T20:48:10Z"
    within = ran(run, ("logs",), "sbatch", "supervisor", "--json", "--since", since, "--until", until)
    times = {line["at"] for line in within.json["lines"] if line["at"]}
    assert times
    assert all(since <= at[:19] + "Z" <= until for at in times)


def test_the_last_steps_and_runs_and_the_first_lines_are_given(run: Runner) -> None:
    whole, last = (
        ran(run, ("timeline",), "docker", RESTARTED, "--csv", *most).out.splitlines()
        for most in ((), ("-n", "5"))
    )
    assert len(last) == 6
    assert {*last} < {*whole}
    assert len(ran(run, ("show",), "docker", RESTARTED, "--json", "-n", "0").json["runs"]) == 0
    for command in ("explain", "compare"):
        all_of_it, part = (ran(run, (command,), "docker", RESTARTED, *most) for most in ((), ("-n", "2")))
        assert part.out.splitlines() == all_of_it.out.splitlines()[:2]


@pytest.mark.parametrize(("lines", "code"), [(b"fuSjgiZf\n\nrkZ6gZzZ\n", 0), (b" fuSjgiZf, rkZ6gZzZ", 4)])
def test_several_ids_at_once_are_looked_up_one_by_one(lines: bytes, code: int) -> None:
    found = jobtui("find", "-", "--json", *sources_of("docker"), stdin=lines)
    assert (found.code, {one["id"] for one in found.json["candidates"][:2]}) == (code, {RESTARTED, LOST})
