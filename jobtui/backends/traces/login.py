"""The headers with which a server is asked. A token in a file is read anew each time, as others renew it."""

import base64
import os

from jobtui.backends.base import SourceDenied, SourceMissing
from jobtui.model.access import Access

MOST_BYTES = 1 << 16


def login_headers(access: Access, name: str) -> dict[str, str]:
    """What to send along. Raises SourceError where a file of a token cannot be used."""
    headers = dict(access.headers)
    if access.user:
        both = base64.b64encode(f"{access.user}:{access.password}".encode()).decode()
        headers["Authorization"] = f"Basic {both}"
    elif token := access.bearer or (_token_in(access.bearer_file, name) if access.bearer_file else ""):
        headers["Authorization"] = f"Bearer {token}"
    return headers


def _token_in(path: str, name: str) -> str:
    path = os.path.expanduser(path)
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            text = file.read(MOST_BYTES).decode("utf-8", "replace").strip()
    except FileNotFoundError as error:
        raise SourceMissing(f"{name}: {path}, which is to hold its token, is not there") from error
    except OSError as error:
        raise SourceDenied(f"{name}: {path}, which is to hold its token: {error.strerror}") from error
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise SourceDenied(f"{name}: {path} holds no token")
    return text


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
