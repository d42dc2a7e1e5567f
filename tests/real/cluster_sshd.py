"""The ssh server of a cluster: one user with a password, whose commands run as whoever started it.

    python cluster_sshd.py PORT USER

Runs with the asyncssh of an installed Sirepo; prints its public key. CLUSTER_PASSWORD is the password.
"""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE

import asyncssh

USER = sys.argv[2]


class Login(asyncssh.SSHServer):  # type: ignore[misc]
    """Lets that user in."""

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        """Whether it is the right one."""
        return username == USER and password == os.environ["CLUSTER_PASSWORD"]


async def run(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """Run a command as sshd does."""
    child = await asyncio.create_subprocess_shell(process.command or "", stdin=PIPE, stdout=PIPE, stderr=PIPE)
    await process.redirect(stdin=child.stdin, stdout=child.stdout, stderr=child.stderr)
    code = await child.wait()
    await process.stdout.drain()
    process.exit(code)


async def main() -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    listens = await asyncssh.create_server(
        Login, "127.0.0.1", int(sys.argv[1]), server_host_keys=[key], process_factory=run, encoding=None
    )
    print(key.export_public_key().decode().strip(), flush=True)  # noqa: T201
    await listens.wait_closed()


asyncio.run(main())
