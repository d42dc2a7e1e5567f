"""A Balsam server that a setting names, with the login that Balsam's own client keeps for it."""

import base64
import json
import os
from contextlib import suppress
from glob import escape, glob
from urllib.parse import urlsplit

from jobtui.backends.balsam.cache import EventCache, cache_path
from jobtui.backends.balsam.client import BalsamClient
from jobtui.backends.balsam.credentials import Login, login_path, notice, read_login
from jobtui.backends.balsam.source import Balsam
from jobtui.backends.base import SourceDenied, SourceError, SourceMissing
from jobtui.model.clock import Nanos
from jobtui.model.secrets import mask_text
from jobtui.model.specs import SourceSpec

MOST_BESIDE = 20
"""Other logins that are looked at."""


def open_balsam(spec: SourceSpec, since: Nanos | None) -> Balsam:
    """The source. Its login is read anew for each request, as it may be renewed meanwhile."""
    path = login_path(os.environ, os.path.expanduser("~"))
    client = BalsamClient(spec.target, lambda: login_for(spec.target, path).token, label=spec.label)
    owner = _owner(spec.target, path)
    cache = None
    if spec.kept and owner:
        cache = EventCache(cache_path(client.name, owner), client.name, client.system, spec.kept)
    return Balsam(
        client,
        owner=owner,
        since=since,
        notice=lambda now: _notice(spec.target, path, now),
        cache=cache,
    )


def login_for(url: str, path: str) -> Login:
    """The login for a server: the one that Balsam's client uses, else one that lies beside it.

    Raises SourceError; a login to another server is not sent to this one.
    """
    try:
        login = read_login(path)
    except SourceMissing as error:
        if (beside := _beside(url, path)) is None:
            raise error
        return beside
    if not login.api_root or is_same_server(login.api_root, url):
        return login
    if (beside := _beside(url, path)) is None:
        raise SourceDenied(
            f"{path} holds a login for {mask_text(login.api_root)}, and not for {url}: "
            f"`jobtui login balsam --balsam {url}`, or give $BALSAM_CLIENT_PATH"
        )
    return beside


def _beside(url: str, path: str) -> Login | None:
    """The login for a server among the other files of the directory, which may be read by nobody else."""
    directory = os.path.dirname(path) or "."
    for other in sorted(glob(os.path.join(escape(directory), "*.yml")))[:MOST_BESIDE]:
        with suppress(SourceError):
            login = read_login(other)
            if is_same_server(login.api_root, url):
                return login
    return None


def path_beside(url: str, path: str) -> str:
    """Where a login for a server is kept when `path` holds one for another."""
    parts = urlsplit(url)
    place = "-".join(filter(None, (parts.netloc, *parts.path.split("/")))).replace(":", "-")
    return os.path.join(os.path.dirname(path), f"client-{place}.yml")


def is_same_server(url: str, other: str) -> bool:
    """Whether two addresses are of one server, however they are written."""
    return _place(url) == _place(other)


def _place(url: str) -> tuple[str, str, int | None, str]:
    """What tells servers apart: two ways to write one address are the same."""
    parts = urlsplit(url.strip())
    try:
        port = parts.port
    except ValueError:
        port = None
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname or "", port or usual, parts.path.rstrip("/")


def _owner(url: str, path: str) -> str:
    try:
        return user_of(login_for(url, path))
    except SourceError:
        return ""  # the first poll says what is wrong


def _notice(url: str, path: str, now: Nanos) -> str | None:
    try:
        return notice(login_for(url, path), now)
    except SourceError:
        return None  # the poll says what is wrong


def user_of(login: Login) -> str:
    """The user whose login it is, as its token says; "" when it does not. The token is not verified."""
    parts = login.token.split(".")
    if len(parts) != 3:
        return ""
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return ""
    name = claims.get("username") if isinstance(claims, dict) else None
    return name if isinstance(name, str) else ""
