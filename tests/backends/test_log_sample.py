"""The end of a log as raw lines, for judging it."""

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.backends.base import SourceDenied, SourceMissing
from jobtui.backends.log_sample import newest_time, tail_lines
from jobtui.model.clock import to_rfc3339, to_seconds
from tests.conftest import NOW

CAPTURES = Path(__file__).parent.parent / "fixtures" / "sirepo"


def test_the_last_whole_lines_are_given(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\ntwo\nthree\nfour")
    assert [*tail_lines(path)] == [b"one", b"two", b"three", b"four"]
    assert [*tail_lines(path, 12)] == [b"three", b"four"]
    assert [*tail_lines(path, 2)] == []


def test_a_packed_log_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n"))
    assert [*tail_lines(path)] == [b"one", b"two"]


def test_a_line_without_end_is_given_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"x" * (3 << 20) + b"\nend\n")
    lines = [*tail_lines(path)]
    assert lines[-1] == b"end"
    assert sum(map(len, lines)) == (3 << 20) + 3
    assert max(map(len, lines)) < 3 << 20


def test_a_log_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing):
        [*tail_lines(tmp_path / "gone.log")]
    with pytest.raises((SourceDenied, SourceMissing)):
        newest_time(tmp_path / "gone.log", "auto")


@given(data=st.binary(max_size=300), size=st.integers(1, 400))
def test_lines_are_those_of_the_file(
    data: bytes, size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.log"
    path.write_bytes(b"-" + data)  # nothing that looks packed
    lines = [*tail_lines(path, size)]
    whole = (b"-" + data).split(b"\n")
    given_lines = whole[:-1] if whole[-1] == b"" else whole
    assert lines == given_lines[len(given_lines) - len(lines) :]


def test_the_newest_time_of_a_log_is_found(tmp_path: Path) -> None:
    path = tmp_path / "supervisor.log"
    path.write_bytes((CAPTURES / "local" / "supervisor.log").read_bytes())
    os.utime(path, (to_seconds(NOW), to_seconds(NOW)))
    newest = newest_time(path, "supervisor")
    assert newest is not None
    assert to_rfc3339(newest) == "2026-11-20T20:36:01Z"
    empty = tmp_path / "empty.log"
    empty.touch()
    assert newest_time(empty, "auto") is None
