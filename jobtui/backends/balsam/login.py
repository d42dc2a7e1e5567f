"""Logging in to a Balsam server, and keeping the login where Balsam's own client looks. Only when asked.

Password and tokens are in no error text, and in no local variable of what raises one. Source: Balsam 0.7.0a24
as run; the device flow is that of RFC 8628 but for the key of its errors, `detail`.
"""

import os
import re
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from uuid import uuid4

import msgspec

from jobtui.backends.base import SourceDenied, SourceUnreachable
from jobtui.model.secrets import mask_text

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 30.0
LEAST_INTERVAL_S, MOST_INTERVAL_S = 1.0, 60.0
"""How often a server may be asked whether a login was approved, whatever it says."""
LONGEST_S = 3600.0
GRANT = "urn:ietf:params:oauth:grant-type:device_code"
PENDING, SLOW_DOWN = "authorization_pending", "slow_down"
SLOWER_S = 5.0
"""By how much a server is asked less often once it says so (RFC 8628, 3.5)."""
REFUSALS = {
    "access_denied": "it was denied",
    "expired_token": "it took too long: begin again",
    "invalid_client": "the server knows no such attempt any more: begin again",
}
KEPT_KEYS = ("connect_timeout", "read_timeout", "retry_count")
DEFAULTS = {"connect_timeout": 6.2, "read_timeout": 120.0, "retry_count": 10}
"""What Balsam's own client writes beside a login."""
_TOKEN = re.compile(r"[\x21-\x7e]{1,8192}")


class Method(StrEnum):
    """A way to log in, as a server names it; `value` is the word of its own client for who uses it."""

    PASSWORD = "balsam.client.requests_password.BasicAuthRequestsClient"
    DEVICE = "balsam.client.requests_oauth.OAuthRequestsClient"


_METHODS = {"LoginMethod.password": Method.PASSWORD, "LoginMethod.oauth_device": Method.DEVICE}


class Granted(msgspec.Struct):
    """A login as a server gives it. `expiration` is UTC without a zone."""

    access_token: str
    expiration: str = ""

    def __repr__(self) -> str:
        """Without the token, which must not get into a traceback."""
        return "Granted(...)"


class Device(msgspec.Struct):
    """A login that waits for somebody to approve it in a browser. Times in seconds."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str = ""
    expires_in: float = 300.0
    interval: float = 3.0

    def __repr__(self) -> str:
        """Without the code, which stands for the login until it is approved."""
        return f"Device({self.user_code!r})"

    @property
    def interval_s(self) -> float:
        """How long to wait between questions."""
        return min(MOST_INTERVAL_S, max(LEAST_INTERVAL_S, self.interval))


class _Refusal(msgspec.Struct):
    detail: str | list[object] = ""


class _Answer(NamedTuple):
    status: int
    body: bytes

    def __repr__(self) -> str:
        return f"_Answer({self.status})"


Form = TypeVar("Form")


class LoginServer:
    """Asks one server for a login."""

    def __init__(self, url: str, transport: "httpx.BaseTransport | None" = None) -> None:
        self.url = url.rstrip("/")
        self._transport = transport
        self._client_id = str(uuid4())

    def methods(self) -> tuple[Method, ...]:
        """The ways to log in that the server offers and that are known here. Raises SourceError."""
        names = self._decoded(list[str], self._ask("/auth/how"), "/auth/how")
        return tuple(_METHODS[name] for name in names if name in _METHODS)

    def by_password(self, user: str, ask_password: Callable[[], str]) -> Granted:
        """Log in with a password. Raises SourceDenied when it is wrong, SourceError otherwise."""
        path = "/auth/password/login"
        answer = self._ask(path, lambda: {"username": user, "password": ask_password()})
        if answer.status == 401:
            raise SourceDenied(f"{self.url}: no such user, or the password is wrong")
        return self._granted(answer, path)

    def begin(self) -> Device:
        """Begin a login that is approved in a browser. Raises SourceError."""
        path = "/auth/device/login"
        answer = self._ask(path, lambda: {"client_id": self._client_id, "scope": ""})
        return self._decoded(Device, answer, path)

    def approved(self, device: Device) -> Granted | None:
        """The login once it was approved, None before that. Raises SourceError when it never will be.

        A server that is asked too often says so, and `device.interval` grows.
        """
        path = "/auth/device/token"
        answer = self._ask(
            path,
            lambda: {
                "grant_type": GRANT, "device_code": device.device_code, "client_id": self._client_id
            },
        )  # fmt: skip
        if answer.status in (400, 403):
            said = self._said(answer)
            if said == SLOW_DOWN:
                device.interval = device.interval_s + SLOWER_S
            if said in (PENDING, SLOW_DOWN):
                return None
            raise SourceDenied(f"{self.url}: not logged in: {REFUSALS.get(said, said or 'refused')}")
        return self._granted(answer, path)

    def until_approved(
        self,
        device: Device,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> Granted:
        """The login when it was approved. Raises SourceError when it is not, or not in time.

        A server that does not answer for a while is asked again.
        """
        end = clock() + min(LONGEST_S, device.expires_in)
        failure: SourceUnreachable | None = None
        while clock() < end:
            sleep(device.interval_s)
            try:
                granted, failure = self.approved(device), None
            except SourceUnreachable as error:
                failure = error
                continue
            if granted is not None:
                return granted
        if failure is not None:
            raise failure
        raise SourceDenied(
            f"{self.url}: not approved within {min(LONGEST_S, device.expires_in) / 60:.0f} min: begin again"
        )

    def _granted(self, answer: _Answer, path: str) -> Granted:
        granted = self._decoded(Granted, answer, path)
        if _TOKEN.fullmatch(granted.access_token) is None:
            raise SourceUnreachable(f"{self.url}{path}: answered with a token that is none")
        return granted

    def _ask(self, path: str, form: Callable[[], dict[str, str]] | None = None) -> _Answer:
        import httpx

        failure = ""
        try:
            with httpx.Client(timeout=TIMEOUT_S, transport=self._transport) as client:
                url = f"{self.url}{path}"
                response = client.get(url) if form is None else client.post(url, data=form())
                return _Answer(response.status_code, response.content)
        except httpx.TimeoutException:
            failure = f"no answer within {TIMEOUT_S:g} s"
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            failure = mask_text(str(error) or type(error).__name__)
        # Outside, so that what was sent is no part of a traceback
        raise SourceUnreachable(f"{self.url}: {failure}")

    def _decoded(self, kind: type[Form], answer: _Answer, path: str) -> Form:
        if answer.status == 404:
            raise SourceDenied(f"{self.url}{path}: there is none (404): no Balsam server, or not offered")
        if answer.status != 200:
            said = self._said(answer)
            raise SourceUnreachable(f"{self.url}{path}: answered {answer.status}{said and f': {said}'}")
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except (msgspec.MsgspecError, RecursionError):
            raise SourceUnreachable(
                f"{self.url}{path}: answered with what is no login: is this a Balsam server?"
            ) from None

    @staticmethod
    def _said(answer: _Answer) -> str:
        try:
            detail = msgspec.json.decode(answer.body, type=_Refusal).detail
        except (msgspec.MsgspecError, RecursionError):
            return ""
        return mask_text(detail)[:200] if isinstance(detail, str) else "not understood"


def keep_login(path: str, url: str, granted: Granted, method: Method) -> None:
    """Write a login as Balsam's own client does: mode 0600, in a directory of mode 0700, whole or not at all.

    Raises SourceDenied when that cannot be done.
    """
    import yaml

    settings = {
        "api_root": url,
        "client_class": method.value,
        **_kept(path),
        "token": granted.access_token,
        "token_expiry": _expiry(granted.expiration),
    }
    directory = os.path.dirname(path) or "."
    try:
        if not os.path.isdir(directory):
            os.makedirs(directory, mode=0o700)
        _replace(path, directory, yaml.safe_dump(settings, sort_keys=False))
    except OSError as error:
        raise SourceDenied(f"{path} cannot be written: {error.strerror}") from None


def _replace(path: str, directory: str, text: str) -> None:
    """Put a file in place of another at once. `mkstemp` makes it for its owner alone."""
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


def _kept(path: str) -> dict[str, object]:
    """What of an earlier login holds on: how patient Balsam's own client is."""
    import yaml

    try:
        with open(path, encoding="utf-8") as file:
            found = yaml.safe_load(file)
    except (OSError, ValueError, yaml.YAMLError, RecursionError):
        found = None
    settings = found if isinstance(found, dict) else {}
    return {
        name: settings[name] if isinstance(settings.get(name), int | float) else DEFAULTS[name]
        for name in KEPT_KEYS
    }


def _expiry(text: str) -> object:
    """A time that YAML writes as one: UTC without a zone; None when there is none."""
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
