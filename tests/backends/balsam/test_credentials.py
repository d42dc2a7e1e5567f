"""The login that Balsam's client keeps: when it is taken, what is said of it, and that it is never shown."""

import os
import traceback
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobtui.backends.balsam.credentials import (
    EXPIRY_NOTICE_S,
    Login,
    login_path,
    notice,
    read_login,
)
from jobtui.backends.balsam.opening import open_balsam, user_of
from jobtui.backends.base import SourceDenied, SourceError, SourceMissing
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.specs import parse_balsam
from tests.analysis.balsam_data import nanos
from tests.balsam_http import write_login

SECRET = "eyJhbGciOi.c2VjcmV0LXRva2Vu.very-secret"
URL = "https://balsam.example.org"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".balsam" / "client.yml"


def test_it_is_where_balsam_looks() -> None:
    assert login_path({}, "/home/ann") == "/home/ann/.balsam/client.yml"
    assert login_path({"BALSAM_CLIENT_PATH": "/else/where.yml"}, "/home/ann") == "/else/where.yml"
    assert login_path({"BALSAM_CLIENT_PATH": ""}, "/home/ann") == "/home/ann/.balsam/client.yml"


def test_a_login_is_read_as_balsam_writes_it(path: Path) -> None:
    login = read_login(str(write_login(path, URL, SECRET, "2026-11-22 19:31:57.715415")))
    assert (login.api_root, login.token) == (URL, SECRET)
    assert login.expires_at == nanos("2026-11-22T19:31:57")


@pytest.mark.parametrize(
    ("written", "expiry"),
    [
        ("2026-11-22 19:31:57", "2026-11-22T19:31:57"),
        ("2026-11-22T19:31:57Z", "2026-11-22T19:31:57"),
        ("2026-11-22T21:31:57+02:00", "2026-11-22T19:31:57"),
        ("'2026-11-22 19:31:57'", "2026-11-22T19:31:57"),
        ("2026-11-22", "2026-11-22T00:00:00"),
        ("null", None),
        ("", None),
        ("soon", None),
        ("[1]", None),
        ("0001-01-01 00:00:00", "0001-01-01T00:00:00"),
    ],
)
def test_every_form_of_an_expiry(path: Path, written: str, expiry: str | None) -> None:
    login = read_login(str(write_login(path, URL, SECRET, written)))
    assert login.expires_at == (None if expiry is None else nanos(expiry))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666, 0o644])
def test_one_that_others_may_read_is_refused_with_what_to_do(path: Path, mode: int) -> None:
    write_login(path, URL, SECRET, mode=mode)
    with pytest.raises(SourceDenied, match=f"chmod 600 {path}"):
        read_login(str(path))


def test_what_is_no_file_does_not_hang(path: Path) -> None:
    path.parent.mkdir()
    os.mkfifo(path, 0o600)
    with pytest.raises(SourceDenied, match="is no file"):
        read_login(str(path))
    path.unlink()
    path.mkdir()
    with pytest.raises(SourceDenied):
        read_login(str(path))


def test_one_that_is_not_there(path: Path) -> None:
    with pytest.raises(SourceMissing, match="jobtui login balsam"):
        read_login(str(path))


ODD = {
    "no yaml": f"token: {SECRET}\n  - [",
    "a list": f"- {SECRET}",
    "text": SECRET,
    "empty": "",
    "no token": f"api_root: {URL}",
    "a number": "token: 12",
    "an object": f"token: !!python/object/apply:os.system ['echo {SECRET}']",
    "deep": "token: " + "[" * 5_000 + SECRET,
    "bytes": "token: \udcff\x00",
    "blank in it": f'token: "{SECRET} x"',
    "line in it": f'token: "{SECRET}\\r\\nX-Evil: 1"',
    "a date that is none": f"token: {SECRET}\ntoken_expiry: 2026-13-45 99:99:99",
    "a key that is no key": f"token: {SECRET}\n? [a, b]\n: 1",
}


@pytest.mark.parametrize("text", ODD.values(), ids=list(ODD))
def test_a_file_that_is_none_is_one_line_without_its_content(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    path.chmod(0o600)
    with pytest.raises(SourceDenied) as caught:
        read_login(str(path))
    shown = "".join(traceback.format_exception(caught.value))
    assert SECRET not in shown
    assert "\n" not in str(caught.value)
    assert "jobtui login balsam" in str(caught.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: raw.decode("latin-1")))
def test_no_file_raises_anything_else(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("login") / "client.yml"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    path.chmod(0o600)
    try:
        read_login(str(path))
    except SourceError:
        return
    assert isinstance(yaml.safe_load(text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")), dict)


def test_a_login_is_not_shown() -> None:
    login = Login(URL, SECRET, None, "/x")
    assert SECRET not in f"{login} {login!r} {[login]} {{'a': {login}}}"


def test_its_end_is_told_ahead_of_time() -> None:
    now = nanos("2026-11-20T19:30:00")

    def said(left_s: float) -> str | None:
        return notice(Login(URL, SECRET, Nanos(now + int(left_s * SECOND)), "/x"), now)

    assert said(EXPIRY_NOTICE_S + 1) is None
    assert "expires in 90 min" in (said(5_400) or "")
    assert "has expired" in (said(0) or "")
    assert "has expired" in (said(-9e6) or "")
    assert notice(Login(URL, SECRET, None, "/x"), now) is None


@pytest.mark.parametrize(
    ("token", "user"),
    [
        ("a.eyJ1c2VybmFtZSI6ICJhbm4iLCAic3ViIjogMX0.c", "ann"),
        ("a.eyJ1c2VybmFtZSI6IDd9.c", ""),
        ("a.W10.c", ""),
        ("a.!!!.c", ""),
        ("a.\x00.c", ""),
        ("a.eyJ", ""),
        ("", ""),
    ],
)
def test_whose_login_it_is(token: str, user: str) -> None:
    assert user_of(Login(URL, token, None, "/x")) == user


async def test_a_login_for_another_server_is_not_sent(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token must not go to whoever is named on a command line."""
    monkeypatch.setenv("BALSAM_CLIENT_PATH", str(write_login(path, URL, SECRET)))
    source = open_balsam(parse_balsam("http://127.0.0.1:9"), None)
    with pytest.raises(SourceDenied, match=r"for https://balsam\.example\.org"):
        await source.poll(None)
    await source.aclose()
