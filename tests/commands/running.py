"""Running jobtui as a user does: the real program on captures of a real Sirepo; the contract of its JSON."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, Literal, NamedTuple, Optional

import pytest
from msgspec import Meta, convert, defstruct

from jobtui.cli import main
from jobtui.model.jobs import Category
from jobtui.model.verdicts import Code
from tests.rows import program, table
from tests.terminals import PtyProgram
from tests.waiting import LONG_S, wait_for

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "tests" / "fixtures" / "sirepo"
TRUE_CAPTURES = ("local", "docker", "sbatch", "local-debug", "docker-debug")
"""Those whose truth was noted inside the supervisor."""

ALL_CAPTURES = sorted(path.name for path in CAPTURES.iterdir() if path.is_dir())
FAILED = "DJouDZ9T-4F4EUZjI-heightWeightReport"
"""A job of `local`."""

AT = "2026-11-20T21:00:00Z"
"""Shortly after the captures were taken."""


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        assert self.out.isascii()
        document = json.loads(self.out)
        assert isinstance(document, dict)
        return document


class Runner:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Ran:
        self._capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Ran(code, *self._capsys.readouterr())

    def until(self, condition: Callable[[], object], *arguments: object) -> Ran:
        """What is said by a command that goes on until it is ended; it is, once the condition holds."""
        has_ended = threading.Event()

        def end() -> None:
            wait_for(lambda: has_ended.is_set() or condition())
            if not has_ended.is_set():
                os.kill(os.getpid(), signal.SIGTERM)

        (ending := threading.Thread(target=end)).start()
        try:
            return self(*arguments)
        finally:
            has_ended.set()
            ending.join()


def environment(**more: str) -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def jobtui(
    *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None, stdin: bytes = b""
) -> Ran:
    done = subprocess.run(
        [sys.executable, "-m", "jobtui", *map(str, arguments)],
        cwd=cwd,
        env=environment() if env is None else env,
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


IN_TURN = program("in_turn")


def in_turn(*lines: Sequence[str], before: str = "", cwd: Path = ROOT, **environ: str) -> list[Ran]:
    """What is said to each of these words, all in one process: starting one costs most of the time."""
    done = subprocess.run(
        [sys.executable, "-c", IN_TURN % before, json.dumps(lines)], cwd=cwd, env=environment(**environ),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=4 * LONG_S, check=True,
    )  # fmt: skip
    return [Ran(*json.loads(line)) for line in done.stdout.splitlines()]


def sources_of(capture: str) -> list[str]:
    """Flags that name everything of a capture: its records and the logs of server and supervisor."""
    place = CAPTURES / capture
    flags = ["--srdb", str(place)]
    for role in ("supervisor", "server"):
        if (place / f"{role}.log").exists():
            flags += ["--log", f"{role}={place / f'{role}.log'}"]
    return flags


def on_terminal(*arguments: str, **environ: str) -> bytes:
    """Output of the program on a terminal of 80 columns."""
    with PtyProgram(["-m", "jobtui", *arguments], environ=environment(**environ)) as program:
        program.wait_over()
        return program.seen


@contextmanager
def started(out: Path, *arguments: object, **environ: str) -> Iterator["subprocess.Popen[bytes]"]:
    """The program, whose output and errors go to a file; it is killed if it has not ended."""
    command = [sys.executable, "-m", "jobtui", *map(str, arguments)]
    with (
        out.open("wb") as file,
        subprocess.Popen(command, stdout=file, stderr=file, env=environment(**environ)) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def a_db(place: Path, **records: dict[str, Any]) -> Path:
    """A database root with records of these ids, which `__` stands for the dashes of."""
    directory = place / "db" / "supervisor-job"
    directory.mkdir(parents=True, exist_ok=True)
    for name, record in records.items():
        jid = name.replace("__", "-")
        (directory / f"{jid}.json").write_text(json.dumps({"computeJid": jid} | record))
    return place / "db"


def shown(number: int, directory: Path, out: str, error: str = "") -> str:
    """What scontrol shows of a job that failed there."""
    fields = {"ExitCode": "3:0", "SubmitTime": "2026-11-20T20:00:00", "StartTime": "2026-11-20T20:10:00",
              "EndTime": "2026-11-20T20:20:00", "NodeList": "n1", "WorkDir": str(directory),
              "StdErr": error or out, "StdOut": out}  # fmt: skip
    head = f"JobId={number} JobName=beam\n   UserId=jdoe(1) GroupId=jdoe(1) MCS_label=N/A\n   JobState=FAILED"
    return head + "".join(f"\n   {name}={value}" for name, value in fields.items()) + "\n"


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


TABLES = table("contract")
WHOLE: Any = Annotated[int, Meta(ge=0)]
KINDS: dict[str, Any] = {
    "text": str, "number": float, "mapping": dict, "counts": dict[str, WHOLE], "whole": WHOLE,
    "share": Annotated[float, Meta(ge=0, le=1)], "verdict": Code, "category": Category,
    "time": Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")],
}  # fmt: skip
"""A time is RFC 3339 in UTC, with `Z`."""


def kind_of(told: Any) -> Any:
    if isinstance(told, dict):
        return defstruct("Record", [(name, kind_of(one)) for name, one in told.items()])
    if isinstance(told, list):
        return GenericAlias(list, (kind_of(told[0]),))
    words = told.removesuffix("?")
    found = KINDS.get(words) or (kind_of(TABLES[words]) if words in TABLES else Literal[tuple(words.split())])
    return found if words == told else Optional[found]  # noqa: UP045 - it is no type for mypy


def check_document(document: dict[str, Any], command: str) -> None:
    """Raises msgspec.ValidationError unless all of these are in it, of these kinds; others may be."""
    names = list(document)
    assert (names[0], names[-1]) == ("schema", "sources")
    assert document["schema"] == f"jobtui/{command}/1"
    convert(document, kind_of(TABLES["commands"][command] | {"sources": ["source"]}))
