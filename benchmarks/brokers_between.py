"""Stands between Kafka's clients and librdkafka's mock cluster, which cannot fault: it does, as it is told.

Frames are passed on as they are, but that the mock's address becomes this one's, so that clients come here.
Basis: the Kafka protocol guide (https://kafka.apache.org/protocol), size-delimited requests and responses.
"""

import asyncio
import os
import struct
import threading
from collections.abc import Callable
from enum import Enum, auto

HOST = "127.0.0.1"
BABBLED = 4_096


class Mood(Enum):
    """What is done with connections and with what comes on them."""

    WELL = auto()
    REFUSES = auto()
    BREAKS = auto()
    HANGS = auto()
    BABBLES = auto()


class BrokersBetween:
    """One broker of a mock cluster at another port, in a thread of its own until it is closed."""

    def __init__(self, mock: int) -> None:
        self.port = 0
        self.asked = 0
        """How many requests came."""
        self.mood = Mood.WELL
        self._mock = mock
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._ended, self._ready = asyncio.Event(), threading.Event()
        self._thread = threading.Thread(
            target=self._loop.run_until_complete, args=(self._run(),), name="brokers"
        )
        self._thread.start()
        self._ready.wait()

    def be(self, mood: Mood) -> None:
        """Be in another mood; connections that were taken in the one before are ended."""
        asyncio.run_coroutine_threadsafe(self._be(mood), self._loop).result()

    def close(self) -> None:
        """End it. May be called twice."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join()
            self._loop.close()

    async def _run(self) -> None:
        await self._listen()
        self._ready.set()
        await self._ended.wait()
        await self._be(Mood.REFUSES)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, HOST, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _be(self, mood: Mood) -> None:
        self.mood = mood
        if mood is Mood.REFUSES and self._server is not None:
            self._server.close()
            self._server = None
        elif self._server is None:
            await self._listen()
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, asking: asyncio.StreamReader, answering: asyncio.StreamWriter) -> None:
        if self.mood is Mood.BREAKS:
            answering.transport.abort()
            return
        answers, questions = await asyncio.open_connection(HOST, self._mock)
        self._writers |= {answering, questions}
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass(asking, questions, self._counted))
                both.create_task(self._pass(answers, answering, self._moved))
        except* (asyncio.IncompleteReadError, ConnectionError):
            pass  # one of them is gone
        finally:
            self._writers -= {answering, questions}
            for writer in (questions, answering):
                writer.transport.abort()

    async def _pass(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, change: Callable[[bytes], bytes]
    ) -> None:
        """Pass on frames until there are no more. Raises IncompleteReadError then."""
        while True:
            (length,) = struct.unpack(">i", await source.readexactly(4))
            frame = change(struct.pack(">i", length) + await source.readexactly(length))
            if self.mood is not Mood.HANGS:
                target.write(frame)
                await target.drain()

    def _counted(self, frame: bytes) -> bytes:
        self.asked += 1
        return frame

    def _moved(self, frame: bytes) -> bytes:
        """An answer that leads here, or nothing of the kind."""
        if self.mood is Mood.BABBLES:
            return os.urandom(BABBLED)
        there, here = (HOST.encode() + struct.pack(">i", port) for port in (self._mock, self.port))
        return frame.replace(there, here)
