"""Logging in to a Balsam server: both ways, what may go wrong, and how the login is kept."""

import os
import stat
import traceback
from pathlib import Path

import httpx
import pytest
import yaml

from jobtui.backends.balsam.credentials import read_login
from jobtui.backends.balsam.login import Granted, LoginServer, Method, keep_login
from jobtui.backends.base import SourceDenied, SourceError, SourceUnreachable
from tests.analysis.balsam_data import nanos
from tests.balsam_http import write_login
from tests.balsam_server import TOKEN, RecordedBalsam

URL = "http://balsam.test"
PASSWORD = "right-password"
WRONG = "wrong-" + "word"


@pytest.fixture
def balsam() -> RecordedBalsam:
    return RecordedBalsam()


@pytest.fixture
def server(balsam: RecordedBalsam) -> LoginServer:
    return LoginServer(URL, balsam.transport)


def test_by_password(server: LoginServer) -> None:
    assert server.methods() == (Method.PASSWORD,)
    assert server.by_password("operator", lambda: PASSWORD).access_token == TOKEN


def test_a_wrong_password_is_said_without_it(server: LoginServer) -> None:
    with pytest.raises(SourceDenied, match="no such user, or the password is wrong") as caught:
        server.by_password("operator", lambda: WRONG)
    assert WRONG not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, content=b"<html>"),
        httpx.Response(200, content=b"[" * 50_000),
        httpx.Response(200, json={"access_token": "two words"}),
        httpx.Response(200, json={"access_token": "a\nb"}),
        httpx.Response(200, json={"access_token": 7}),
        httpx.Response(500, content=b"Internal Server Error"),
        httpx.Response(302, headers={"location": "http://elsewhere/"}),
        httpx.Response(404, json={"detail": "Not Found"}),
        httpx.Response(422, json={"detail": [{"loc": ["body"]}]}),
    ],
)
def test_odd_answers_are_one_line_without_what_was_sent(answer: httpx.Response) -> None:
    server = LoginServer(URL, httpx.MockTransport(lambda _: answer))
    with pytest.raises(SourceError) as caught:
        server.by_password("operator", lambda: PASSWORD)
    assert "\n" not in str(caught.value)
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))


def test_a_server_that_breaks_off() -> None:
    def fail(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadError(f"broke off after {request.content.decode()}")

    with pytest.raises(SourceUnreachable) as caught:
        LoginServer(URL, httpx.MockTransport(fail)).by_password("operator", lambda: PASSWORD)
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))


def mode_of(path: Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def test_it_is_kept_as_balsam_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / ".balsam" / "client.yml"
    old = os.umask(0)
    try:
        keep_login(str(path), URL, Granted(TOKEN, "2026-11-22T19:31:25.715129"), Method.PASSWORD)
    finally:
        os.umask(old)
    assert (mode_of(path), mode_of(path.parent)) == (0o600, 0o700)
    assert [*path.parent.iterdir()] == [path]
    login = read_login(str(path))
    assert (login.api_root, login.token) == (URL, TOKEN)
    assert login.expires_at == nanos("2026-11-22T19:31:25")
    assert yaml.safe_load(path.read_text())["client_class"] == (
        "balsam.client.requests_password.BasicAuthRequestsClient"
    )
    assert "token_expiry: 2026-11-22 19:31:25.715129\n" in path.read_text()


def test_how_patient_balsams_client_is_stays(tmp_path: Path) -> None:
    path = write_login(tmp_path / "client.yml", URL, "old")
    path.write_text(path.read_text().replace("retry_count: 10", "retry_count: 3"))
    keep_login(str(path), URL, Granted(TOKEN), Method.DEVICE)
    kept = yaml.safe_load(path.read_text())
    assert (kept["retry_count"], kept["read_timeout"]) == (3, 120.0)
    assert kept["token_expiry"] is None
    assert mode_of(path) == 0o600


def test_one_that_cannot_be_kept_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file" / "client.yml"
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceDenied, match="cannot be written") as caught:
        keep_login(str(path), URL, Granted(TOKEN), Method.PASSWORD)
    assert TOKEN not in "".join(traceback.format_exception(caught.value))


def test_a_login_is_not_shown() -> None:
    assert TOKEN not in f"{Granted(TOKEN)!r}{[Granted(TOKEN)]}"
