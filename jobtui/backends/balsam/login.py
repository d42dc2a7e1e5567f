"""Logging in to a Balsam server, and keeping the login where Balsam's own client looks. Only when asked.

`$BALSAM_CLIENT_PATH`, else `~/.balsam/client.yml`: YAML with `api_root`, `token` (a JWT) and `token_expiry`
(UTC without a zone, may be null). Source: Balsam 0.7.0a24, balsam/config.

No error text contains passwords or tokens, and no local variable of code that raises. Source: Balsam 0.7.0a24
as run; the device flow is that of RFC 8628, except for the key of its errors, `detail`.
"""

import asyncio
import base64
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import date
from enum import StrEnum
from functools import lru_cache
from glob import escape, glob
from typing import NamedTuple, TypeVar
from urllib.parse import urlencode, urlsplit
from uuid import uuid4

import msgspec

from jobtui.backends.balsam.client import BALSAM, shown_address
from jobtui.model.clock import SECOND, Nanos, seconds_between, time_of_iso, utc_of
from jobtui.model.commands import Command
from jobtui.model.health import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.numbers import read_json, real_of
from jobtui.model.secrets import mask_text
from jobtui.transport.files import open_regular, read_small
from jobtui.transport.http import HttpClient, HttpLimits, Response

PATH_VARIABLE = "BALSAM_CLIENT_PATH"
DEFAULT_PATH = os.path.join(".balsam", "client.yml")
MOST_BYTES = 1 << 20
OTHERS_MAY = stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH
EXPIRY_NOTICE_S = 4 * 3600
"""How long before its end the end of a login is announced."""
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
    return environ.get(PATH_VARIABLE) or os.path.join(home, DEFAULT_PATH)


def read_login(path: str) -> Login:
    """The login in a file. Raises SourceMissing if there is none, SourceDenied if it cannot be used."""
    document = _settings(_read(path))
    if not document:
        raise SourceDenied(f"{path} holds no settings in YAML: {LOGIN}")
    token = document.get("token")
    if not isinstance(token, str) or not token:
        raise SourceDenied(f"{path} holds no token: {LOGIN}")
    if not token.isprintable() or not token.isascii() or any(map(str.isspace, token)):
        raise SourceDenied(f"{path} holds a token that is not valid: {LOGIN}")
    root, expiry = document.get("api_root"), document.get("token_expiry")
    at = time_of_iso(str(expiry)) if isinstance(expiry, str | date) else None
    expires_at = None if at is None else Nanos(at - at % SECOND)
    return Login(root if isinstance(root, str) else "", token, expires_at, path)


@lru_cache(maxsize=1)  # each request looks whether there is another login
def _settings(text: str | bytes) -> Mapping[str, object]:
    """What a file in YAML says; nothing if it is not one. The error would show the secret in it."""
    import yaml  # one file in a run, and only where there is a Balsam

    with suppress(yaml.YAMLError, RecursionError, ValueError, OverflowError, TypeError, AttributeError):
        return found if isinstance(found := yaml.safe_load(text), dict) else {}
    return {}


def _read(path: str) -> str:
    try:
        with open(open_regular(path), "rb") as file:
            if os.fstat(file.fileno()).st_mode & OTHERS_MAY:
                remedy = Command("chmod", "600", about=[path]) or "let nobody else read it"
                raise SourceDenied(f"{path} may be read by others, and holds a login: `{remedy}`")
            return file.read(MOST_BYTES).decode("utf-8", "replace")
    except FileNotFoundError as error:
        raise SourceMissing(f"{path} does not exist: {LOGIN}") from error
    except OSError as error:
        raise SourceDenied(f"{path} cannot be read: {error.strerror}") from error


def notice(login: Login, now: Nanos) -> str | None:
    """A note on a login that ends soon or has ended; None otherwise."""
    if login.expires_at is None:
        return None
    left_s = seconds_between(now, login.expires_at)
    if left_s <= 0:
        return f"the login has expired: {LOGIN}"
    if left_s < EXPIRY_NOTICE_S:
        return f"the login expires in {left_s / 60:.0f} min: {LOGIN}"
    return None


MOST_BESIDE = 20
"""How many other logins are checked."""


def login_for(url: str, path: str) -> Login:
    """The login for a server: the one that Balsam's client uses, else one in the same directory.

    Raises SourceError; a login to another server is not sent to this one.
    """
    try:
        login = read_login(path)
        if not login.api_root or server_of(login.api_root) == server_of(url):
            return login
        failure: SourceError = SourceDenied(
            f"{path} holds a login for {mask_text(login.api_root)}, and not for {url}: "
            f"`{Command('jobtui', 'login', 'balsam', '--balsam', url) or 'jobtui login balsam'}`, "
            "or give $BALSAM_CLIENT_PATH"
        )
    except SourceMissing as error:
        failure = error
    if (beside := _beside(url, path)) is None:
        raise failure
    return beside


def _beside(url: str, path: str) -> Login | None:
    """The login for a server in the other files of the directory, if nobody else may read the file."""
    for other in sorted(glob(os.path.join(escape(os.path.dirname(path) or "."), "*.yml")))[:MOST_BESIDE]:
        with suppress(SourceError):
            login = read_login(other)
            if server_of(login.api_root) == server_of(url):
                return login
    return None


def path_beside(url: str, path: str) -> str:
    """Where a login for a server is kept when `path` holds one for another."""
    parts = urlsplit(url)
    server = "-".join(filter(None, (parts.netloc, *parts.path.split("/")))).replace(":", "-")
    return os.path.join(os.path.dirname(path), f"client-{server}.yml")


def server_of(url: str) -> tuple[str, str, int | None, str]:
    """The parts of an address by which servers differ: two ways to write one address are equal."""
    parts = urlsplit(url.strip())
    try:
        port = parts.port
    except ValueError:
        port = None
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname or "", port or usual, parts.path.rstrip("/")


def user_of(login: Login) -> str:
    """The user whose login it is, as its token says; "" when it does not. The token is not verified."""
    parts = login.token.split(".")
    if len(parts) != 3:
        return ""
    try:
        claims = read_json(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return ""
    name = claims.get("username") if isinstance(claims, dict) else None
    return name if isinstance(name, str) else ""


LIMITS = HttpLimits(silence_s=30.0, connections=1, body_bytes=1 << 20)
LEAST_INTERVAL_S, MOST_INTERVAL_S = 1.0, 60.0
"""How often a server may be asked whether a login was approved, whatever it says."""
LONGEST_S = 3600.0
PLAIN = frozenset({403, 429, 501, 502, 503, 504})
"""Answers that are reported by their status as usual; the text of any other may repeat what was sent."""
GRANT = "urn:ietf:params:oauth:grant-type:device_code"
PENDING = "authorization_pending"
REFUSALS = {
    "access_denied": "it was denied",
    "expired_token": "it took too long: start again",
    "invalid_client": "the server no longer knows this attempt: start again",
}
DEFAULTS: Mapping[str, object] = {"connect_timeout": 6.2, "read_timeout": 120.0, "retry_count": 10}
"""What Balsam's own client writes together with a login."""
_TOKEN = re.compile(r"[\x21-\x7e]{1,8192}")


def _no_login(answer: Response) -> tuple[type[SourceError], str] | None:
    if answer.is_page or 300 <= answer.status < 400 or answer.status in PLAIN:
        return None
    if answer.status == 404:
        return SourceDenied, "no Balsam server is there, or it does not offer this way to log in (404)"
    return SourceUnreachable, "answered with something that is not a login ({status}); {address}"


KIND = BALSAM._replace(explain=_no_login)


class Method(StrEnum):
    """A way to log in, as a server names it; `value` is its client's word for those who use it."""

    PASSWORD = "balsam.client.requests_password.BasicAuthRequestsClient"
    DEVICE = "balsam.client.requests_oauth.OAuthRequestsClient"


_METHODS = {"LoginMethod.password": Method.PASSWORD, "LoginMethod.oauth_device": Method.DEVICE}


class _Secret(msgspec.Struct):
    def __repr__(self) -> str:
        """Without what it says: a token, or a code that identifies a login until it is approved."""
        return f"{type(self).__name__}(...)"


class GrantedLogin(_Secret):
    """A login as a server gives it. `expiration` is UTC without a zone."""

    access_token: str
    expiration: str = ""


class Device(_Secret):
    """A login that waits for somebody to approve it in a browser. Times in seconds."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str = ""
    expires_in: float = 300.0
    interval: float = 3.0


Form = TypeVar("Form")


class LoginServer:
    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._name = shown_address(url)
        self._client_id = str(uuid4())

    def methods(self) -> tuple[Method, ...]:
        """The ways to log in that the server offers and that are known here. Raises SourceError."""
        names = self._decode(list[str], self._ask("/auth/how"))
        return tuple(_METHODS[name] for name in names if name in _METHODS)

    def by_password(self, user: str, ask_password: Callable[[], str]) -> GrantedLogin:
        """Log in with a password. Raises SourceDenied when it is wrong, SourceError otherwise."""
        path = "/auth/password/login"
        answer = self._ask(path, lambda: {"username": user, "password": ask_password()}, (200, 401))
        if answer.status == 401:
            raise SourceDenied(f"{self._name}: no such user, or the password is wrong")
        return self._checked_login(answer, path)

    def begin(self) -> Device:
        """Begin a login that is approved in a browser. Raises SourceError."""
        path = "/auth/device/login"
        answer = self._ask(path, lambda: {"client_id": self._client_id, "scope": ""})
        return self._decode(Device, answer)

    def until_approved(
        self,
        device: Device,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> GrantedLogin:
        """The login, when it was approved. Raises SourceError if it is not approved, or not in time.

        A server that does not answer for a while is asked again.
        """
        path, longest_s = "/auth/device/token", min(LONGEST_S, device.expires_in)
        form = lambda: {  # noqa: E731 - made where it is sent, so that it is no part of a traceback
            "grant_type": GRANT, "device_code": device.device_code, "client_id": self._client_id
        }  # fmt: skip
        end = clock() + longest_s
        failure: SourceUnreachable | None = None
        while clock() < end:
            sleep(min(MOST_INTERVAL_S, max(LEAST_INTERVAL_S, device.interval)))
            try:
                answer, failure = self._ask(path, form, (200, 400, 403)), None
                if answer.status == 200:
                    return self._checked_login(answer, path)
            except SourceUnreachable as error:
                failure = error
                continue
            said = self._reason(answer)
            if said != PENDING:
                raise SourceDenied(f"{self._name}: not logged in: {REFUSALS.get(said, said or 'refused')}")
        if failure is not None:
            raise failure
        raise SourceDenied(f"{self._name}: not approved within {longest_s / 60:.0f} min: start again")

    def _checked_login(self, answer: Response, path: str) -> GrantedLogin:
        granted = self._decode(GrantedLogin, answer)
        if _TOKEN.fullmatch(granted.access_token) is None:
            raise SourceUnreachable(f"{self._name}{path}: answered with a token that is not valid")
        return granted

    def _ask(
        self, path: str, form: Callable[[], dict[str, str]] | None = None, fine: Sequence[int] = (200,)
    ) -> Response:
        async def asked() -> Response:
            async with aclosing(self._client()) as http:
                if form is None:
                    return await http.ask(path, fine=fine)
                headers = {"Content-Type": "application/x-www-form-urlencoded"}
                content = urlencode(form()).encode()
                return await http.ask(path, method="POST", content=content, headers=headers, fine=fine)

        failure: type[SourceError] | None = None
        try:
            return asyncio.run(asked())
        except SourceError as error:
            failure, why = type(error), str(error)
        # Outside, so that a traceback does not contain what was sent
        raise failure(why)

    def _client(self) -> HttpClient:
        return HttpClient(self.url, KIND, name=self._name, limits=LIMITS)

    def _decode(self, kind: type[Form], answer: Response) -> Form:
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except (ValueError, RecursionError):
            raise self._client().refusal(answer) from None

    @staticmethod
    def _reason(answer: Response) -> str:
        with suppress(ValueError):
            said = read_json(answer.body)
            detail = said.get("detail") if isinstance(said, dict) else None
            if isinstance(detail, str | list):
                return mask_text(detail)[:200] if isinstance(detail, str) else "not understood"
        return ""


def keep_login(path: str, url: str, granted: GrantedLogin, method: Method) -> None:
    """Write a login as Balsam's own client does: mode 0600, in a directory of mode 0700, whole or not at all.

    Raises SourceDenied if that fails.
    """
    import yaml

    kept: Mapping[str, object] = {}
    with suppress(OSError):
        kept = _settings(read_small(path, MOST_BYTES))
    at = time_of_iso(granted.expiration)
    settings = {
        "api_root": url,
        "client_class": method.value,
        **{
            name: kept[name] if real_of(kept.get(name)) is not None else usual
            for name, usual in DEFAULTS.items()
        },
        "token": granted.access_token,
        # YAML writes it as a time: UTC without a zone
        "token_expiry": None
        if at is None
        else utc_of(at).replace(tzinfo=None, microsecond=at % SECOND // 1_000),
    }
    directory = os.path.dirname(path) or "."
    try:
        if not os.path.isdir(directory):
            os.makedirs(directory, mode=0o700)
        _replace(path, directory, yaml.safe_dump(settings, sort_keys=False))
    except OSError as error:
        raise SourceDenied(f"{path} cannot be written: {error.strerror}") from None


def _replace(path: str, directory: str, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=".client-", suffix=".yml", dir=directory)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, os.path.realpath(path))
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
