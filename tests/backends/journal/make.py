"""Real journals for tests: export text made of entries, and the files systemd-journal-remote makes of it."""

import lzma
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parents[2] / "fixtures" / "journal"

Value = str | bytes | Sequence[bytes]

BOOT, MACHINE, SEQNUM_ID = "b" * 32, "c" * 32, "a" * 32
START_US = 1_700_000_000_000_000


def of_systemd(program: str) -> str:
    """Where a program of systemd is that is not on the PATH; "" where it is not installed."""
    places = (f"/lib/systemd/{program}", f"/usr/lib/systemd/{program}")
    return next((place for place in places if Path(place).exists()), "")


REMOTE = of_systemd("systemd-journal-remote")
needs_journal_tools = pytest.mark.skipif(
    not REMOTE or shutil.which("journalctl") is None,
    reason="needs journalctl and systemd-journal-remote: apt-get install systemd systemd-journal-remote",
)


def by_host() -> dict[str, bytes]:
    """The capture's export text by host; its entries begin with their cursor."""
    found: dict[str, bytes] = {}
    two_hosts = lzma.decompress((FIXTURES / "two-hosts.export.xz").read_bytes())
    for start in two_hosts.split(b"\n\n__CURSOR=")[0:]:
        text = start if start.startswith(b"__CURSOR=") else b"__CURSOR=" + start
        host = text.partition(b"\n_HOSTNAME=")[2].partition(b"\n")[0].decode()
        found[host] = found.get(host, b"") + text.rstrip(b"\n") + b"\n\n"
    return found


def in_text(name: str, value: bytes) -> bytes:
    return name.encode() + b"=" + value + b"\n"


def in_binary(name: str, value: bytes) -> bytes:
    return name.encode() + b"\n" + len(value).to_bytes(8, "little") + value + b"\n"


def a_field(name: str, value: bytes) -> bytes:
    """A field as journald writes it: as text when it is printable UTF-8 on one line."""
    try:
        printable = all(character == "\t" or character >= " " for character in value.decode())
    except UnicodeDecodeError:
        printable = False
    return in_text(name, value) if printable and b"\x7f" not in value else in_binary(name, value)


def entry(nth: int, message: Value | None = None, **fields: Value | int) -> bytes:
    """One entry's export text. `at_us`, `boot`, `machine`, `host` are its address; all else fields."""
    at_us = fields.pop("at_us", START_US + nth * 1_000_000)
    boot = fields.pop("boot", BOOT)
    monotonic_us = fields.pop("monotonic_us", 5_000_000 + nth * 1_000_000)
    assert isinstance(monotonic_us, int)
    assert isinstance(at_us, int)
    cursor = f"s={SEQNUM_ID};i={nth + 1:x};b={boot!s};m={monotonic_us:x};t={at_us:x};x=0"
    head: dict[str, Value | int] = {
        "__CURSOR": cursor, "__REALTIME_TIMESTAMP": at_us, "__MONOTONIC_TIMESTAMP": monotonic_us,
        "_BOOT_ID": boot, "_MACHINE_ID": fields.pop("machine", MACHINE),
        "_HOSTNAME": fields.pop("host", "node1"),
    }  # fmt: skip
    if message is not None:
        fields["MESSAGE"] = message
    return export_text({**head, **fields})


def export_text(fields: Mapping[str, Value | int]) -> bytes:
    out = b""
    for name, value in fields.items():
        values = [str(value).encode()] if isinstance(value, str | int) else value
        for each in [values] if isinstance(values, bytes) else values:
            out += a_field(name, each)
    return out + b"\n"


def make_journal(directory: Path, entries: Iterable[bytes], name: str = "remote-node1.journal") -> Path:
    """A journal file of these entries in `directory`, which is made; gives the file."""
    directory.mkdir(parents=True, exist_ok=True)
    with Writer(directory, name) as journal:
        journal.write(entries)
    return directory / name


class Writer(AbstractContextManager["Writer"]):
    """Writes a journal for as long as it is open."""

    def __init__(self, directory: Path, name: str = "remote-node1.journal") -> None:
        command = [REMOTE, "--split-mode=none", f"--output={directory / name}", "-"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def write(self, entries: Iterable[bytes]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"".join(entries))
        self._process.stdin.flush()

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)
        assert self._process.returncode == 0
