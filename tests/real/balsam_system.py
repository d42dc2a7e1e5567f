"""A real Balsam on this machine: PostgreSQL, Redis and the server, each a process of this test alone.

Balsam's programs run in their own environment. All is written below one directory, which must have a short
path: it holds Unix sockets.
"""

import json
import os
import pwd
import secrets
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from glob import glob
from pathlib import Path
from typing import Any

import httpx

from tests.real.live import System
from tests.real.sirepo_system import end, free_port
from tests.waiting import wait_for

SERVER = """
import sys
import balsam.server.main as main
from balsam.server.models import Job, create_tables, get_engine
import uvicorn
# One index of the schema cannot be made by create_all: it is made by hand, as a migration does
for index in [one for one in Job.__table__.indexes if one.name == "ix_jobs_tags"]:
    Job.__table__.indexes.discard(index)
create_tables()
with get_engine().begin() as connection:
    connection.exec_driver_sql(
        "CREATE INDEX IF NOT EXISTS ix_jobs_tags ON jobs USING gin (tags jsonb_path_ops)")
uvicorn.run(main.app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
"""
"""The server as it is, but for how its tables are made."""

ANALYTICS = """
import json, sys
from balsam import analytics
from balsam.api import BatchJob, EventLog
found = []
for function, query, options in json.load(sys.stdin):
    objects = BatchJob.objects if function == "available_nodes" else EventLog.objects
    try:
        x, y = getattr(analytics, function)(objects.filter(**query), **options)
        found.append({"x": [at.isoformat() for at in x], "y": list(map(float, y))})
    except Exception as error:
        found.append({"error": type(error).__name__})
json.dump(found, sys.stdout)
"""
"""Balsam's own analytics, through its own client."""

START_S = 300.0
USER, PASSWORD = "operator", "operator-" + "word"


class BalsamSystem(System):
    """A running Balsam; `venv` is where it is installed, `root` its directory."""

    def __init__(self, venv: Path, root: Path) -> None:
        self._python = venv / "bin" / "python"
        self._root = root
        self._stack = ExitStack()
        self._port, self._database_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.login = root / "login" / "client.yml"
        self.api = httpx.Client(base_url=self.url, timeout=START_S, trust_env=False)

    def start_all(self) -> None:
        self._start_database()
        self._start_redis()
        self.start_server()
        self._stack.callback(self.api.close)
        self._register()

    def stop(self) -> None:
        self._stack.close()

    def _start(self, words: Sequence[str], **options: Any) -> "subprocess.Popen[bytes]":
        with (self._root / f"{Path(words[0]).name}.log").open("ab") as log:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options)
        self._stack.callback(end, process)
        return process

    def _start_database(self) -> None:
        """PostgreSQL does not run as root: as its own user then."""
        programs = Path(sorted(glob("/usr/lib/postgresql/*/bin"))[-1])
        data = self._root / "pg"
        data.mkdir(mode=0o700)
        owner: dict[str, Any] = {}
        if os.geteuid() == 0:
            entry = pwd.getpwnam("postgres")
            os.chown(data, entry.pw_uid, entry.pw_gid)
            owner = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": (), "cwd": "/"}
        initdb = [str(programs / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8"]
        subprocess.run([*initdb, "--locale=C.UTF-8"], check=True, capture_output=True, **owner)
        options = {
            "listen_addresses": "127.0.0.1", "port": self._database_port, "fsync": "off",
            "unix_socket_directories": data,
        }  # fmt: skip
        settings = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        self._start([str(programs / "postgres"), "-D", str(data), *settings], **owner)
        where = ["-h", "127.0.0.1", "-p", str(self._database_port), "-U", "postgres"]
        ready = [str(programs / "pg_isready"), "-q", *where]
        wait_for(lambda: subprocess.run(ready, check=False).returncode == 0, timeout_s=START_S)
        subprocess.run([str(programs / "createdb"), *where, "balsam"], check=True, capture_output=True)

    def _start_redis(self) -> None:
        program = shutil.which("redis-server")
        assert program is not None
        socket = ["--port", "0", "--unixsocket", str(self._root / "redis.sock")]
        self._start([program, *socket, "--save", "", "--dir", str(self._root)])
        wait_for((self._root / "redis.sock").exists, timeout_s=START_S)

    def start_server(self, *, off_s: int = 0) -> "subprocess.Popen[bytes]":
        """Start the server, again after it was ended; its clock is off by so many seconds."""
        environment = {
            **os.environ,
            "BALSAM_DATABASE_URL": f"postgresql://postgres@127.0.0.1:{self._database_port}/balsam",
            "BALSAM_REDIS_PARAMS": json.dumps({"unix_socket_path": str(self._root / "redis.sock")}),
            "BALSAM_AUTH_SECRET_KEY": self._key,
        }
        clock = ["faketime", "-f", f"{off_s:+d}s"] if off_s else []
        words = [*clock, str(self._python), "-c", SERVER, str(self._port)]
        options: dict[str, Any] = {"env": environment, "cwd": self._root, "start_new_session": True}
        self.server = self._start(words, **options)
        wait_for(self._answers, timeout_s=START_S)
        return self.server

    _key = secrets.token_hex(16)

    def _answers(self) -> bool:
        try:
            return self.api.get("/auth/how").status_code == 200
        except httpx.HTTPError:
            return False

    def stop_server(self) -> None:
        """End the server; database and all that is in it stay."""
        end(self.server)
        wait_for(lambda: not self._answers(), timeout_s=START_S)

    def _register(self) -> None:
        self.call("POST", "/auth/password/register", json={"username": USER, "password": PASSWORD})
        answer = self.call("POST", "/auth/password/login", data={"username": USER, "password": PASSWORD})
        self.api.headers["Authorization"] = f"Bearer {answer['access_token']}"

    def call(self, method: str, path: str, **body: Any) -> Any:
        if method == "DELETE":  # the server breaks the connection after it
            body["headers"] = {"Connection": "close"}
        answer = self.api.request(method, path, **body)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text[:500]}"
        return answer.json() if answer.content else None

    def sql(self, statement: str) -> None:
        """Change the database itself, where only time would."""
        program = sorted(glob("/usr/lib/postgresql/*/bin/psql"))[-1]
        where = ["-h", "127.0.0.1", "-p", str(self._database_port), "-U", "postgres", "-d", "balsam"]
        subprocess.run([program, "-q", *where, "-c", statement], check=True, capture_output=True)

    def analytics(self, questions: Iterable[tuple[str, dict[str, Any], dict[str, Any]]]) -> list[Any]:
        """What Balsam's own analytics answer: function, filter and options of each."""
        done = subprocess.run(
            [str(self._python), "-c", ANALYTICS],
            input=json.dumps(list(questions)).encode(),
            env={**os.environ, "BALSAM_CLIENT_PATH": str(self.login)},
            stdout=subprocess.PIPE,
            check=True,
        )
        found: list[Any] = json.loads(done.stdout)
        return found
