"""Logins for servers of traces are in no bundle and in no recording, however it is packed."""

import signal
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tests.commands.running import AT, Runner, environment, sources_of
from tests.jaeger_server import Jaeger
from tests.trace_servers import Site, Spans, served
from tests.waiting import wait_for

SECRET = "s3cr3t-t0k3n-of-an-operator"
JID = "DJouDZ9T-1O1o56MF-activityAnimation"
SERVERS = ("[servers.\"{url}\"]\nbearer = \"{secret}\"\nheaders = {{ X-Key = \"{secret}\" }}\n")  # fmt: skip


def contents(path: Path) -> Iterator[bytes]:
    """A file as it is, and every value of a database, unpacked where it is packed."""
    yield path.read_bytes()
    with closing(sqlite3.connect(path)) as db:
        tables = [name for (name,) in db.execute("select name from sqlite_master where type = 'table'")]
        for table in tables:
            for row in db.execute(f'select * from "{table}"'):
                yield from map(_unpacked, row)


def _unpacked(value: object) -> bytes:
    raw = value if isinstance(value, bytes) else str(value).encode()
    try:
        return zlib.decompress(raw)
    except zlib.error:
        return raw


def test_a_bundle_holds_none(run: Runner, tmp_path: Path) -> None:
    config, file = tmp_path / "config.toml", tmp_path / "one.jobtui"
    site = Site(Jaeger(Spans()))
    site.login = f"Bearer {SECRET}"
    with served(site) as url:
        config.write_text(SERVERS.format(url=url, secret=SECRET))
        flags = ["--jaeger", url, "--config", config, "--at", AT, *sources_of("local")]
        assert run("bundle", JID, "-o", file, *flags).code == 0
    held = list(contents(file))
    assert any(url.encode() in one for one in held)
    assert not [one for one in held if SECRET.encode() in one]
    assert run("replay", file, "show", JID, "--json").code == 0


def test_a_recording_holds_none(tmp_path: Path) -> None:
    site = Site(Jaeger(Spans()))
    with served(site) as url:
        words = ["record", str(tmp_path / "kept"), "--jaeger", url, *map(str, sources_of("local"))]
        environ = environment(JOBTUI_JAEGER_BEARER=SECRET)
        program = subprocess.Popen(
            [sys.executable, "-m", "jobtui", *words], env=environ, stderr=subprocess.PIPE
        )
        wait_for(lambda: site.requests)
        program.send_signal(signal.SIGINT)
        assert program.stderr is not None
        told = program.stderr.read()
        program.stderr.close()
        assert program.wait() == 0
    assert SECRET.encode() not in told
    files = [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files for one in contents(path) if SECRET.encode() in one]
