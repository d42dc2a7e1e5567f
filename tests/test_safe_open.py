"""What others wrote is opened in one way: no pipe or device is waited for, nothing is read without end."""

import ast
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from jobtui.commands.streams import Exit
from jobtui.transport import files
from jobtui.transport.files import read_given, read_small
from tests.commands.running import in_turn
from tests.modules import nodes
from tests.rows import CAPTURES, ROWS, table
from tests.waiting import LONG_S

FIXTURES = CAPTURES / "local"
ALLOWED: dict[str, str] = table("layers")["open_files"]
OPENERS = frozenset({"os", "io", "gzip", "bz2", "lzma"})
DEMO = "demo/"
"""The simulated systems write what jobtui reads."""


def is_opening(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="open") | ast.Attribute(attr="read_text" | "read_bytes")):
            return True
        case ast.Call(func=ast.Attribute(attr="open", value=ast.Name(id=name))) if name in OPENERS:
            return True
        case ast.Call(func=ast.Attribute(attr="open"), args=[ast.Constant(), *_]):  # Path.open with a mode
            return True
    return False


def test_no_module_opens_files_in_a_way_of_its_own() -> None:
    found = {name for name, node in nodes("open", "read_text", "read_bytes") if is_opening(node)}
    names = {name for name in found if not name.startswith(DEMO)}
    assert names - ALLOWED.keys() == set(), "read with transport.files.read_small or open_regular"
    assert ALLOWED.keys() - names == {"transport/files.py"} - names, "these no longer open files"


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(path.parent, os.O_RDONLY)
        try:  # the path of a socket has room for a hundred characters
            server.bind(f"/proc/self/fd/{here}/{path.name}")
        finally:
            os.close(here)


ODD: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a socket": a_socket,
    "an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a directory": Path.mkdir,
    "a terminal": lambda path: path.symlink_to("/dev/tty"),
}


@pytest.mark.parametrize("kind", ODD)
def test_a_path_that_is_not_a_regular_file_is_refused_with_its_kind(tmp_path: Path, kind: str) -> None:
    ODD[kind](odd := tmp_path / "odd")
    with pytest.raises(OSError, match=r"it is a (pipe|socket|device|directory); name a regular file"):
        read_small(odd, 10)


def test_a_file_is_read_to_its_bound_and_the_null_device_as_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 1000)
    assert read_small(tmp_path / "large", 10) == b"x" * 10
    assert read_small("/dev/null", 10) == b""


def written(pipe: Path, content: bytes) -> threading.Thread:
    thread = threading.Thread(target=pipe.write_bytes, args=(content,), daemon=True)
    thread.start()
    return thread


def test_a_pipe_that_a_user_named_is_read_once_and_to_its_bound(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    writing = written(pipe, b"x = 1\n" * 100_000)
    assert read_given(pipe, 1 << 20) == b"x = 1\n" * 100_000
    writing.join()
    assert read_given(pipe, 1 << 20).startswith(b"x = 1"), "what came of it is kept"
    os.mkfifo(longer := tmp_path / "longer")
    written(longer, b"y" * 10_000)
    assert read_given(longer, 100) == b"y" * 100


def test_a_pipe_that_has_no_end_is_waited_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PIPE_S", 0.1)
    os.mkfifo(pipe := tmp_path / "pipe")
    with pytest.raises(OSError, match=r"it is a pipe whose writer did not finish within 0\.1 s"):
        read_given(pipe, 100)
    monkeypatch.setattr(files, "PIPE_S", LONG_S)
    with pytest.raises(OSError, match="it is a pipe"):
        read_given(pipe, 100)


@pytest.mark.parametrize("kind", ["a pipe", "an endless device"])
def test_no_command_hangs_on_a_file_that_is_odd(tmp_path: Path, kind: str) -> None:
    ODD[kind](odd := tmp_path / "odd")
    lines = [
        [word.format(odd=odd, dir=tmp_path, fixtures=FIXTURES) for word in words]
        for words in ROWS["commands on odd files"]
    ]
    before = "from jobtui.transport import files; files.PIPE_S = 0.2"  # nobody writes into the pipe
    told = in_turn(*lines, before=before, HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path))
    offenders = [
        (words, ran)
        for words, ran in zip(lines, told, strict=True)
        if ran.code == Exit.FAULT or "Traceback" in ran.err or not (ran.out + ran.err).strip()
    ]
    assert not offenders
