"""The line of an output that says why a run failed, the signature of one cause, and who ended it."""

import re
import tomllib
from collections import Counter
from functools import cache
from math import comb
from random import Random
from textwrap import fill
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from jobtui.analysis import cause
from jobtui.analysis.cause import LONGEST, Output, certainty, find_cause, numbered
from jobtui.analysis.killer import JobEnd, find_killer
from jobtui.analysis.signature import LONGEST as LONGEST_SIGNATURE
from jobtui.analysis.signature import failure_text, signature
from jobtui.formats.causes import load_causes, load_kills
from jobtui.model.clock import SECOND, Nanos, time_of_parts
from jobtui.model.job_reader import FilePart
from jobtui.model.journal import Cursor, JournalEntry
from jobtui.model.verdicts import Cause, Code, Verdict
from release import cause_weights
from release.cause_weights import HELD_OUT, WEIGHTS, Sample, choices, fingerprint, samples
from tests.builders import a_job, job_id, some
from tests.offenders import check_all
from tests.rows import table

LEAST_RIGHT, MOST_WRONG, LEAST_SILENT = 0.9, 0.04, 0.9
SAMPLES = samples()


def check(found: dict[Sample, Cause | None]) -> None:
    told = {sample for sample in found if sample.right}
    right = {sample for sample, cause in found.items() if cause and cause.line in sample.right}
    wrong = {sample.name: cause for sample, cause in found.items() if cause and sample not in right}
    assert len(right) >= LEAST_RIGHT * len(told), [one.name for one in told - right]
    assert len(wrong) <= MOST_WRONG * len(found), wrong
    silent = found.keys() - told
    assert sum(found[one] is None for one in silent) >= LEAST_SILENT * len(silent)


def test_the_line_that_says_why_is_found_by_weights_learnt_from_outputs_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of each file. Both in one test, as it takes long to find what the lines of an output have."""
    last: list[Output] = []

    def judged(*given: Any, **more: Any) -> Output:
        last[:] = [output := Output(*given, **more)]
        features = cache(lambda at: [*Output.features(output, at)])
        output.features = features  # type: ignore[method-assign, assignment]
        return output

    monkeypatch.setattr(cause, "Output", judged)
    monkeypatch.setattr(cause_weights, "Output", lambda *given: last[0])
    chosen: list[cause_weights.Choice] = []

    def judge(file: str) -> None:
        found = {}
        for sample in SAMPLES[file]:
            found[sample] = find_cause(sample.text)
            chosen.extend(choices([sample]) if file != HELD_OUT else ())
        check(found)

    check_all(judge, SAMPLES)
    known = tomllib.loads(WEIGHTS.read_text())["learnt_from"]
    assert known == fingerprint(chosen), "run `python -m release.cause_weights`"


def test_every_family_that_is_named_is_the_one_of_the_failure() -> None:
    told = [sample for sample in SAMPLES["cases"] if sample.right]
    named = [one for one in told if (cause := find_cause(one.text)) and cause.family == one.family]
    assert len(named) >= LEAST_RIGHT * len(told)


def test_every_pattern_matches_its_sample_and_causes_are_looked_at() -> None:
    known = load_causes()
    shapes = [shape for role in known.by_role.values() for shape in role]
    assert len(shapes) > 100
    for shape in shapes:
        assert any(literal in shape.sample.lower() for literal in shape.literals), shape.sample
        assert shape.pattern.search(shape.sample), shape.sample
        assert shape.role not in ("cause", "symptom") or known.may_tell(shape.sample), shape.sample


ODD = (
    "", "\n" * 100_000, "x" * 1_000_000, "\x1b[" * 50_000, "\r" * 100_000, "error: " * 100_000,
    "Traceback (most recent call last):\n" * 20_000, '  File "a", line 1\n' * 20_000,
    "».»\ud800error: bad\udfff", "#000: a.c line 1 in f(): no\n" * 20_000,
    "\n".join(f"ERROR: cell {n} is bad" for n in range(30_000)), f"ok exit {'./-' * 180} 0\n" * 100,
)  # fmt: skip


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_any_output_is_judged_and_a_line_is_named_as_it_is(text: str) -> None:
    cause = find_cause(text)
    if cause is not None:
        assert len(cause.text) <= LONGEST + 1
        assert 0 < cause.confidence < 1
        assert 1 <= some(cause.line) <= text.count("\n") + 1


def test_a_cause_leaves_out_what_is_around_its_message() -> None:
    said = "sbatch: error: Batch job submission failed: Invalid partition name specified"
    head = "Nov 23 22:01:26 12203     0 /lib/sirepo/pkcli/job_agent.py:1040:start exit=1 stdout= stderr="
    for line in (head + said, f"│ {said} │", f'{{"at": "info", "m": "{said}"}}', f't=0 l=info m="{said}"'):
        assert some(find_cause(line)).text == said
    stamps = "2026-11-23 22:01:26,123 INFO ", "2026-11-23T22:01:26Z [INFO] sim.run: "
    for frame in ("> ", "    ", " 3: ", *stamps):
        assert some(find_cause(f"{frame}mesh read\n{frame}{said}")).text == said
    for around in ("```sh\n{}\n```", "**{}**", "`{}`", "> mesh &gt; 3\n> {}", "    mesh read\n    {}"):
        text = f"Hi all,\n\nI get a fatal error, my job failed:\n\n{around.format(said)}\nAny ideas?\n"
        assert some(find_cause(text)).text == said
        assert find_cause(text.replace(said, "mesh read")) is None


TALK = (
    "The simulation crashes after two hours and a colleague gets a segmentation fault",
    "# What happens\n- [x] I read all about errors\n\nThe same input cannot fail, as it worked last week with"
    " the\nolder library, which could not open the file either and then\ncrashed with a fatal error",
    "Question: how is an array continued\nif a task exits with an error? The man page says that it aborts",
    "Increasing the limit did not help, setting OMP_NUM_THREADS=1 makes the invalid pointer go away",
)  # fmt: skip


@pytest.mark.parametrize("talk", TALK, ids=range(len(TALK)))
def test_what_people_say_of_a_failure_is_no_cause(talk: str) -> None:
    said = "ERROR: cannot open restart.h5: No such file or directory"
    assert find_cause(f"{talk}\n") is None
    assert some(find_cause(f"{talk}:\n\nstep 1\n{said}\n\n{talk}\n")).text == said
    shaped = "It crashes with MPI_ERR_TRUNCATE: message truncated and a segmentation fault on our cluster"
    assert some(find_cause(f"{shaped}:\n\nstep 1\n{said}\n\n{talk}\n")).text == said


def test_a_line_that_a_terminal_broke_is_whole_and_one_that_is_said_again_counts_once() -> None:
    said = f"ERROR: cannot open {'/scratch/run' * 8}/restart.h5: No such file or directory"
    lines = [f"{name} is read from {f'/scratch/{name}' * 6}" for name in ("mesh", "beam", "grid")] + [said]
    broken = "\n".join(line[at : at + 80] for line in lines for at in range(0, len(line), 80))
    assert some(find_cause(f"{broken}\n")).text == said
    long = "ERROR: cannot open restart.h5: No such file or directory while the last step was written again"
    mail = (TALK[0], "", long, "", TALK[3], TALK[0])
    assert some(find_cause("\n".join(fill(line, 72, break_long_words=False) for line in mail))).text == long
    assert some(find_cause(f"{said}\nmodel stopped with {said}, giving up\n")).text == said
    assert some(find_cause(f"ERROR: LoadError: TaskFailedException:\nIOError: {long}\n")).line == 2


@pytest.mark.parametrize("cut", ["", "\0", "\0\nstep 2\n"], ids=["in a line", "by a hole", "before a hole"])
def test_a_cause_after_which_the_output_is_cut_may_have_been_handled(cut: str) -> None:
    said = "ERROR: cannot open restart.h5: No such file or directory"
    whole, part = (some(find_cause(f"step 1\n{said}{end}")) for end in ("\n", cut))
    ended = some(find_cause(f"step 1\n{said}\nAborted (core dumped)\nstep"))
    assert part.confidence <= 0.75 < min(whole.confidence, ended.confidence)


def test_an_error_in_a_loop_that_goes_on_is_handled_and_one_before_files_are_closed_is_not() -> None:
    loop = "".join(f"pump {n} gives {n + 30} l/s\n" for n in range(8))
    for said in ("ERROR: lamp 4 is dark", "cat: notes.txt: No such file or directory"):
        assert find_cause(f"valves open\n{said}\n{loop}") is None
        for text in (f"valves open\n{said}\n", f"valves open\n{loop}{said}\n"):
            assert some(find_cause(f"{text}valves shut\nlog is in pump.log\nelapsed 3 s\n")).text == said
    traced = 'Traceback (most recent call last):\n  File "a.py", line {}, in <module>\n    read()\n{}\n'
    tried = (traced + "record 3 skipped\n").format(4, "ValueError: could not convert string to float: '-'")
    assert some(find_cause(tried * 2 + traced.format(7, "KeyError: 'flow'"))).text == "KeyError: 'flow'"


def test_a_cause_is_as_sure_as_lines_of_its_chance_were_right_of_programs_left_out() -> None:
    for chance, right, told in tomllib.loads(WEIGHTS.read_text())["left_out"]:
        assert certainty(chance) == pytest.approx(right / told, abs=0.06), chance
    killed = some(find_cause("step 1\nstep 2\nSegmentation fault (core dumped)\n"))
    reason = some(find_cause("x\nValueError: no lattice\n"))
    assert killed.confidence > 0.8
    assert killed.rank < reason.rank


def test_lines_above_a_cause_are_as_seen_and_hold_no_secret() -> None:
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{'MIIEpAIBAAKCAQEA' * 4}\nk3x9Qw=="
    text = f"{key}\nstep 1\r\x1b[33mstep 2, of 9\x1b[0m\nFATAL: no space left on device\n"
    part = FilePart("run.log", text, 0, len(text), Nanos(0), lines_before=0)
    assert numbered(some(find_cause(text)), part, "run.log").above == ("***", "step 2, of 9")
    assert "hunter2" not in repr(find_cause("args:\n- --token\n- hunter2 Error: cannot open"))


CASES = table("kills")["case"]
END = some(time_of_parts(2026, 11, 20, 3, 12, 8))
_MESSAGE = re.compile(r"(?:([+-]\d+) )?([\w-]+)(?:\[(\d+)\])?: (.*)", re.DOTALL)


def entry_of(number: int, text: str, host: str) -> JournalEntry:
    found = _MESSAGE.fullmatch(text)
    assert found is not None, text
    at = Nanos(END + int(found[1] or -1) * SECOND)
    return JournalEntry(
        cursor=Cursor(str(number)), at=at, message=found[4], size=len(text), host=host, identifier=found[2],
        pid=int(found[3]) if found[3] else None,
    )  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_only_a_message_that_names_the_job_tells_who_ended_it(case: dict[str, Any]) -> None:
    host = case.get("host", "v4")
    entries = [entry_of(number, text, f"{host}.example.org") for number, text in enumerate(case["messages"])]
    pids, names = (frozenset(case.get(key, ())) for key in ("pids", "names"))
    killer = find_killer(entries, JobEnd(END, "v4", pids, names, case.get("ahead_s", (0.0, 0.0))))
    assert killer.words == case.get("says", "")
    assert killer.confidence == case.get("sure", 0.0)
    assert len(killer.near) == case.get("near", 0)
    assert bool(killer.words) == bool(killer.tied) == (not killer.doubt)


def test_every_message_has_the_shape_it_is_a_sample_of() -> None:
    kills = load_kills()
    assert len(kills.shapes) > 40
    for shape in kills.shapes:
        assert some(kills.first(shape.writers[0], shape.sample))[0] is shape, shape.sample
        assert bool(shape.says) == (shape.role in ("kill", "crash", "host", "boot"))
        assert shape.says or shape.role in ("part", "begin", "trouble")


SAYS_WHAT = re.compile(r"(?i)(exit(?:ed)?[ a-z]*|signal|errno|status|http[/\d. ]*|error)[\s:=]*$")


def varied(text: str, rng: Random) -> str:
    """The output of another run: other directories, addresses and numbers, but for exit codes and such."""

    def path(found: re.Match[str]) -> str:
        names = (rng.choices("abcdefxyz0123456789", k=rng.randint(3, 9)) for _ in range(rng.randint(1, 4)))
        return "".join(f"/{''.join(name)}" for name in names)

    def number(found: re.Match[str]) -> str:
        before = text_now[max(0, found.start() - 30) : found.start()]
        return found[0] if SAYS_WHAT.search(before) else str(rng.randint(1, 10 ** rng.randint(1, 6)))

    text = re.sub(r"/scratch/run|/home/\w+|/tmp/\w+", path, text)
    text_now = re.sub(r"0x[0-9a-f]+", lambda found: f"0x{rng.getrandbits(48):012x}", text)
    return re.sub(r"(?<!\w)\d+(?!\w)", number, text_now)


def adjusted_rand(one: list[str], other: list[str]) -> float:
    """How alike two groupings are: 1 when equal, 0 as by chance."""
    together = sum(comb(n, 2) for n in Counter(zip(one, other, strict=True)).values())
    first, second = (sum(comb(n, 2) for n in Counter(names).values()) for names in (one, other))
    by_chance = first * second / comb(len(one), 2)
    return (together - by_chance) / ((first + second) / 2 - by_chance)


@pytest.mark.parametrize("name", ["captured", "cases", "programs"])
def test_runs_of_one_cause_have_one_signature_and_others_have_others(name: str) -> None:
    rng, causes, signatures = Random(1), [], []
    for sample in filter(lambda sample: sample.right, SAMPLES[name]):
        for number in range(4):
            found = find_cause(varied(sample.text, rng) if number else sample.text)
            causes.append(sample.name)
            signatures.append(signature(found.text) if found is not None else f"none {sample.name} {number}")
    assert adjusted_rand(causes, signatures) >= 0.9


@given(st.text(max_size=400))
@example("HTTP/00")
def test_any_text_has_a_signature_that_is_its_own_signature(text: str) -> None:
    found = signature(text)
    assert len(found) <= LONGEST_SIGNATURE
    assert signature(found) == found or len(found) > LONGEST_SIGNATURE - 3


def test_a_line_that_ends_as_the_record_does_is_one_failure_with_runs_without_output() -> None:
    failed = Verdict(job_id=job_id(), code=Code.PROGRAM_FAILED, sentence="", confidence=0.9)
    for record, line, text in (
        ("a big ugly error", "AssertionError: a big ugly error", "a big ugly error"),
        ("non-zero exit code", "ValueError: no lattice", "ValueError: no lattice"),
        (None, "ValueError: no lattice", "ValueError: no lattice"),
        ("error exit(-9)", None, "error exit(-9)"),
    ):
        cause = None if line is None else Cause(line, 1, "python", 0.9, "")
        assert failure_text(a_job(error=record), replace(failed, cause=cause)) == text
