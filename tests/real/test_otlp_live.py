"""The receiver, driven by programs of others: the JavaScript SDK, and Rotel behind the Python SDK."""

import asyncio
import os
import shutil
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jobtui.backends.traces.receiver import Receiver
from jobtui.model.traces import Trace
from jobtui.session import Session
from tests.backends.traces.sending import SPAN, export, listening, resident_kb, send
from tests.real.sirepo_system import free_port
from tests.sdk_sender import STEPS
from tests.waiting import stop, wait_until

pytestmark = pytest.mark.real

SPANS = STEPS + 2
CONNECTIONS = 10_000
GROWTH_KB = 20_000
SENDER = Path(__file__).with_name("js_sender.js")
MODULES = os.environ.get("REAL_OTEL_MODULES", "")
ROTEL = os.environ.get("REAL_ROTEL_AGENT", "")


@asynccontextmanager
async def watched() -> AsyncIterator[tuple[Session, str]]:
    """A session that listens, and its address."""
    receiver = Receiver("127.0.0.1:0")
    async with Session([receiver]) as session:
        running = asyncio.create_task(session.run())
        await wait_until(lambda: receiver.port)
        yield session, f"http://127.0.0.1:{receiver.port}"
        await stop(running)


async def ran(*command: str, **environ: str) -> str:
    """What a program prints that must end well."""
    process = await asyncio.create_subprocess_exec(
        *command, env=os.environ | environ, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


async def arrived(session: Session, trace_id: str) -> Trace:
    """The trace with this id, as soon as all of its spans are there."""
    book = session.store.traces
    await wait_until(lambda: trace_id in book.ids())
    (known,) = (one for one in book.ids() if one == trace_id)
    await wait_until(lambda: len(_spans(book.trace(known))) == SPANS)
    (health,) = session.store.sources()
    assert (health.skipped, health.error) == (0, None)
    trace = book.trace(known)
    assert trace is not None
    return trace


def _spans(trace: Trace | None) -> set[str]:
    return {span.span_id for span in trace.spans} if trace else set()


@pytest.mark.skipif(not MODULES or shutil.which("node") is None, reason="node or its packages are not there")
@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("encoding", ["json", "protobuf"])
async def test_the_javascript_sdk(encoding: str, compression: str) -> None:
    async with watched() as (session, url):
        said = await ran("node", str(SENDER), url, encoding, compression, NODE_PATH=MODULES)
        trace = await arrived(session, said)
    (last,) = (span for span in trace.spans if span.is_error)
    assert (last.name, last.message, last.service) == ("last", "it broke", "node")
    assert last.events[0].attributes["exception.message"] == "it broke"


@pytest.mark.skipif(not ROTEL, reason="Rotel is not there")
async def test_a_collector_in_between_forwards_spans(tmp_path: Path) -> None:
    async with watched() as (session, url):
        ports = [free_port() for _ in range(2)]
        agent = await asyncio.create_subprocess_exec(
            ROTEL, "start", "--exporter", "otlp", "--otlp-exporter-endpoint", url,
            "--otlp-exporter-protocol", "http", "--otlp-exporter-compression", "gzip",
            "--otlp-http-endpoint", f"localhost:{ports[0]}", "--otlp-grpc-endpoint", f"localhost:{ports[1]}",
            "--pid-file", str(tmp_path / "pid"), "--log-file", str(tmp_path / "log"),
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            await wait_until(lambda: _answers(ports[0]))
            said = await ran(sys.executable, "-m", "tests.sdk_sender", f"http://localhost:{ports[0]}", "gzip")
            trace = await arrived(session, said)
            await wait_until(lambda: session.store.traces.size(trace.trace_id) == SPANS + 1)
        finally:
            agent.terminate()
            await agent.wait()
    assert [span.name for span in trace.spans if span.is_error] == ["last"]


OPEN_AND_DROP = """
import socket, sys
for number in range(int(sys.argv[2])):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=10) as one:
        if number % 3 == 1:
            one.send(b"POST /v1/traces HTTP/1.1\\r\\nContent-Length: 100\\r\\n\\r\\n{")
        if number % 3 == 2:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\\1\\0\\0\\0\\0\\0\\0\\0")
"""


async def open_and_drop(port: int, count: int) -> None:
    arguments = (sys.executable, "-c", OPEN_AND_DROP, str(port), str(count))
    assert await (await asyncio.create_subprocess_exec(*arguments)).wait() == 0


async def growth_kb(connections: int) -> int:
    """By how much this process grows when so many connections are opened and dropped."""
    async with listening() as receiver:
        await open_and_drop(receiver.port, 100)
        await wait_until(lambda: not receiver.connections)
        before = resident_kb()
        await open_and_drop(receiver.port, connections)
        assert (await send(receiver, export(SPAN))).status == 200
        await wait_until(lambda: not receiver.connections)
        assert receiver.held_bytes == 0
        return resident_kb() - before


async def test_ten_thousand_connections_opened_and_dropped() -> None:
    assert await growth_kb(CONNECTIONS) < GROWTH_KB


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("localhost", port), timeout=1).close()
    except OSError:
        return False
    return True
