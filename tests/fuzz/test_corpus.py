"""All that ever made a reader fail is read; and what is looked for is found."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.fuzz import __main__ as fuzzing
from tests.fuzz.growth import grows_badly
from tests.fuzz.inputs import inputs, seeds_of
from tests.fuzz.targets import TARGETS, Target

KEPT = sorted(path for path in fuzzing.CORPUS.glob("*/*") if path.is_file())


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_was_found_once_is_read(path: Path) -> None:
    fuzzing.read(TARGETS[path.parent.name], path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_every_reader_takes_what_it_is_tried_with(name: str) -> None:
    target = TARGETS[name]
    assert all(map(seeds_of, [(pattern,) for pattern in target.seeds])), "a pattern fits no file"

    @settings(max_examples=5, deadline=None, database=None)
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


def test_what_a_reader_says_of_bad_input_is_no_failure() -> None:
    def refuses(data: bytes) -> None:
        raise ValueError(data)

    fuzzing.read(Target(refuses, raises=(ValueError,)), b"x")
    with pytest.raises(ValueError, match="x"):
        fuzzing.read(Target(refuses), b"x")
    assert random.choice(KEPT).parent.name in TARGETS
