import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.formats.sarchive import (
    parse_environment,
    parse_script,
    parse_wanted,
    torque_tasks,
    write_environment,
)
from jobtui.model.scripts import Scheduler, Variable

NAMES = st.text(st.characters(blacklist_characters="=\0", blacklist_categories=["Cs"]), min_size=1)
VALUES = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]))


@given(st.dictionaries(NAMES, VALUES))
def test_what_slurm_writes_is_read_exactly(variables: dict[str, str]) -> None:
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
def test_entries_are_split_at_nul_and_the_first_equals(
    data: bytes, variables: list[Variable], is_whole: bool
) -> None:
    found = parse_environment(data)
    assert list(found.variables) == variables
    assert found.is_whole is is_whole


def test_a_document_may_be_anything() -> None:
    document: object
    for document in (None, [], "x", {}, {"id": 1}, {"id": True, "script": "x"}, {"id": "1", "script": None}):
        assert parse_script(document, "here") is None
    odd = parse_script({"id": 7, "script": "x\ufffd", "environment": [1], "timestamp": 5}, "here")
    assert odd is not None
    assert (odd.number, odd.is_lossy, odd.environment, odd.archived_at) == ("7", True, None, None)


def test_files_of_torque_are_no_variables() -> None:
    document = {
        "id": "9.master",
        "script": "x",
        "environment": {"9.master.JB": "<a b='c'/>", "9.master.TA": ""},
    }
    found = parse_script(document, "here")
    assert found is not None
    assert found.environment is not None
    assert (found.scheduler, found.environment.is_files, found.environment.mended) == (
        Scheduler.TORQUE,
        True,
        (),
    )


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("22", "22"), ("#22", "22"), ("0022", "22"), ("22_1", "22 1"), ("22_[3-9%2]", "22"),
        ("22.batch", "22"), ("22_1.0", "22 1"), ("slurm/22_1", "22 1"), ("slurm@huppel/22", "22  huppel"),
        ("huppel/22", "22  huppel"), ("2720868.master.cluster.lab", "2720868   .master.cluster.lab"),
        ("2720870[2].master", "2720870 2  .master"), ("2720870-2", "2720870 2"),
        *((text, "") for text in ("", "abc", "balsam/7", "a/b/7", "7 8", "vn9m3eZW-IVh7w74d-a", "7_", "-1")),
    ],
)  # fmt: skip
def test_ids_of_schedulers(text: str, parts: str) -> None:
    """Number, task, cluster and server; nothing of what is none."""
    found = parse_wanted(text)
    told = "" if found is None else f"{found.number} {found.task} {found.cluster} {found.server}"
    assert told.rstrip() == parts


@pytest.mark.parametrize(
    ("script", "tasks"),
    [
        ("#PBS -t 1-3", [1, 2, 3]),
        ("#PBS -N x -t 1,4-5", [1, 4, 5]),
        ("#PBS -t 0-4%2", [0, 1, 2, 3, 4]),
        ("#PBS -N x", []),
        ("#PBS -t -,9", [9]),
    ],
)
def test_tasks_of_an_array_of_torque(script: str, tasks: list[int]) -> None:
    assert list(torque_tasks(script)) == tasks
    assert len(list(torque_tasks("#PBS -t 1-999999999"))) == 256
