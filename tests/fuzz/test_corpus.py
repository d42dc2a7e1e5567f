"""All that ever made a reader fail is read; and what is looked for is found."""

import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from jobtui.model.health import FAULTS
from tests.fuzz import __main__ as fuzzing
from tests.fuzz import damage, whole
from tests.fuzz.damage import Edit, applied
from tests.fuzz.inputs import grows_badly, inputs, seeds_of
from tests.fuzz.targets import TARGETS, Target
from tests.fuzz.whole import WORLDS, Wrong, drawn_run, kept, take

KEPT = sorted(path for path in fuzzing.CORPUS.glob("*/*") if path.parent.name != "whole")
KEPT_RUNS = sorted(fuzzing.CORPUS.glob("whole/*"))
SEEDS = range(1)


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_inputs_that_once_failed_are_read(path: Path) -> None:
    fuzzing.read(TARGETS[path.parent.name], path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_every_reader_accepts_the_inputs_of_the_fuzzer(name: str) -> None:
    target = TARGETS[name]
    assert all(map(seeds_of, [(pattern,) for pattern in target.seeds])), "a pattern fits no file"

    @settings(max_examples=25, deadline=None, database=None)
    @given(inputs(target))
    def take(data: bytes) -> None:
        fuzzing.read(target, data)

    take()


def test_a_reader_that_fails_is_found_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(data: bytes) -> None:
        if b"\0" in data:
            raise KeyError("nul")

    monkeypatch.setattr(fuzzing, "CORPUS", tmp_path)
    count, found = fuzzing.attack(Target(fails, pieces=(b"before\0after",)), 30.0)
    assert found is not None
    assert isinstance(found.__cause__, KeyError)
    assert b"\0" in found.data
    assert fuzzing.keep("a", found.data).read_bytes() == found.data
    assert count > 0


def test_a_reader_whose_memory_grows_badly_is_found() -> None:
    def grows(data: bytes) -> None:
        bytes(data.count(b"~") * 2_000)

    assert [piece for piece, _ in grows_badly(Target(grows, pieces=(b"~", b"x")))] == [b"~"]


@pytest.mark.parametrize("path", KEPT_RUNS, ids=lambda path: path.stem)
def test_worlds_that_once_failed_are_right(path: Path) -> None:
    take(*kept(path))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", WORLDS)
def test_a_damaged_world_costs_only_what_is_damaged(kind: str, seed: int) -> None:
    edits, steps = drawn_run(kind, seed)
    for step in steps[::2]:  # scripts/fuzz takes them all, in world after world
        take(kind, edits, step)


def _noted(words: object) -> int:
    FAULTS.note(KeyError("planted"), "planting")
    return 0


def _waits(words: object) -> int:
    time.sleep(60)
    return 0


def _turns(words: object) -> int:
    while words:
        pass
    return 0


def _raised(words: object) -> int:
    raise KeyError("planted")


PLANTED: dict[str, tuple[Callable[[Any], int], str]] = {
    "an exception": (_raised, "raised KeyError"),
    "a fault that was contained": (_noted, "a fault of jobtui: KeyError"),
    "a traceback that is printed": (
        lambda words: print("Traceback (most recent call last):\n", file=sys.stderr) or 0,
        "Traceback",
    ),
    "a code that is not documented": (lambda words: 77, "exit code 77"),
    "a raw escape": (lambda words: print("\x1b[2J") or 0, "raw"),
    "no JSON": (lambda words: print("{") or 0, "prints no JSON"),
    "a wait that does not end": (_waits, "did not end"),
    "a loop that does not end": (_turns, "did not end"),
    "memory": (lambda words: len(bytearray(b"x") * 2 * whole.MOST_BYTES) and 0, "bytes of memory"),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_the_fuzzer_finds_a_command_that_does_wrong(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command, said = PLANTED[planted]
    monkeypatch.setattr(whole, "main", command)
    if "did not end" in said:
        monkeypatch.setattr(whole, "HANG_S", 0.3)
    monkeypatch.setattr(whole, "MOST_BYTES", whole.taken(whole.forget_peak()) + (50 << 20))
    with pytest.raises(Wrong, match=said):
        whole.said(["jobs", "--json"])
    monkeypatch.setattr(whole, "main", lambda words: print("{}") or 0)
    assert whole.said(["jobs", "--json"]).document == {}


Document = dict[str, Any]
SURELY: Document = {"verdict": "completed", "confidence": 0.9, "sentence": "It completed."}
RUN: Document = {"op": "a1b2", "name": "run", "created_at": None, "steps": [{"text": "sent", "source": "a"}]}
JUDGED: dict[str, tuple[str, Document, Document, bool]] = {
    "another verdict, sure": ("losses", SURELY, {**SURELY, "verdict": "running"}, True),
    "another verdict, not sure": ("losses", SURELY, {**SURELY, "verdict": "lost", "confidence": 0.4}, False),
    "a verdict on another job": ("losses", SURELY, {**SURELY, "job": {"id": "2"}}, True),
    "no verdict left": ("losses", SURELY, {"verdict": None}, False),
    "an op that is not there": ("garbage", {"ops": [RUN]}, {"ops": []}, True),
    "an op of too many steps": ("garbage", {"ops": [RUN]}, {"ops": [RUN, RUN]}, True),
    "the same ops": ("garbage", {"ops": [RUN]}, {"ops": [RUN]}, False),
}
"""A check, the answers of the undamaged and the damaged world, and whether that is wrong."""


@pytest.mark.parametrize("judged", JUDGED)
def test_the_fuzzer_finds_an_answer_made_wrong(judged: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check, before, after, is_wrong = JUDGED[judged]

    def told(words: list[str], run: object = None) -> whole.Said:
        log = next(word for word in words if word.endswith("supervisor.log")).partition("=")[2]
        return whole.Said(0, json.dumps(after if b"garbage" in Path(log).read_bytes() else before), "")

    whole.verdict_of.cache_clear()
    monkeypatch.setattr(whole, "said", told)
    try:
        take("world-sirepo-docker", [Edit("supervisor.log", 0, 0, b"garbage\n")], f"{check} 1")
    except Wrong:
        assert is_wrong
    else:
        assert not is_wrong
    finally:
        whole.verdict_of.cache_clear()


def test_the_fuzzer_finds_a_dashboard_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    from jobtui.app import JobtuiApp

    def pressed(*_: object) -> None:
        raise KeyError("planted")

    step = f"dashboard {whole.ids_of('world-sirepo-docker')[0]}"
    monkeypatch.setattr(JobtuiApp, "action_go", pressed)
    with pytest.raises(Wrong, match="KeyError"):
        take("world-sirepo-docker", [], step)
    FAULTS._known.clear()


@pytest.mark.parametrize("kind", WORLDS)
def test_every_kind_of_damage_befalls_a_world(kind: str) -> None:
    made, files = WORLDS[kind], WORLDS[kind].files()
    assert set(made.commands) & {f"dashboard ID{walk}" for walk in ("", " job", " traces")}
    for ways, ending in made.checks.values():
        drawn = [damage.drawn(random.Random(seed), files, ways, ending) for seed in range(20)]
        assert any(applied(files, edits) != files for edits in drawn), "a check without damage"
