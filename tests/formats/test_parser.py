"""Blocks of bytes into records: what a line's head may be, where it stands, and what no bytes can do."""

import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.formats.damage import SHAPE as DAMAGED
from jobtui.formats.damage import STRIDE, damaged_places
from jobtui.formats.parser import REPEATS_KEPT, TEXT_LIMIT, LogParser, split_line
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.logs import LogRecord
from tests.formats.captures import CAPTURES, LOGS, NEWEST, name_of, records_of, records_of_blocks

HEAD = "Nov 20 20:34:30 30699     0 "
SUPERVISOR = "../../venv/lib/python3.11/site-packages/sirepo/job_supervisor.py:1276:__init__ "
AGENT = "/srv/sirepo/venv/lib/python3.11/site-packages/sirepo/pkcli/job_agent.py:487:_op "
RUN_DIR = "/srv/sirepo/db/user/VUlhaMOD/myapp/HrCJ26rQ/activityAnimation"
CREATED = f"_Op(run, 5N6c) runDir={RUN_DIR}"
AT = Nanos(1_795_206_870 * SECOND)
"""Nov 20 20:34:30 of 2026."""


def one(text: str) -> LogRecord:
    found = records_of(text.encode() + b"\n")
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    ("head", "at", "pid"),
    [
        (HEAD, AT, 30699),
        ("Nov 20 20:34:30     7 12345 ", AT, 7),
        ("Nov 20 20:34:30 123456789 140000000000000 ", AT, 123456789),
        ("Nov  2 20:34:30 30699     0 ", Nanos(AT - 18 * 86_400 * SECOND), 30699),
        ("", None, None),
    ],
)
@pytest.mark.parametrize(
    "site",
    [
        SUPERVISOR,
        "sirepo/job_supervisor.py:1:__init__ ",
        "/home/v/.pyenv/versions/3.7/lib/sirepo/job_supervisor.py:640:<lambda> ",
    ],
)
def test_a_line_has_its_head_or_none(head: str, site: str, at: Nanos | None, pid: int | None) -> None:
    record = one(f"{head}{site}{CREATED}")
    assert (record.at, record.pid, record.shape, record.text) == (at, pid, "op_created", CREATED)
    assert record.fields["run_dir"] == RUN_DIR
    assert record.container is None


def test_a_head_with_an_impossible_day_has_no_time() -> None:
    record = one(f"Nov 31 20:34:30 30699     0 {SUPERVISOR}{CREATED}")
    assert record.at is None
    assert record.pid == 30699


@pytest.mark.parametrize(
    "line",
    [
        CREATED,
        f"Nov 20 20:34 30699 0 {SUPERVISOR}{CREATED}",
        f" {HEAD}{SUPERVISOR}{CREATED}",
        f"job_supervisor.py:__init__ {CREATED}",
        f"{HEAD}{SUPERVISOR.strip()}{CREATED}",
        f"{HEAD}{SUPERVISOR}x{CREATED}",
        '  File "job_supervisor.py", line 1276, in __init__ _Op(run, 5N6c)',
    ],
)
def test_what_is_no_line_of_its_own_gives_nothing(line: str) -> None:
    assert records_of(line.encode() + b"\n") == []


@pytest.mark.parametrize("ending", ["\r", "\r\r"])
def test_a_line_may_end_as_on_other_systems(ending: str) -> None:
    record = one(f"{HEAD}{SUPERVISOR}{CREATED}{ending}")
    assert record.text == CREATED
    assert record.fields["run_dir"] == RUN_DIR


def test_bytes_that_are_no_text_become_visible_ones() -> None:
    failed = b"_ComputeJob(VUlhaMOD-HrCJ26rQ-x u=VUlhaMOD running []) exception="
    data = HEAD.encode() + SUPERVISOR.encode() + failed + b"\xff\x00\xe2\x82 end\n"
    record, damage = records_of(data)
    assert record.fields["error"] == "\ufffd\x00\ufffd end"
    assert (damage.shape, damage.offset) == (DAMAGED, data.index(b"\xff"))


@pytest.mark.parametrize(
    ("block", "places"),
    [
        (b"plain text\n", []),
        ("text of all languages: \u00e9\u4e2d\n".encode(), []),
        (b"one \0\0\0 two\n", [4]),
        (b"one \xff two \0\n", [4]),
        ("\u00e9 \0\n".encode(), [3]),
        (b"\0" + b"x" * STRIDE + b"\0", [0, STRIDE + 1]),
        (b"\0" * 3 * STRIDE, [0, STRIDE, 2 * STRIDE]),
    ],
)
def test_damaged_places_of_a_block(block: bytes, places: list[int]) -> None:
    assert list(damaged_places(block)) == places


def test_a_damaged_place_is_left_out_with_its_line() -> None:
    parsed = LogParser("a.log").parse(b"one\ntwo \0 two\nthree\n", 1_000, 7, Nanos(0))
    assert [(record.line, record.offset) for record in parsed.records] == [(8, 1_008)]
    assert [skip.where for skip in parsed.skips] == ["a.log:8"]
    assert parsed.skip_count == 1


def test_a_very_long_line_is_kept_in_part_and_costs_little() -> None:
    line = f"{HEAD}{SUPERVISOR}_ComputeJob(VUlhaMOD-HrCJ26rQ-x u=VUlhaMOD running []) exception=".encode()
    data = line + b"x" * 1_000_000 + b"\n" + f"{HEAD}{SUPERVISOR}{CREATED}\n".encode()
    before = time.process_time()
    long, after = records_of(data)
    assert time.process_time() - before < 1.0
    assert len(long.text) == TEXT_LIMIT
    assert (after.line, after.offset) == (2, data.index(b"\n") + 1)


@pytest.mark.parametrize("path", LOGS, ids=name_of)
def test_line_numbers_and_offsets_lead_back_to_the_line(path: Path) -> None:
    data = path.read_bytes()
    lines = data.split(b"\n")
    for record in records_of(data):
        at_offset = data[record.offset :].partition(b"\n")[0]
        assert at_offset == lines[record.line - 1]
        text = at_offset.decode("utf-8", "replace")
        assert record.text in text or (record.container is not None and record.container in text)


@pytest.mark.parametrize("path", LOGS, ids=name_of)
def test_where_reading_began_does_not_matter_to_numbers(path: Path) -> None:
    data = path.read_bytes()
    moved = LogParser("log").parse(data, 5_000, 301, NEWEST)
    assert [(r.line - 300, r.offset - 5_000) for r in moved.records] == [
        (r.line, r.offset) for r in records_of(data)
    ]
    assert moved.lines == data.count(b"\n")


@settings(max_examples=25)
@given(st.data())
def test_blocks_give_what_the_whole_gives(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(LOGS))
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(lines)), max_size=12)))
    blocks = [b"".join(lines[start:end]) for start, end in zip([0, *cuts], [*cuts, len(lines)], strict=True)]
    assert records_of_blocks(blocks, LogParser("log")) == records_of(whole)


@settings(max_examples=120)
@given(st.data())
def test_no_bytes_raise(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(LOGS))
    line = data.draw(st.sampled_from(path.read_bytes().splitlines(keepends=True)))
    at, till = sorted(data.draw(st.tuples(st.integers(0, len(line)), st.integers(0, len(line)))))
    torn = line[:at] + data.draw(st.binary(max_size=20)) + line[till:]
    noise = data.draw(st.binary(max_size=200))
    for record in records_of(torn + noise + line * 2):
        assert record.fields.keys() or record.shape == DAMAGED
        assert record.text
    for text in (torn, noise):
        split_line(text.decode("utf-8", "replace"))


def test_an_agents_line_that_comes_again_is_the_same() -> None:
    line = f"{HEAD}{AGENT}opName=run o=S89I runDir={RUN_DIR}\n".encode()
    other = line.replace(b"20:34:30", b"20:34:31")
    assert [r.line for r in records_of(line + other + line + other)] == [1, 2]


def test_what_names_no_op_is_known_by_the_line_before_it() -> None:
    def arrived(op: str) -> bytes:
        return f"{HEAD}{AGENT}opName=run o={op} runDir={RUN_DIR}\n".encode()

    started = f"{HEAD}{AGENT}cmd=('/bin/bash', '-l') stdin=b\"source $HOME/.bashrc\n".encode()
    both = arrived("S89I") + started + arrived("wxyz") + started
    assert [record.line for record in records_of(both)] == [1, 2, 3, 4]
    assert [record.line for record in records_of(both * 2)] == [1, 2, 3, 4]


def test_lines_are_remembered_without_their_text() -> None:
    parser = LogParser("log")
    lines = [f"{HEAD}{AGENT}opName=run o=S89I exception={i}{'x' * 100_000}\n".encode() for i in range(100)]
    tracemalloc.start()
    try:
        for line in lines:
            records_of(line, parser)
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000


def test_a_supervisors_line_may_come_again() -> None:
    line = f"{HEAD}{SUPERVISOR}_Op(run, 5N6c) await _reply_q.get()\n".encode()
    assert [r.line for r in records_of(line * 2)] == [1, 2]


def test_an_echo_of_a_cluster_log_adds_only_what_is_new() -> None:
    data = (CAPTURES / "sbatch" / "supervisor.log").read_bytes()
    records = [record for record in records_of(data) if record.shape == "op_arrived"]
    assert len({(record.at, record.pid, record.text) for record in records}) == len(records)
    assert data.count(b":_op opName=") > len(records) > 0


def test_repeats_are_remembered_within_bounds() -> None:
    lines = [
        f"Nov 20 20:{i // 60:02}:{i % 60:02} {i}     0 {AGENT}opName=run o=S89I runDir={RUN_DIR}\n".encode()
        for i in range(3_000)
    ]
    parser = LogParser("log")
    first = len(records_of_blocks([b"".join(lines)], parser))
    assert first == len(lines) < REPEATS_KEPT
    others = [line.replace(b"S89I", b"%04d" % i) for i, line in enumerate(lines * 2)]
    records_of_blocks([b"".join(others)], parser)
    assert len(records_of_blocks([lines[0]], parser)) == 1


def test_the_time_at_the_head_of_a_line() -> None:
    parser = LogParser("log")
    assert parser.time_of(f"{HEAD}x.py:1:f m".encode(), NEWEST) == AT
    assert parser.time_of(b"set -e", NEWEST) is None
    assert parser.time_of(b"\xff\xff", NEWEST) is None


def test_a_message_with_its_time_from_a_journal() -> None:
    parser = LogParser("log")
    (record,) = parser.read_message(f"{SUPERVISOR}{CREATED}", 17, 3, AT, 42)
    assert (record.at, record.pid, record.line, record.offset) == (AT, 42, 3, 17)
    (own,) = parser.read_message(f"Nov 20 20:34:28   7 0 {SUPERVISOR}{CREATED}", 0, 1, AT, 42)
    assert (own.at, own.pid) == (AT - 2 * SECOND, 7)
    assert parser.read_message("set -e", 0, 1, AT, 42) == []
