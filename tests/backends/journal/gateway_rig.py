"""A real systemd-journal-gatewayd on the loopback interface, ended by its own id."""

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.backends.journal.ssh_rig import end_tree, free_port, started
from tests.waiting import wait_for

ACTIVATE = "systemd-socket-activate"


def gatewayd() -> str | None:
    places = ("/lib/systemd/systemd-journal-gatewayd", "/usr/lib/systemd/systemd-journal-gatewayd")
    return next((place for place in places if Path(place).exists()), None)


needs_gatewayd = pytest.mark.skipif(
    gatewayd() is None or shutil.which(ACTIVATE) is None,
    reason="needs systemd-journal-gatewayd: apt-get install systemd systemd-journal-remote",
)


@dataclass(slots=True)
class Gatewayd:
    """One gatewayd; `directory` instead of its host's journal, `prefix` starts it elsewhere."""

    directory: Path | None
    log: Path
    address: str = "127.0.0.1"
    port: int = field(default_factory=free_port)
    prefix: tuple[str, ...] = ()
    _process: "subprocess.Popen[bytes] | None" = None

    @property
    def spec(self) -> str:
        return f"http://{self.address}:{self.port}"

    def start(self) -> None:
        """Start it; what is asked before it runs waits in its socket."""
        program = gatewayd()
        assert program is not None
        command = [*self.prefix, ACTIVATE, "-l", f"{self.address}:{self.port}", program]
        command += ["-D", str(self.directory)] if self.directory else []
        process = self._process = started(command, self.log)
        wait_for(lambda: is_listening(self.port, process.pid))

    def die(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            end_tree(process.pid)
            process.wait()


def is_listening(port: int, pid: int) -> bool:
    """Whether a socket listens on a port where a process is. Connecting to it would start gatewayd."""
    return any(
        line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A"
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
    )
