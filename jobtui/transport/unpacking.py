"""Unpacks data from outside in steps and up to a limit, so that nothing small becomes large."""

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

STEP_BYTES = 1 << 20
RATIO = 200
"""Text packs 10 to 100 times; what packs better than this was made to harm."""
FREE_BYTES = 16 << 20
"""How many bytes are unpacked whatever the ratio is."""


class UnpackLimit:
    """What may be unpacked beyond `ratio` times what is packed, `left` bytes, by all that share it.

    Many small files together become no larger than one large file may.
    """

    def __init__(self, left: int = FREE_BYTES, ratio: int = RATIO) -> None:
        self.left, self.ratio = left, ratio


def _xz() -> Any:
    import lzma  # each costs the start of the program only where it is used

    return lzma.LZMADecompressor()


def _bzip2() -> Any:
    import bz2

    return bz2.BZ2Decompressor()


def _zstd() -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]  # Python 3.14
    except ImportError:
        raise UnknownPacking("is packed with zstd, which needs Python 3.14; unpack it") from None
    return zstd.ZstdDecompressor()


HTTP_PACKINGS: Mapping[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(zlib.MAX_WBITS | 16),
    "x-gzip": lambda: zlib.decompressobj(zlib.MAX_WBITS | 16),
    "deflate": lambda: zlib.decompressobj(zlib.MAX_WBITS),
}
"""What unpacks one stream, by the header Content-Encoding; all have the methods of those of `zlib`."""
FILE_PACKINGS: Mapping[bytes, Callable[[], Any]] = {
    b"\x1f\x8b\x08": HTTP_PACKINGS["gzip"],
    b"\xfd7zXZ\0": _xz,
    b"BZh": _bzip2,
    b"\x28\xb5\x2f\xfd": _zstd,
}
"""The same by the first bytes of a file."""
PLAIN = frozenset({"", "identity"})


class UnpackError(ValueError):
    """What is packed cannot be unpacked. The text says why."""


class UnknownPacking(UnpackError):
    """It is packed in a way that is not supported, or several times."""


class TooLarge(UnpackError):
    """It becomes larger than the limit, or by so high a ratio that it was made to do harm."""


class Unpacker:
    """Unpacks one body or file, given in pieces, up to `most_bytes` and as far as the allowance goes.

    `opener` makes what unpacks one stream, None for what is not packed.
    """

    def __init__(
        self, opener: Callable[[], Any] | None, most_bytes: int, allowance: UnpackLimit | None = None
    ) -> None:
        self._opener = opener
        self._most, self._allowance = most_bytes, allowance or UnpackLimit()
        self._stream: Any = None
        self.taken = self.given = self._beyond = 0

    @classmethod
    def of_body(cls, packing: str, most_bytes: int) -> "Unpacker":
        """The unpacker of a body with this Content-Encoding. Raises UnknownPacking."""
        packing = packing.strip().lower()
        if packing not in PLAIN and packing not in HTTP_PACKINGS:
            raise UnknownPacking(f"it is packed as {packing[:40]!r}; only gzip is accepted, and only once")
        return cls(HTTP_PACKINGS.get(packing), most_bytes)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What a piece unpacks to, in steps. Raises UnpackError."""
        self.taken += len(data)
        if self._opener is None:
            yield self._counted(data)
            return
        while data or self._has_more:
            if self._stream is None or self._stream.eof:
                # Files that are padded to whole blocks end in zeros
                if self.given and not (data := data.lstrip(b"\0")):
                    return
                self._stream = self._opener()
            try:
                step = self._stream.decompress(data, STEP_BYTES)
            except Exception as error:  # each way of packing has its own for what is damaged
                raise UnpackError(f"it cannot be unpacked: {error}") from error
            data = (
                self._stream.unused_data
                if self._stream.eof
                else getattr(self._stream, "unconsumed_tail", b"")
            )
            yield self._counted(step)

    @property
    def _has_more(self) -> bool:
        """Whether what was given is kept inside and unpacks to more; zlib gives it back instead."""
        return (
            self._stream is not None
            and not self._stream.eof
            and not getattr(self._stream, "needs_input", True)
        )

    def end(self) -> None:
        if self._stream is not None and not self._stream.eof:
            raise UnpackError("the packed data is cut off")

    def _counted(self, step: bytes) -> bytes:
        self.given += len(step)
        if self.given > self._most:
            most = self._most
            size = f"{most >> 20} MiB" if most >> 20 else f"{most} bytes"
            raise TooLarge(f"it has more than {size}")
        if self._opener is not None:
            self._draw(max(0, self.given - self._allowance.ratio * self.taken))
            if self._beyond and self._allowance.left < 0:
                raise TooLarge(f"it unpacks to more than {self._allowance.ratio} times its size")
        return step

    def _draw(self, beyond: int) -> None:
        self._allowance.left -= beyond - self._beyond
        self._beyond = beyond

    def give_back(self) -> None:
        """Return what it took of the allowance, as the data will be unpacked again."""
        self._draw(0)
