"""Streams and processes: lines in the order of their writers' clocks, and forwarded container output."""

import random
import re

import pytest

from jobtui.demo.kernel import Kernel
from jobtui.demo.lines import catalog
from jobtui.demo.output import Process, Stream, TailStream
from jobtui.demo.settings import DriverName, Settings
from jobtui.demo.workload import simulate
from jobtui.model.clock import SECOND, Nanos

START = Nanos(1_795_206_870 * SECOND)


def _process(stream: Stream, kernel: Kernel, *, head: bool = True, torn: float = 0.0) -> Process:
    lines = catalog(Settings())
    return Process(kernel, random.Random(1), lines, stream, 4711, head=head, torn=torn)


def test_a_line_has_time_process_and_call_site() -> None:
    kernel = Kernel(START)
    stream = Stream(kernel)

    _process(stream, kernel).log("listening", 8001)

    assert stream.take(everything=True) == (
        b"Nov 20 20:34:30  4711     0 ../../venv/lib/python3.11/site-packages/sirepo/pkcli/job_supervisor.py"
        b":78:default_command ip=127.0.0.1 port=8001\n"
    )


def test_production_lines_have_no_time() -> None:
    kernel = Kernel(START)
    stream = Stream(kernel)

    _process(stream, kernel, head=False).log("listening", 8001)

    assert stream.take(everything=True).startswith(b"../../venv/")


def test_lines_of_two_processes_are_mixed_by_their_clocks() -> None:
    kernel = Kernel(START)
    stream = Stream(kernel)
    busy, quick = _process(stream, kernel), _process(stream, kernel)
    busy.work(0.5)
    busy.log("listening", 1)
    quick.log("listening", 2)

    assert re.findall(rb"port=(\d)", stream.take(everything=True)) == [b"2", b"1"]


def test_only_what_is_settled_is_taken() -> None:
    kernel = Kernel(START)
    stream = Stream(kernel)
    _process(stream, kernel).log("listening", 1)

    assert stream.take() == b""
    kernel.run(Nanos(START + SECOND))
    assert stream.take().endswith(b"port=1\n")
    assert stream.take(everything=True) == b""


def test_an_ended_process_writes_nothing() -> None:
    kernel = Kernel(START)
    stream = Stream(kernel)
    process = _process(stream, kernel)
    process.end()
    process.log("listening", 1)

    assert stream.take(everything=True) == b""


def test_a_torn_record_loses_nothing() -> None:
    kernel = Kernel(START)
    stream = Stream(kernel)
    process = _process(stream, kernel, torn=1.0)
    process.log("program", "cmd", "one\ntwo\nthree")

    text = stream.take(everything=True)
    assert text.endswith(b"cmd=cmd stdin=one\ntwo\nthree\n")
    assert text.count(b"\n") == 3


def test_a_tail_remembers_what_was_taken() -> None:
    kernel = Kernel(START)
    stream = TailStream(kernel, keep=2)
    for text in ("a", "b", "c"):
        stream.write(START, text)

    assert stream.take(everything=True) == b"a\nb\nc\n"
    assert stream.tail() == "b\nc\n"


@pytest.fixture(scope="module")
def forwarded() -> dict[str, tuple[str, str]]:
    """For each container what it printed, and what the supervisor's log has of it, without newlines."""
    world = simulate(4, Settings(driver=DriverName.DOCKER, users=2, ops=40))
    found = {}
    log = world.log("supervisor.log").decode()
    for name in [name for name in world.logs() if name.startswith("container-")]:
        container = name.removeprefix("container-").removesuffix(".log")
        pieces = re.findall(rf"_write {container} (.*)", log)
        found[container] = (world.log(name).decode(), "".join(pieces))
    return found


def test_forwarded_output_is_a_prefix_of_what_was_printed(forwarded: dict[str, tuple[str, str]]) -> None:
    assert forwarded
    for printed, shown in forwarded.values():
        assert printed.replace("\n", "").startswith(shown)
        assert len(shown) > len(printed) / 2


def test_forwarded_output_is_cut_and_glued(forwarded: dict[str, tuple[str, str]]) -> None:
    world = simulate(4, Settings(driver=DriverName.DOCKER, users=2, ops=40))
    log = world.log("supervisor.log").decode()

    glued = re.findall(r"_write srj-\S+ .*runDir=\S+[a-zA-Z][A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d +\d+ ", log)
    assert glued
