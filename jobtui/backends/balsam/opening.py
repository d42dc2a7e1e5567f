"""A Balsam server that a setting names, with the login that Balsam's own client keeps for it."""

import base64
import json
import os

from jobtui.backends.balsam.client import BalsamClient
from jobtui.backends.balsam.credentials import Login, login_path, read_login
from jobtui.backends.balsam.source import Balsam
from jobtui.backends.base import SourceError
from jobtui.model.clock import Nanos
from jobtui.model.specs import SourceSpec


def open_balsam(spec: SourceSpec, since: Nanos | None) -> Balsam:
    """The source. Its login is read anew for each request, as it may be renewed meanwhile."""
    path = login_path(os.environ, os.path.expanduser("~"))
    client = BalsamClient(spec.target, lambda: read_login(path).token)
    return Balsam(client, owner=_owner(path), since=since)


def _owner(path: str) -> str:
    try:
        return user_of(read_login(path))
    except SourceError:
        return ""  # the first poll says what is wrong


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
