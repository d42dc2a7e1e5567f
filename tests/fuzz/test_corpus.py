"""All that ever made a reader fail is read; and what is looked for is found."""

import random
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from jobtui.model.health import FAULTS
from tests.fuzz import __main__ as fuzzing
from tests.fuzz import damage, whole
from tests.fuzz.damage import applied, grows_badly, inputs, seeds_of
from tests.fuzz.targets import TARGETS, Target
from tests.fuzz.whole import WORLDS, Wrong, drawn_run, kept, take

KEPT = sorted(path for path in fuzzing.CORPUS.glob("*/*") if path.parent.name != "whole")
KEPT_RUNS = sorted(fuzzing.CORPUS.glob("whole/*"))


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


@pytest.mark.parametrize("kind", WORLDS)
def test_a_damaged_world_costs_only_what_is_damaged(kind: str) -> None:
    edits, steps = drawn_run(kind, 0)
    for step in steps[::2]:  # scripts/fuzz takes them all, in world after world
        take(kind, edits, step)


PLANTED: dict[str, tuple[Callable[[Any], object], str]] = {
    "an exception": (lambda words: words["planted"], "raised TypeError"),
    "a contained fault": (lambda words: FAULTS.note(KeyError(), "x") and 0, "a fault of jobtui: KeyError"),
    "a traceback": (lambda words: sys.stderr.write("Traceback (most recent call last):\n") * 0, "Traceback"),
    "a code that is not documented": (lambda words: 77, "exit code 77"),
    "a raw escape": (lambda words: print("\x1b[2J") or 0, "raw"),
    "no JSON": (lambda words: print("{") or 0, "prints no JSON"),
    "a wait that does not end": (lambda words: threading.Event().wait(60) and 0, "did not end"),
    "a loop that does not end": (lambda words: next(one for one in iter(int, 1) if one), "did not end"),
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
