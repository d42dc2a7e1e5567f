"""Copies of the logs of clusters' agents, and the environments of archived jobs."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.formats import agent_copies
from jobtui.formats.sarchive import parse_environment, parse_script, torque_tasks, write_environment
from jobtui.model.scripts import Scheduler, Variable
from tests.builders import some
from tests.rows import ROWS


def named(text: str) -> agent_copies.CopyName:
    return some(agent_copies.read_name(text))


NAME = named("20261120204749-remote-after-start.log")


def test_names_are_in_the_order_of_time_and_of_what_happens_in_a_second() -> None:
    names = [
        "20261120204744-remote-before-start.log",
        "20261120204744-start.log",
        "20261120204744-remote-after-start.log",
        "20261120204749-remote-after-start.log",
        "20261120204852-remote-before-start.log",
    ]
    bases = [named(name).base for name in names]
    assert bases == sorted(set(bases))
    assert all(later - earlier >= 1 << agent_copies.POSITION_BITS for earlier, later in pairwise(bases))


@pytest.mark.parametrize(("stdout", "copied"), ROWS["environments in copies"])
def test_an_environment_is_masked_whatever_it_holds(stdout: str, copied: list[str]) -> None:
    lines = [line.text for line in agent_copies.read_copy(NAME, {"stdout": stdout, "stderr": ""}).lines]
    assert lines == copied == list(agent_copies.without_environment(lines))


@pytest.mark.parametrize(
    "document", [None, [], 3, {}, {"stdout": None}, {"stdout": 1}, {"stdout": "", "stderr": 2}]
)
def test_a_file_that_is_not_a_copy_is_reported(document: object) -> None:
    with pytest.raises(ValueError, match="no "):
        agent_copies.read_copy(NAME, document)


def test_a_very_long_copy_is_read_at_its_end() -> None:
    texts = [str(number) for number in range(agent_copies.LINES_READ + 5)]
    lines = agent_copies.read_copy(NAME, {"stdout": "\n".join(texts)}).lines
    assert [line.text for line in lines] == texts[5:]


def the_lines(texts: str) -> list[agent_copies.CopiedLine]:
    return [agent_copies.CopiedLine(at, at, text) for at, text in enumerate(texts)]


@pytest.mark.parametrize(("before", "after", "added", "is_gap"), ROWS["what a copy adds"])
def test_added_lines_compares_two_copies(before: str, after: str, added: str, is_gap: bool) -> None:
    found, gap = agent_copies.added_lines(list(before), the_lines(after))
    assert ("".join(line.text for line in found), gap) == (added, is_gap)


@given(
    st.lists(st.sampled_from("abc"), max_size=30), st.integers(0, 30), st.integers(1, 12), st.integers(0, 12)
)
@settings(max_examples=200, deadline=None)
def test_overlapping_ends_of_a_log_give_the_log(log: list[str], first: int, size: int, more: int) -> None:
    first = min(first, len(log))
    before, after = (
        log[max(0, first - size) : first],
        log[max(0, min(len(log), first + more) - size) : first + more],
    )
    added, _ = agent_copies.added_lines(before, the_lines("".join(after)))
    together = before + [line.text for line in added]
    assert together[-len(after) :] == after if after else together == before
    assert len(together) <= len(before) + len(after)


NAMES = st.text(st.characters(blacklist_characters="=\0", blacklist_categories=["Cs"]), min_size=1)
VALUES = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]))


@given(st.dictionaries(NAMES, VALUES))
def test_parse_environment_reads_the_file_of_slurm_exactly(variables: dict[str, str]) -> None:
    found = parse_environment(write_environment(variables))
    assert {v.name.decode(): (v.value or b"").decode() for v in found.variables} == variables
    assert found.is_whole


@pytest.mark.parametrize(
    ("data", "variables", "is_whole"),
    [
        (b"\1\0\0\0A=b=c\nd\0", [Variable(b"A", b"b=c\nd")], True),
        (b"\2\0\0\0ALONE\0B=\xff\0", [Variable(b"ALONE", None), Variable(b"B", b"\xff")], True),
        (b"\3\0\0\0A=1\0B=2", [Variable(b"A", b"1"), Variable(b"B", b"2")], False),
        (b"\0\0\0\0", [], True),
        (b"", [], True),
    ],
)
def test_entries_are_split_at_nul_and_equals(data: bytes, variables: list[Variable], is_whole: bool) -> None:
    found = parse_environment(data)
    assert list(found.variables) == variables
    assert found.is_whole is is_whole


def test_any_document_is_accepted_and_torque_files_have_no_variables() -> None:
    found: object
    for found in (None, [], "x", {}, {"id": 1}, {"id": True, "script": "x"}, {"id": "1", "script": None}):
        assert parse_script(found, "here") is None
    odd = some(parse_script({"id": 7, "script": "x\ufffd", "environment": [1], "timestamp": 5}, "here"))
    assert (odd.number, odd.is_lossy, odd.environment, odd.archived_at) == ("7", True, None, None)
    found = {
        "id": "9.master",
        "script": "x",
        "environment": {"9.master.JB": "<a b='c'/>", "9.master.TA": ""},
    }
    own = some(parse_script(found, "here"))
    files = some(own.environment)
    assert (own.scheduler, files.is_files, files.mended) == (Scheduler.TORQUE, True, ())
    assert len(list(torque_tasks("#PBS -t 1-999999999"))) == 256
