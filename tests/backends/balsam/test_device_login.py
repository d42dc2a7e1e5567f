"""Logging in to a Balsam server in a browser: against a server as strict as the real one."""

import json

import httpx
import pytest

from jobtui.backends.balsam.login import LONGEST_S, Device, LoginServer, Method
from jobtui.backends.base import SourceDenied, SourceError, SourceUnreachable
from tests.balsam_device import EXPIRES_S, INTERVAL_S, USER_CODE, DeviceLogin
from tests.balsam_server import FOLDER, TOKEN, Record, RecordedBalsam

URL = "http://balsam.test"


class Time:
    """Seconds that go on only while somebody sleeps; `then` is what happens at some of them."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds

    def clock(self) -> float:
        return self.now_s


class Attempt:
    """A login that was begun."""

    def __init__(self) -> None:
        self.balsam, self.time = RecordedBalsam(), Time()
        self.balsam.methods = ["LoginMethod.oauth_device"]
        self.device: DeviceLogin = self.balsam.device
        self.device.clock = self.time.clock
        self.server = LoginServer(URL, self.balsam.transport)
        assert self.server.methods() == (Method.DEVICE,)
        self.begun: Device = self.server.begin()

    def wait(self) -> str:
        return self.server.until_approved(self.begun, self.time.sleep, self.time.clock).access_token


@pytest.fixture
def attempt() -> Attempt:
    return Attempt()


def test_the_stand_in_answers_as_the_recorded_server() -> None:
    """Each exchange that was recorded, once more: the same status, the same words."""
    exchanges = json.loads((FOLDER / "auth_device_flow.json").read_text())["exchanges"]
    login = DeviceLogin(TOKEN)
    login.interval_s = 0.0
    code, checked = "", 0
    for one in exchanges:
        asked, answered = one["request"], one["response"]
        if not asked["target"].startswith("/auth/device/"):
            continue
        if one["name"] == "poll: approved":
            login.approve()
        form = asked["body"].replace("<DEVICE_CODE>", code)
        request = httpx.Request(
            "POST", URL + asked["target"], content=form, headers={"content-type": asked["content_type"]}
        )
        given = (login.begin if asked["target"].endswith("login") else login.token)(request)
        said: Record = given.json()
        assert given.status_code == answered["status"], one["name"]
        assert said.keys() == answered["body"].keys(), one["name"]
        assert said.get("detail") == answered["body"].get("detail"), one["name"]
        code = said.get("device_code", code)
        checked += 1
    assert checked >= 8


def test_one_that_is_approved_after_a_while(attempt: Attempt) -> None:
    attempt.device.pending = [(400, {"detail": "authorization_pending"})] * 4
    attempt.device.approve()
    assert attempt.begun.user_code == USER_CODE
    assert attempt.wait() == TOKEN
    assert attempt.time.slept == [INTERVAL_S] * 5
    assert "code of" not in repr(attempt.begun)


def test_a_code_is_good_for_one_login(attempt: Attempt) -> None:
    attempt.device.approve()
    attempt.wait()
    with pytest.raises(SourceDenied, match="knows no such attempt any more: begin again"):
        attempt.wait()


def test_who_is_told_to_slow_down_does(attempt: Attempt) -> None:
    """The server wants longer pauses than it said at first."""
    attempt.device.interval_s = 12.0
    attempt.device.approve()
    attempt.device.pending = [(400, {"detail": "authorization_pending"})]
    assert attempt.wait() == TOKEN
    assert attempt.time.slept == [3.0, 3.0, 8.0, 13.0]  # pending, too early, too early, late enough


def test_one_that_is_denied(attempt: Attempt) -> None:
    attempt.device.deny()
    with pytest.raises(SourceDenied, match="not logged in: it was denied"):
        attempt.wait()


def test_one_that_the_server_says_has_expired(attempt: Attempt) -> None:
    attempt.time.now_s = EXPIRES_S + 1
    with pytest.raises(SourceDenied, match="it took too long: begin again"):
        attempt.wait()


def test_one_that_nobody_approves_ends(attempt: Attempt) -> None:
    with pytest.raises(SourceDenied, match="not approved within 5 min: begin again"):
        attempt.wait()
    assert EXPIRES_S <= attempt.time.now_s <= EXPIRES_S + INTERVAL_S


def test_a_server_that_is_away_for_a_while_is_asked_again(attempt: Attempt) -> None:
    def break_off(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    attempt.balsam.faults = [break_off, lambda _: httpx.Response(500, content=b"Internal Server Error")]
    attempt.device.approve()
    assert attempt.wait() == TOKEN
    assert len(attempt.time.slept) == 3


def test_a_server_that_stays_away_is_told(attempt: Attempt) -> None:
    def break_off(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    attempt.balsam.faults = [break_off] * 1_000
    with pytest.raises(SourceUnreachable, match="refused"):
        attempt.wait()


@pytest.mark.parametrize(
    ("expires_in", "interval", "longest_s"), [(1e12, 3.0, LONGEST_S), (0.0, 3.0, 0.0), (300.0, 1e9, 300.0)]
)
def test_odd_times_of_a_server_are_bounded(
    expires_in: float, interval: float, longest_s: float, attempt: Attempt
) -> None:
    attempt.begun.expires_in, attempt.begun.interval = expires_in, interval
    with pytest.raises(SourceDenied):
        attempt.wait()
    assert attempt.time.now_s <= longest_s + 60
    assert all(1.0 <= seconds <= 60.0 for seconds in attempt.time.slept)


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (400, {"detail": "unsupported_grant_type"}, "unsupported_grant_type"),
        (400, {"detail": [1]}, "not understood"),
        (400, {}, "refused"),
        (422, {"detail": [{"loc": ["body"]}]}, "answered 422"),
        (404, {"detail": "Not Found"}, "not offered"),
    ],
)
def test_other_refusals_are_told_in_one_line(status: int, body: Record, says: str, attempt: Attempt) -> None:
    attempt.device.pending = [(status, body)] * 1_000
    with pytest.raises(SourceError, match=says) as caught:
        attempt.wait()
    assert "\n" not in str(caught.value)
    assert "code of" not in str(caught.value)
