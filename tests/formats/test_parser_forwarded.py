"""What a container printed, out of a supervisor's log: cut, glued, interleaved, and held back."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.formats.parser import CONTAINERS_KEPT, LogParser
from jobtui.model.logs import LogRecord
from tests.formats.captures import CAPTURES, name_of, records_of

WRITE = "sirepo/job_driver/docker.py:483:_write "
REST = "sirepo/job_driver/docker.py:495:_log_output cmd=start cname="
A, B = "srj-s-VUlhaMOD", "srj-p-eGO70vz3"
AGENT = "/srv/sirepo/venv/lib/python3.11/site-packages/sirepo/pkcli/job_agent.py:"
RUN_DIR = "/srv/sirepo/prod/db/user/VUlhaMOD/myapp/slPcrZWi/heightWeightReport"
ARRIVED = f"Nov 20 20:49:21 10038     0 {AGENT}487:_op opName=run o=S89I runDir={RUN_DIR}"
STARTED = (
    f"Nov 20 20:49:21 10038     0 {AGENT}848:start cmd=('/bin/bash', '-l') stdin=b\"source $HOME/.bashrc"
)
CMD = f"_Cmd(a=9mgt jid=VUlhaMOD-slPcrZWi-heightWeightReport o=S89I job_cmd=compute run_dir={RUN_DIR})"
EXITED = f"Nov 20 20:49:24 10038     0 {AGENT}868:_on_exit _Process(pid=31 cmd={CMD}) returncode=0"


def forwarded(*texts: str, container: str = A) -> bytes:
    return "".join(f"{WRITE}{container} {text}\n" for text in texts).encode()


def told(records: Iterable[LogRecord]) -> list[tuple[str, str | None]]:
    return [(record.shape, record.fields.get("o")) for record in records]


def test_a_forwarded_line_is_the_containers_own() -> None:
    (record,) = records_of(forwarded(ARRIVED))
    assert (record.shape, record.pid, record.container) == ("op_arrived", 10038, A)
    assert record.fields["run_dir"] == RUN_DIR


@pytest.mark.parametrize(
    "texts",
    [
        (ARRIVED + STARTED,),
        ('"' + ARRIVED + STARTED,),
        ("'" + ARRIVED, STARTED),
        ("export A='/srv/si", "repo/prod'" + ARRIVED + STARTED),
        (ARRIVED, "set -e", STARTED, "set -e"),
    ],
)
def test_glued_lines_are_taken_apart(texts: tuple[str, ...]) -> None:
    records = records_of(forwarded(*texts))
    assert [record.shape for record in records] == ["op_arrived", "job_cmd_started"]
    assert records[0].fields["run_dir"] == RUN_DIR


def test_three_glued_lines_are_three() -> None:
    records = records_of(forwarded(ARRIVED + STARTED + EXITED))
    assert told(records) == [("op_arrived", "S89I"), ("job_cmd_started", None), ("job_cmd_exited", "S89I")]
    assert [record.at for record in records] == sorted(record.at or 0 for record in records)


BOTH = [("op_arrived", "S89I"), ("job_cmd_started", None)]


def test_a_line_cut_before_its_run_directory_is_joined() -> None:
    for cut in range(1, ARRIVED.index("runDir=")):
        records = records_of(forwarded('"' + ARRIVED[:cut], ARRIVED[cut:] + STARTED))
        assert told(records) == BOTH, cut
        assert records[0].fields["run_dir"] == RUN_DIR, cut


def test_a_line_cut_in_its_run_directory_is_there_in_part() -> None:
    for cut in range(len(ARRIVED) - len(RUN_DIR) + 1, len(ARRIVED)):
        records = records_of(forwarded(ARRIVED[:cut], ARRIVED[cut:] + STARTED))
        assert told(records) == BOTH, cut
        assert RUN_DIR.startswith(records[0].fields["run_dir"] or "-"), cut


def test_a_line_glued_to_another_and_cut_in_its_head_is_joined() -> None:
    """A letter or two of the head are taken for the end of the line before: they may as well be."""
    for cut in range(1, len(STARTED) - len("source $HOME/.bashrc")):
        records = records_of(forwarded(ARRIVED + STARTED[:cut], STARTED[cut:]))
        assert told(records) == BOTH, cut
        assert records[0].fields["run_dir"] == RUN_DIR + (STARTED[:cut] if cut <= 2 else ""), cut


LIKE_A_KILL = EXITED.index(" returncode")
"""What is before this place is a whole line itself: that of a kill."""


def test_a_process_line_cut_anywhere_is_what_it_was() -> None:
    for cut in {*range(1, len(EXITED) - 1)} - {LIKE_A_KILL}:
        records = records_of(forwarded(EXITED[:cut], EXITED[cut:]))
        assert told(records) == [("job_cmd_exited", "S89I")], cut


def test_a_line_cut_twice_is_joined() -> None:
    reply = f"Nov 20 20:49:24 10038     0 {AGENT}566:_op_run_status reply={{'a': '{'x' * 900}"
    texts = (reply, "y" * 900, "z'} computeJid=VUlhaMOD-slPcrZWi-heightWeightReport")
    assert [record.shape for record in records_of(forwarded(*texts))] == ["run_status_answer"]


def test_two_containers_do_not_mix() -> None:
    data = (
        forwarded(ARRIVED[:90])
        + forwarded(EXITED[:120].replace("VUlhaMOD", "eGO70vz3"), container=B)
        + forwarded(ARRIVED[90:])
        + forwarded(EXITED[120:].replace("VUlhaMOD", "eGO70vz3"), container=B)
    )
    assert [(r.container, r.shape) for r in records_of(data)] == [(A, "op_arrived"), (B, "job_cmd_exited")]


def test_a_held_beginning_waits_over_blocks_and_other_lines() -> None:
    parser = LogParser("log")
    other = b"sirepo/job_supervisor.py:1346:reply_get _Op(run, 5N6c) await _reply_q.get()\n"
    assert told(records_of(forwarded(ARRIVED[:70]) + other, parser)) == [("reply_wait", "5N6c")]
    assert told(records_of(other + forwarded(ARRIVED[70:]), parser)) == [
        ("reply_wait", "5N6c"),
        ("op_arrived", "S89I"),
    ]


def test_what_was_held_when_the_agent_ended_is_joined() -> None:
    data = forwarded(EXITED[:100]) + f"{REST}{A} {EXITED[100:]}\n".encode()
    assert [r.shape for r in records_of(data)] == ["job_cmd_exited", "container_rest"]


def test_a_whole_line_held_when_the_agent_ended_is_read() -> None:
    records = records_of(f"{REST}{A} {EXITED}\n".encode())
    assert [(r.shape, r.container) for r in records] == [("job_cmd_exited", A), ("container_rest", None)]


def test_beginnings_are_held_within_bounds() -> None:
    parser = LogParser("log")
    for number in range(CONTAINERS_KEPT + 1):
        records_of(forwarded(ARRIVED[:90], container=f"srj-s-{number:08}"), parser)
    assert records_of(forwarded(ARRIVED[90:], container="srj-s-00000000"), parser) == []
    assert told(records_of(forwarded(ARRIVED[90:], container="srj-s-00000001"), parser)) == [
        ("op_arrived", "S89I")
    ]


def test_lines_that_never_end_are_not_gathered_for_ever() -> None:
    parser = LogParser("log")
    unknown = f"Nov 20 20:49:24 10038     0 {AGENT}1:frob frobnicated "
    for _ in range(50):
        assert records_of(forwarded(unknown + "x" * 900), parser) == []
        for _ in range(40):
            assert records_of(forwarded("y" * 900), parser) == []
    assert told(records_of(forwarded(ARRIVED), parser)) == [("op_arrived", "S89I")]


CONTAINER_LOGS = sorted(CAPTURES.rglob("container-*.log"))


def as_forwarded(printed: str, sizes: Iterable[int], container: str) -> bytes:
    """What a supervisor logs of a container's output when it comes in chunks of these sizes.

    The last line of a chunk that ends with a newline is kept back and put before the next chunk, without
    that newline; a chunk that ends elsewhere is logged as it is.
    """
    logged: list[str] = []
    kept, at = "", 0
    for size in [*sizes, len(printed)]:
        chunk = kept + printed[at : at + size]
        at += size
        lines = chunk.splitlines()
        kept = lines.pop() if chunk.endswith("\n") and lines else ""
        logged += [f"{WRITE}{container} {line}" for line in lines]
    if kept:
        logged.append(f"{REST}{container} {kept}")
    return "".join(f"{line}\n" for line in logged).encode()


@settings(max_examples=80)
@given(st.data())
def test_nothing_is_lost_however_the_output_was_cut(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(CONTAINER_LOGS))
    container = path.stem.removeprefix("container-")
    sizes = data.draw(st.lists(st.integers(1, 1_000), max_size=40))
    whole = records_of(path.read_bytes())
    found = records_of(as_forwarded(path.read_text(), sizes, container))
    found = [record for record in found if record.shape != "container_rest"]
    assert [(r.at, r.pid) for r in found] == [(r.at, r.pid) for r in whole]
    for record, original in zip(found, whole, strict=True):
        if record.shape == original.shape and record.fields.get("o"):
            assert record.fields["o"] == original.fields["o"]
        cut, glued = original.text.startswith(record.text[:-2]), record.text.startswith(original.text)
        assert cut or glued, (record.text, original.text)


@pytest.mark.parametrize("path", CONTAINER_LOGS, ids=name_of)
def test_a_capture_holds_its_containers_lines(path: Path) -> None:
    """The supervisor's log of a capture gives no agent line that the container's own log does not have."""
    container = path.stem.removeprefix("container-")
    own = {(r.at, r.pid, r.shape) for r in records_of(path.read_bytes())}
    log = path.parent / "supervisor.log"
    seen = {(r.at, r.pid, r.shape) for r in records_of(log.read_bytes()) if r.container == container}
    assert seen <= own
