"""The login that Balsam's own client keeps: read where it keeps it, never shown.

`$BALSAM_CLIENT_PATH`, else `~/.balsam/client.yml`: YAML with `api_root`, `token` (a JWT) and `token_expiry`
(UTC without a zone, may be null). Source: Balsam 0.7.0a24, balsam/config.
"""

import os
import stat
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import NamedTuple

from jobtui.backends.base import SourceDenied, SourceMissing
from jobtui.model.clock import SECOND, Nanos, seconds_between

PATH_VARIABLE = "BALSAM_CLIENT_PATH"
DEFAULT_PATH = os.path.join(".balsam", "client.yml")
MOST_BYTES = 1 << 20
OTHERS_MAY = stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH
EXPIRY_NOTICE_S = 4 * 3600
"""How long ahead the end of a login is told."""
LOGIN = "log in with `jobtui login balsam`, or with `balsam login`"


class Login(NamedTuple):
    """A login. `token` is a secret; `expires_at` is None where it is not known."""

    api_root: str
    token: str
    expires_at: Nanos | None
    path: str

    def __repr__(self) -> str:
        """Without the token, which must not get into a traceback."""
        return f"Login({self.api_root!r}, {self.path!r})"


def login_path(environ: Mapping[str, str], home: str) -> str:
    """Where Balsam's client keeps its login."""
    return environ.get(PATH_VARIABLE) or os.path.join(home, DEFAULT_PATH)


def read_login(path: str) -> Login:
    """The login in a file. Raises SourceMissing when there is none, SourceDenied when it cannot be used."""
    import yaml  # one file in a run, and only where there is a Balsam

    text = _read(path)
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError, TypeError, AttributeError):
        # What stands in the file is secret, and the error would show it in a traceback
        raise SourceDenied(f"{path} is no YAML: {LOGIN}") from None
    if not isinstance(document, dict):
        raise SourceDenied(f"{path} holds no settings: {LOGIN}")
    token = document.get("token")
    if not isinstance(token, str) or not token:
        raise SourceDenied(f"{path} holds no token: {LOGIN}")
    if not token.isprintable() or not token.isascii() or any(map(str.isspace, token)):
        raise SourceDenied(f"{path} holds a token that is none: {LOGIN}")
    root = document.get("api_root")
    return Login(root if isinstance(root, str) else "", token, _expiry(document.get("token_expiry")), path)


def _read(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise SourceDenied(f"{path} is no file")
            if status.st_mode & OTHERS_MAY:
                raise SourceDenied(f"{path} may be read by others, and holds a login: `chmod 600 {path}`")
            return file.read(MOST_BYTES).decode("utf-8", "replace")
    except FileNotFoundError as error:
        raise SourceMissing(f"{path} is not there: {LOGIN}") from error
    except OSError as error:
        raise SourceDenied(f"{path} cannot be read: {error.strerror}") from error


def _expiry(value: object) -> Nanos | None:
    """A YAML timestamp without a zone means UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return (
            None
            if not isinstance(value, date)
            else _nanos(datetime(value.year, value.month, value.day, tzinfo=UTC))
        )
    return _nanos(value if value.tzinfo else value.replace(tzinfo=UTC))


def _nanos(moment: datetime) -> Nanos:
    return Nanos(int(moment.timestamp()) * SECOND)


def notice(login: Login, now: Nanos) -> str | None:
    """What is to be said of a login that ends soon or has ended; None when there is nothing to say."""
    if login.expires_at is None:
        return None
    left_s = seconds_between(now, login.expires_at)
    if left_s <= 0:
        return f"the login has expired: {LOGIN}"
    if left_s < EXPIRY_NOTICE_S:
        return f"the login expires in {left_s / 60:.0f} min: {LOGIN}"
    return None
