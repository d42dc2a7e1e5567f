"""The body of an answer over HTTP, up to a limit."""

from typing import TYPE_CHECKING

from jobtui.backends.base import SourceUnreachable

if TYPE_CHECKING:
    import httpx


async def body_of(response: "httpx.Response", source: str, most: int) -> bytes:
    """All of a body, unpacked. Raises SourceUnreachable, in the name of a source, beyond `most` bytes."""
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > most:
            raise SourceUnreachable(f"{source}: an answer of more than {most >> 20} MiB; ask for less")
        parts.append(part)
    return b"".join(parts)
