"""A Balsam server that a setting names, with the login that Balsam's own client keeps for it."""

import base64
import json
import os
from urllib.parse import urlsplit

from jobtui.backends.balsam.client import BalsamClient
from jobtui.backends.balsam.credentials import Login, login_path, notice, read_login
from jobtui.backends.balsam.source import Balsam
from jobtui.backends.base import SourceDenied, SourceError
from jobtui.model.clock import Nanos
from jobtui.model.secrets import mask_text
from jobtui.model.specs import SourceSpec


def open_balsam(spec: SourceSpec, since: Nanos | None) -> Balsam:
    """The source. Its login is read anew for each request, as it may be renewed meanwhile."""
    path = login_path(os.environ, os.path.expanduser("~"))
    client = BalsamClient(spec.target, lambda: login_for(spec.target, path).token)
    return Balsam(client, owner=_owner(path), since=since, notice=lambda now: _notice(spec.target, path, now))


def login_for(url: str, path: str) -> Login:
    """The login for a server. Raises SourceError, also for one to another server: it is not sent there."""
    login = read_login(path)
    if login.api_root and _place(login.api_root) != _place(url):
        raise SourceDenied(
            f"{path} holds a login for {mask_text(login.api_root)}, and not for {url}: "
            f"`jobtui login balsam --balsam {url}`, or give $BALSAM_CLIENT_PATH"
        )
    return login


def _place(url: str) -> tuple[str, str, int | None, str]:
    """What tells servers apart: two ways to write one address are the same."""
    parts = urlsplit(url.strip())
    try:
        port = parts.port
    except ValueError:
        port = None
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname or "", port or usual, parts.path.rstrip("/")


def _owner(path: str) -> str:
    try:
        return user_of(read_login(path))
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
