"""Adds to librdkafka's mock cluster what it lacks, offsets by time: stands between it and clients, over TCP.

Frames are passed on as they are, but for three: the mock's own address becomes this one's, so that clients
come here; of ListOffsets (key 2) version 5 is offered at most, the last whose fields have fixed widths; and
its answers get the offset of the first message that was sent at the wanted time or later, as a broker gives
it. Basis: the Kafka protocol guide.
"""

import asyncio
import struct
import threading
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence

HOST = "127.0.0.1"
LIST_OFFSETS = 2
OFFERED, OFFERED_HERE = struct.pack(">hhh", LIST_OFFSETS, 0, 7), struct.pack(">hhh", LIST_OFFSETS, 0, 5)
ASKED, TOLD = struct.Struct(">iiq"), struct.Struct(">ihqqi")
"""A partition of a question: number, epoch, time. Of an answer: number, error, time, offset, epoch."""


class TimedBrokers:
    """A thread that serves one broker. `times` are those of each partition's messages, in milliseconds."""

    def __init__(self, port: int, times: Mapping[int, Sequence[int]]) -> None:
        self.asked: list[tuple[int, int]] = []
        """Partition and time of each question."""
        self.port = 0
        self._mock, self._times = port, times
        self._ready = threading.Event()
        self._end: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()
        assert self._ready.wait(30)

    def close(self) -> None:
        self._end()
        self._thread.join(30)

    async def _run(self) -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        self._end = lambda: loop.call_soon_threadsafe(ended.set)
        server = await asyncio.start_server(self._serve, HOST, 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await ended.wait()
        server.close()

    async def _serve(self, asking: asyncio.StreamReader, answering: asyncio.StreamWriter) -> None:
        answers, questions = await asyncio.open_connection(HOST, self._mock)
        wanted: dict[int, dict[int, int]] = {}
        try:
            await asyncio.gather(
                _pass(asking, questions, lambda frame: self._note(frame, wanted)),
                _pass(answers, answering, lambda frame: self._changed(frame, wanted)),
            )
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # one of them is gone, or this is to end
        finally:
            for writer in (questions, answering):
                writer.transport.abort()

    def _note(self, frame: bytes, wanted: dict[int, dict[int, int]]) -> bytes:
        """Remember the times that a question asks for, by its number."""
        key, version, number = struct.unpack_from(">hhi", frame)
        if key == LIST_OFFSETS:
            assert version == OFFERED_HERE[-1]
            name = struct.unpack_from(">h", frame, 8)[0]
            body = frame[10 + max(0, name) :]  # behind replica, isolation and the number of topics
            begin = 9 + 2 + struct.unpack_from(">h", body, 9)[0] + 4
            asked = {partition: at for partition, _, at in ASKED.iter_unpack(body[begin:])}
            wanted[number] = {partition: at for partition, at in asked.items() if at >= 0}
            self.asked += wanted[number].items()
        return frame

    def _changed(self, frame: bytes, wanted: dict[int, dict[int, int]]) -> bytes:
        """An answer with what the mock leaves out."""
        there, here = (HOST.encode() + struct.pack(">i", port) for port in (self._mock, self.port))
        frame = frame.replace(there, here).replace(OFFERED, OFFERED_HERE)
        times = wanted.pop(struct.unpack_from(">i", frame)[0], {})
        if not times:
            return frame
        begin = 12 + 2 + struct.unpack_from(">h", frame, 12)[0] + 4
        return frame[:begin] + b"".join(
            TOLD.pack(partition, error, *self._first(partition, times.get(partition, -1), at, offset), epoch)
            for partition, error, at, offset, epoch in TOLD.iter_unpack(frame[begin:])
        )

    def _first(self, partition: int, wanted: int, at: int, offset: int) -> tuple[int, int]:
        """Time and offset of the first message at a time or later; what was told for any other question."""
        if wanted < 0:
            return at, offset
        known = self._times.get(partition, ())
        found = bisect_left(known, wanted)
        return (known[found], found) if found < len(known) else (-1, -1)


async def _pass(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, change: Callable[[bytes], bytes]
) -> None:
    """Pass on frames until there are no more. Raises IncompleteReadError then."""
    while True:
        (length,) = struct.unpack(">i", await source.readexactly(4))
        frame = change(await source.readexactly(length))
        target.write(struct.pack(">i", len(frame)) + frame)
        await target.drain()
