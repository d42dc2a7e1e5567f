"""`login balsam`: log in to a Balsam server, and keep the login where Balsam's own client looks.

The password is asked for on the terminal and nowhere else; neither it nor the token is ever printed.
"""

import getpass
import os
import sys
import time
from urllib.parse import urlsplit

from jobtui.backends.balsam.credentials import Login, login_path, read_login
from jobtui.backends.balsam.login import LONGEST_S, Granted, LoginServer, Method, keep_login
from jobtui.backends.balsam.opening import user_of
from jobtui.backends.base import SourceError
from jobtui.commands.context import Context
from jobtui.commands.exits import Exit
from jobtui.commands.printing import print_lines
from jobtui.commands.streams import complain
from jobtui.model.specs import parse_balsam
from jobtui.render.text import show

SETTING = "balsam"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def run(context: Context) -> Exit:
    """Log in; USAGE without a terminal or an address, FAILED when it was refused."""
    if not sys.stdin.isatty():
        complain("login asks for what it needs: it takes a terminal")
        return Exit.USAGE
    path = login_path(os.environ, os.path.expanduser("~"))
    try:
        url = _url(context, path)
        if not _may_replace(url, path):
            return Exit.FINE
        method, granted = _log_in(LoginServer(url))
        keep_login(path, url, granted, method)
    except ValueError as error:
        complain(f"no address of a Balsam server: {error}")
        return Exit.USAGE
    except EOFError:
        complain("nothing was entered: not logged in")
        return Exit.USAGE
    except SourceError as error:
        complain(str(error))
        return Exit.FAILED
    user = user_of(Login(url, granted.access_token, None, path))
    until = f", until {show(granted.expiration[:19])}Z" if granted.expiration else ""
    print_lines([f"logged in to {show(url)}{user and f' as {show(user)}'}{until}; kept in {show(path)}"])
    return Exit.FINE


def _url(context: Context, path: str) -> str:
    """The server that was named, else one that is asked for. Raises ValueError."""
    named = [spec.target for spec in context.config.sources if spec.setting == SETTING]
    if len(named) > 1:
        raise ValueError(f"several are configured, name one with --balsam: {', '.join(named)}")
    if named:
        return named[0]
    before = _known(path)
    offered = before.api_root if before is not None else ""
    entered = input(f"Address of the Balsam server{f' [{show(offered)}]' if offered else ''}: ").strip()
    return parse_balsam(entered or offered).target


def _known(path: str) -> Login | None:
    try:
        return read_login(path)
    except SourceError:
        return None


def _may_replace(url: str, path: str) -> bool:
    """Whether a login to another server may go: there is room for one."""
    before = _known(path)
    if before is None or not before.api_root or before.api_root.rstrip("/") == url:
        return True
    question = f"{show(path)} holds a login to {show(before.api_root)}. Replace it? [y/N] "
    return input(question).strip().lower() in ("y", "yes")


def _log_in(server: LoginServer) -> tuple[Method, Granted]:
    parts = urlsplit(server.url)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        complain(f"{server.url}: the connection is not encrypted: what you enter can be read on its way")
    methods = server.methods()
    if not methods:
        raise SourceError(f"{server.url}: offers no way to log in that is known here: use `balsam login`")
    if Method.DEVICE in methods and Method.PASSWORD in methods:
        is_by_password = input("Log in with [p]assword or in a [b]rowser? [b] ").strip().lower() == "p"
    else:
        is_by_password = Method.PASSWORD in methods
    if not is_by_password:
        return Method.DEVICE, _in_browser(server)
    user = input(f"User [{show(getpass.getuser())}]: ").strip() or getpass.getuser()
    return Method.PASSWORD, server.by_password(user, lambda: getpass.getpass("Password: "))


def _in_browser(server: LoginServer) -> Granted:
    """Wait until it is approved there. Raises SourceError when it is not."""
    device = server.begin()
    print_lines(
        [
            f"Open {show(device.verification_uri_complete or device.verification_uri)}",
            f"and approve the code {show(device.user_code)}; ctrl+c gives up",
        ]
    )
    sys.stdout.flush()
    end = time.monotonic() + min(LONGEST_S, device.expires_in)
    while time.monotonic() < end:
        time.sleep(device.interval_s)
        if (granted := server.approved(device)) is not None:
            return granted
    raise SourceError(f"{server.url}: not approved within {device.expires_in / 60:.0f} min: begin again")
