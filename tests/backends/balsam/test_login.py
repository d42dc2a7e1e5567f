"""Logging in to a Balsam server: both ways, what may go wrong, and how the login is kept."""

import json
import os
import stat
import traceback
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import yaml

from jobtui.backends.balsam import login as logins
from jobtui.backends.balsam.login import (
    GrantedLogin,
    Login,
    LoginServer,
    Method,
    keep_login,
    notice,
    read_login,
)
from jobtui.backends.balsam.source import open_source
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.specs import ReadWindow, parse_balsam
from jobtui.transport.http import HttpClient
from tests import balsam_server
from tests.balsam_server import FOLDER, TOKEN, DeviceLogin, Record, RecordedBalsam, nanos, write_login
from tests.loopback import Answering, carried
from tests.offenders import each
from tests.rows import ROWS, table

URL = "http://balsam.test"
PASSWORD = "right-password"
WRONG = "wrong-" + "word"


class AnsweredLogin(LoginServer):
    """One whose requests are answered in this process."""

    def __init__(self, answer: Answering) -> None:
        super().__init__(URL)
        self._answer = answer

    def _client(self) -> HttpClient:
        return carried(super()._client(), self._answer)


def test_a_password_logs_in_and_a_wrong_one_is_not_shown() -> None:
    server = AnsweredLogin(RecordedBalsam().answer)
    assert server.methods() == (Method.PASSWORD,)
    assert server.by_password("operator", lambda: PASSWORD).access_token == TOKEN
    with pytest.raises(SourceDenied, match="no such user, or the password is wrong") as caught:
        server.by_password("operator", lambda: WRONG)
    assert WRONG not in "".join(traceback.format_exception(caught.value))


@each(
    httpx.Response(200, json={"access_token": "two words"}),
    httpx.Response(200, json={"access_token": "a\nb"}),
    httpx.Response(200, json={"access_token": 7}),
    httpx.Response(422, json={"detail": [{"loc": ["body"]}]}),
)
def test_odd_answers_are_one_line_without_what_was_sent(answer: httpx.Response) -> None:
    server = AnsweredLogin(lambda _: answer)
    with pytest.raises(SourceError) as caught:
        server.by_password("operator", lambda: PASSWORD)
    assert "\n" not in str(caught.value)
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))


def mode_of(path: Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def test_a_login_is_kept_as_balsam_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / ".balsam" / "client.yml"
    old = os.umask(0)
    try:
        keep_login(str(path), URL, GrantedLogin(TOKEN, "2026-11-22T19:31:25.715129"), Method.PASSWORD)
    finally:
        os.umask(old)
    assert (mode_of(path), mode_of(path.parent)) == (0o600, 0o700)
    assert [*path.parent.iterdir()] == [path]
    login = read_login(str(path))
    assert (login.api_root, login.token) == (URL, TOKEN)
    assert login.expires_at == nanos("2026-11-22T19:31:25")
    kind = "balsam.client.requests_password.BasicAuthRequestsClient"
    assert yaml.safe_load(path.read_text())["client_class"] == kind
    assert "token_expiry: 2026-11-22 19:31:25.715129\n" in path.read_text()


def test_a_login_keeps_the_timeouts_of_balsam(tmp_path: Path) -> None:
    path = write_login(tmp_path / "client.yml", URL, "old")
    path.write_text(path.read_text().replace("retry_count: 10", "retry_count: 3"))
    keep_login(str(path), URL, GrantedLogin(TOKEN), Method.DEVICE)
    kept = yaml.safe_load(path.read_text())
    assert (kept["retry_count"], kept["read_timeout"]) == (3, 120.0)
    assert kept["token_expiry"] is None
    assert mode_of(path) == 0o600


def test_a_login_that_cannot_be_kept_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "file" / "client.yml"
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceDenied, match="cannot be written") as caught:
        keep_login(str(path), URL, GrantedLogin(TOKEN), Method.PASSWORD)
    assert TOKEN not in "".join(traceback.format_exception(caught.value))


class Attempt:
    """A login that was begun, and seconds that go on only while it sleeps."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept: list[float] = []
        self.balsam = RecordedBalsam()
        self.balsam.methods = ["LoginMethod.oauth_device"]
        self.device: DeviceLogin = self.balsam.device
        self.device.clock = self.clock
        self.server = AnsweredLogin(self.balsam.answer)
        assert self.server.methods() == (Method.DEVICE,)
        self.begun: logins.Device = self.server.begin()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds

    def clock(self) -> float:
        return self.now_s

    def wait(self) -> str:
        return self.server.until_approved(self.begun, self.sleep, self.clock).access_token


@pytest.fixture
def attempt() -> Attempt:
    return Attempt()


def test_the_stand_in_answers_as_the_recorded_server() -> None:
    exchanges = json.loads((FOLDER / "auth_device_flow.json").read_text())["exchanges"]
    login = DeviceLogin(TOKEN)
    code, checked = "", 0
    for one in exchanges:
        asked, answered = one["request"], one["response"]
        if not asked["target"].startswith("/auth/device/"):
            continue
        if one["name"] == "poll: approved":
            login.approve()
        form = asked["body"].replace("<DEVICE_CODE>", code)
        headers = {"content-type": asked["content_type"]}
        request = httpx.Request("POST", URL + asked["target"], content=form, headers=headers)
        given = (login.begin if asked["target"].endswith("login") else login.token)(request)
        said: Record = given.json()
        assert given.status_code == answered["status"], one["name"]
        assert said.keys() == answered["body"].keys(), one["name"]
        assert said.get("detail") == answered["body"].get("detail"), one["name"]
        code = said.get("device_code", code)
        checked += 1
    assert checked >= 8


def break_off(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused")


def test_a_login_that_is_approved_after_a_while_and_faults(attempt: Attempt) -> None:
    attempt.balsam.faults = [break_off, lambda _: httpx.Response(500, content=b"Internal Server Error")]
    attempt.device.pending = [(400, {"detail": "authorization_pending"})] * 4
    attempt.device.approve()
    assert (attempt.begun.user_code, attempt.wait()) == (balsam_server.USER_CODE, TOKEN)
    assert attempt.slept == [balsam_server.INTERVAL_S] * 7
    assert "code of" not in repr(attempt.begun)


@pytest.mark.parametrize(
    ("happens", "kind", "says"),
    [
        (lambda on: (on.device.approve(), on.wait()), SourceDenied, "no longer knows this attempt: start"),
        (lambda on: on.device.deny(), SourceDenied, "not logged in: it was denied"),
        (lambda on: on.sleep(balsam_server.EXPIRES_S + 1), SourceDenied, "it took too long: start again"),
        (lambda on: None, SourceDenied, "not approved within 5 min: start again"),
        (lambda on: on.balsam.faults.extend([break_off] * 1_000), SourceUnreachable, "refused"),
    ],
)
def test_a_login_that_is_not_approved_says_why(
    happens: Callable[[Attempt], object], kind: type[SourceError], says: str, attempt: Attempt
) -> None:
    happens(attempt)
    with pytest.raises(kind, match=says):
        attempt.wait()
    assert attempt.now_s <= 2 * balsam_server.EXPIRES_S


@pytest.mark.parametrize(("expires_in", "interval"), [(1e12, 3.0), (0.0, 3.0), (300.0, 1e9)])
def test_odd_times_of_a_server_are_bounded(expires_in: float, interval: float, attempt: Attempt) -> None:
    attempt.begun.expires_in, attempt.begun.interval = expires_in, interval
    with pytest.raises(SourceDenied):
        attempt.wait()
    assert attempt.now_s <= min(expires_in, logins.LONGEST_S) + 60
    assert all(1.0 <= seconds <= 60.0 for seconds in attempt.slept)


@pytest.mark.parametrize(("status", "body", "says"), ROWS["refusals of a login"])
def test_other_refusals_are_one_line(status: int, body: Record, says: str, attempt: Attempt) -> None:
    attempt.device.pending = [(status, body)] * 1_000
    with pytest.raises(SourceError, match=says) as caught:
        attempt.wait()
    assert "\n" not in str(caught.value)
    assert "code of" not in str(caught.value)


SECRET = "eyJhbGciOi.c2VjcmV0LXRva2Vu.very-secret"
KEPT_URL = "https://balsam.example.org"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".balsam" / "client.yml"


LOGINS = table("balsam/logins")


@pytest.mark.parametrize(("written", "expiry"), LOGINS["expiry"].items())
def test_every_form_of_an_expiry(path: Path, written: str, expiry: str) -> None:
    login = read_login(str(write_login(path, KEPT_URL, SECRET, written)))
    assert login.expires_at == (nanos(expiry) if expiry else None)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666, 0o644])
def test_a_login_that_others_may_read_is_refused_with_what_to_do(path: Path, mode: int) -> None:
    write_login(path, KEPT_URL, SECRET, mode=mode)
    with pytest.raises(SourceDenied, match=f"chmod 600 {path}"):
        read_login(str(path))


def test_a_login_that_is_missing_or_not_a_file_is_reported(path: Path) -> None:
    path.parent.mkdir()
    os.mkfifo(path, 0o600)
    with pytest.raises(SourceDenied, match="it is a pipe"):
        read_login(str(path))
    path.unlink()
    path.mkdir()
    with pytest.raises(SourceDenied):
        read_login(str(path))
    path.rmdir()
    with pytest.raises(SourceMissing, match="jobtui login balsam"):
        read_login(str(path))


ODD = {**LOGINS["none"], "deep": "token: " + "[" * 1_500 + SECRET, "bytes": "token: \udcff\x00"}


@pytest.mark.parametrize("text", ODD.values(), ids=list(ODD))
def test_a_file_that_is_not_a_login_is_one_line_without_its_content(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    path.chmod(0o600)
    with pytest.raises(SourceDenied) as caught:
        read_login(str(path))
    shown = "".join(traceback.format_exception(caught.value))
    assert SECRET not in shown
    assert "\n" not in str(caught.value)
    assert "jobtui login balsam" in str(caught.value)


@each(Login(KEPT_URL, SECRET, None, "/x"), GrantedLogin(SECRET))
def test_a_login_is_not_shown(login: object) -> None:
    assert SECRET not in f"{login} {login!r} {[login]} {{'a': {login}}}"


def test_the_end_of_a_login_is_announced() -> None:
    now = nanos("2026-11-20T19:30:00")

    def said(left_s: float) -> str | None:
        return notice(Login(KEPT_URL, SECRET, Nanos(now + int(left_s * SECOND)), "/x"), now)

    assert said(logins.EXPIRY_NOTICE_S + 1) is None
    assert "expires in 90 min" in (said(5_400) or "")
    assert "has expired" in (said(0) or "")
    assert "has expired" in (said(-9e6) or "")
    assert notice(Login(KEPT_URL, SECRET, None, "/x"), now) is None


@each(*LOGINS["user"].items())
def test_user_of_tells_whose_login_it_is(token: str, user: str) -> None:
    assert logins.user_of(Login(KEPT_URL, token, None, "/x")) == user


async def test_a_login_for_another_server_is_not_sent(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BALSAM_CLIENT_PATH", str(write_login(path, KEPT_URL, SECRET)))
    source = open_source(parse_balsam("http://127.0.0.1:9"), ReadWindow())
    with pytest.raises(SourceDenied, match=r"for https://balsam\.example\.org"):
        await source.poll(None)
    await source.aclose()
