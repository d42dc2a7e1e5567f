"""Servers on loopback that answer anything but what gatewayd would."""

import asyncio
import re
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

Answer = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]
"""Is given the head of a request, writes what it likes, and returns to hang up."""

_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.I)


def reply(status: str, body: bytes = b"", **headers: str) -> Answer:
    """One whole answer. Names of headers are given with `_` for `-`."""

    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await writer.drain()

    return answer


def raw(data: bytes, *, hangs: bool = False) -> Answer:
    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        if hangs:
            await asyncio.Event().wait()

    return answer


@asynccontextmanager
async def answering(answer: Answer, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A server that answers so, over TLS with a `context`; gives its address."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                head = await reader.readuntil(b"\r\n\r\n")
                if length := _LENGTH.search(head):  # hanging up with a body unread would be a reset
                    await reader.readexactly(int(length[1]))
                await answer(head, writer)
        finally:
            tasks.discard(task)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        scheme = "http" if context is None else "https"
        yield f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in [*tasks]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def self_signed(root: Path) -> ssl.SSLContext:
    """A certificate for 127.0.0.1 that nobody else signed, in `cert.pem`."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    key, certificate = root / "key.pem", root / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=here"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
