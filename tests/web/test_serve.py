"""`jobtui serve`: a dashboard in a browser, by its own names only, and nothing for anybody else."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import ClientSession, WSServerHandshakeError, web
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from jobtui.web import LARGEST, SMALLEST, bounded
from jobtui.web.server import MOST, DashboardServer, Guard
from tests.backends.journal.rigs import children_of
from tests.commands.running import environment, jobtui
from tests.offenders import each
from tests.rows import CAPTURES, program
from tests.waiting import LONG_S, has_ended, wait_until
from tests.web.serving import Screen, Served, browser, serving

CAPTURE = CAPTURES / "local"
SITE = ("--srdb", str(CAPTURE))
SHOWN = "srunit"
"""An app of its jobs."""


async def test_a_browser_has_the_dashboard_until_it_disconnects(tmp_path: Path) -> None:
    views = {"XDG_CONFIG_HOME": str(tmp_path)}
    async with serving(*SITE, cwd=tmp_path, **views) as served, browser(served) as live:
        async with live.ws_connect(f"{served.url}/ws?width=132&height=30", headers=served.origin()) as opened:
            screen = Screen(opened)
            await screen.seen(SHOWN)
            assert len(children_of(served.process.pid)) == 1
            await screen.press("?")
            await screen.seen("Open the job under the cursor")
            await screen.press("\x1b:save mine\r")
            await screen.seen("a dashboard in a browser is read-only")
            await opened.send_str(json.dumps(["resize", {"width": 10**12, "height": -3}]))
        await wait_until(lambda: not children_of(served.process.pid))
        async with live.ws_connect(f"{served.url}/ws", headers=served.origin()) as opened:
            screen = Screen(opened)
            await screen.seen(SHOWN)
            await screen.press("q")
            await screen.ended()
        for wrong in ("not json", '["resize", {"width": "x"}]'):
            async with live.ws_connect(f"{served.url}/ws", headers=served.origin()) as opened:
                await opened.send_str(wrong)
                await Screen(opened).ended()
        assert await status(live, f"{served.url}/") == 200
        await wait_until(lambda: not children_of(served.process.pid))
        assert not (tmp_path / "jobtui" / "views.json").exists()


async def test_an_address_leads_to_a_job(tmp_path: Path) -> None:
    job = "hZk95g40-4u2Pj0fB-heightWeightReport"
    async with serving(*SITE, cwd=tmp_path, PYTHONWARNINGS="token=hunter2") as served, browser() as session:
        url = f"{served.url}/job/{job}"
        assert await status(session, url) == 403
        assert await status(session, f"{url}?token={served.token}") == 303
        async with session.get(f"{url}?token={served.token}") as answer:
            assert answer.url.path == f"/job/{job}"
        async with session.get(f"{served.url}/job/token=hunter2") as answer:
            assert "<title>token=*** - jobtui</title>" in await answer.text()
        async with session.ws_connect(f"{served.url}/ws/job/{job}", headers=served.origin()) as opened:
            await Screen(opened).seen(job)
        async with session.ws_connect(f"{served.url}/ws/job/XXXX", headers=served.origin()) as opened:
            await Screen(opened).seen("'token=***'\r\njobtui: nothing is known about 'XXXX'")
        for other in ("--log=%2Fetc%2Fpasswd", "record", "a%00b"):
            with pytest.raises(WSServerHandshakeError) as caught:
                await session.ws_connect(f"{served.url}/ws/job/{other}", headers=served.origin())
            assert caught.value.status == await status(session, f"{served.url}/job/{other}") == 404


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
async def test_a_dashboard_ends_with_its_server(tmp_path: Path, number: signal.Signals) -> None:
    async with serving(*SITE, cwd=tmp_path) as served, browser(served) as session:
        opened = await session.ws_connect(f"{served.url}/ws", headers=served.origin())
        screen = Screen(opened)
        await screen.seen(SHOWN)
        (pid,) = children_of(served.process.pid)
        served.process.send_signal(number)
        if number == signal.SIGINT:
            await screen.ended()
        await served.process.wait()
        await wait_until(lambda: has_ended(pid))


async def status(session: ClientSession, url: str, **headers: str) -> int:
    async with session.get(url, headers=headers, allow_redirects=False) as answer:
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        return answer.status


async def refused(session: ClientSession, served: Served, **headers: str) -> int:
    """What the server says to a WebSocket that it does not open."""
    with pytest.raises(WSServerHandshakeError) as caught:
        async with session.ws_connect(f"{served.url}/ws", headers=headers):
            pass
    return caught.value.status


async def test_other_users_see_nothing(tmp_path: Path) -> None:
    async with serving(*SITE, cwd=tmp_path) as served:
        async with browser() as stranger:
            for path in ("", "?token=wrong", "?token=%C3%A4", "static/js/textual.js"):
                assert await status(stranger, f"{served.url}/{path}") == 403
            assert await refused(stranger, served, Origin=served.url) == 403
        # A page of another site, in the browser that has the cookie; one of another server on this machine,
        # to which the cookie is of the same site; a name that was made to point here
        rebound = f"evil.example:{served.host.rpartition(':')[2]}"
        foreign = [{"Origin": one} for one in ("http://evil.example", "null", "http://127.0.0.1:1")]
        async with browser(served) as session:
            assert await status(session, f"{served.url}/") == 200
            for headers in (*foreign, {}, {"Host": rebound, "Origin": f"http://{rebound}"}):
                assert await refused(session, served, **headers) == 403
            assert await status(session, f"{served.url}/?token={served.token}", Host=rebound) == 403
        assert not children_of(served.process.pid)


async def test_the_number_of_dashboards_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = DashboardServer(lambda job: ("true",), listener)
        monkeypatch.setattr(server, "_open", set(range(MOST)))
        request = make_mocked_request("GET", "/ws", headers={"Origin": "http://127.0.0.1"})
        with pytest.raises(web.HTTPServiceUnavailable, match="Service Unavailable"):
            await server.handle_websocket(request)


def test_serve_says_where_it_cannot_listen() -> None:
    ran = jobtui("serve", "--listen", "127.0.0.1:99999", "demo")
    assert (ran.code, "cannot listen at 127.0.0.1:99999" in ran.err) == (2, True)


async def test_other_machines_are_warned_of(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "jobtui", "serve", "--listen", "0.0.0.0:0", "--", "demo"]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, cwd=tmp_path, env=environment(), stdout=pipe, stderr=pipe
    )
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), LONG_S)
    assert b"://0.0.0.0" not in line
    process.terminate()
    _, err = await asyncio.wait_for(process.communicate(), LONG_S)
    assert err.count(b"\n") == 1
    assert b"0.0.0.0 can be reached from other machines" in err


ENDED_EARLY = program("ended_early")
"""A server that is to end when it has made its first task and not begun it."""


def test_a_server_ended_at_its_start_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ENDED_EARLY]
    ran = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, timeout=LONG_S)
    assert (ran.stderr, ran.stdout.count(b"\n")) == (b"", 1)


OURS = ("127.0.0.1:8417", "127.0.0.1", "[::1]:8417", "localhost:9000", "LocalHost", "10.1.2.3:8417")
FOREIGN = (
    "evil.example:8417", "localhost.evil.example:8417", "127.0.0.1.evil.example", "[x]:1", "",
    "evil.example#127.0.0.1", "user@evil.example", "[::1",
)  # fmt: skip


@each(*OURS, *FOREIGN)
def test_foreign_names_are_not_ours(host: str) -> None:
    assert Guard({"localhost", "v3.example.org"}, 8417).is_ours(host) is (host in OURS)


@given(st.text(max_size=30))
def test_any_host_is_ours_or_not(host: str) -> None:
    assert Guard({"localhost"}, 8417).is_ours(host) in (True, False)


def test_two_servers_have_two_tokens() -> None:
    assert Guard((), 1).token != Guard((), 1).token


@given(st.integers(), st.integers())
def test_any_size_becomes_one_that_a_screen_can_have(columns: int, lines: int) -> None:
    for least, got, most in zip(SMALLEST, bounded(columns, lines), LARGEST, strict=True):
        assert least <= got <= most
