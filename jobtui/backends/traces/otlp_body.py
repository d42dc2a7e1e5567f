"""The body of a request as it comes, unpacked, up to a limit."""

import zlib
from collections.abc import Mapping

GZIP = 16


class Refusal(Exception):
    """A request that is not read to its end: the status and why."""

    def __init__(self, status: int, why: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.headers = headers or {}


class BodyParts:
    """A body as it comes. Unpacking stops at the limit, so that nothing small becomes large."""

    def __init__(self, packing: str, most: int) -> None:
        packing = packing.strip().lower()
        if packing not in ("", "identity", "gzip", "deflate"):
            raise Refusal(415, f"content encoding {packing[:20]!r}: expected gzip")
        self._most = most
        self._wbits = zlib.MAX_WBITS | GZIP if packing == "gzip" else zlib.MAX_WBITS
        self._is_packed = packing in ("gzip", "deflate")
        self._unpacker: zlib._Decompress | None = None
        self._parts: list[bytes] = []
        self._size = 0

    def take(self, data: bytes) -> int:
        """Take in a piece; how many bytes it became. Raises Refusal."""
        if self._is_packed:
            data = self._unpacked(data)
        self._size += len(data)
        if self._size > self._most:
            raise Refusal(413, f"the body has more than {self._most} bytes")
        self._parts.append(data)
        return len(data)

    def _unpacked(self, data: bytes) -> bytes:
        """What a piece unpacks to, up to one byte more than is allowed. There may be pack after pack."""
        found = []
        room = self._most - self._size + 1
        try:
            while data and room > 0:
                if self._unpacker is None or self._unpacker.eof:
                    self._unpacker = zlib.decompressobj(self._wbits)
                found.append(self._unpacker.decompress(data, room))
                room -= len(found[-1])
                data = self._unpacker.unused_data
        except zlib.error as error:
            raise Refusal(400, f"the body cannot be unpacked: {error}") from error
        return b"".join(found)

    def whole(self) -> bytes:
        """All of it. Raises Refusal when it is cut off."""
        if self._unpacker is not None and not self._unpacker.eof:
            raise Refusal(400, "the packed body is cut off")
        return b"".join(self._parts)
