"""`login balsam`: logs in to a Balsam server, and keeps the login where Balsam's own client looks.

The password is asked for on the terminal and nowhere else; neither it nor the token is ever printed.
"""

import getpass
import os
import sys
from urllib.parse import urlsplit

from jobtui.backends.balsam import login
from jobtui.backends.registry import BALSAM
from jobtui.commands.context import Context
from jobtui.commands.printing import print_lines
from jobtui.commands.streams import Exit, complain
from jobtui.model.health import SourceError
from jobtui.model.specs import parse_balsam
from jobtui.render.text import show

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def run(context: Context) -> Exit:
    if not sys.stdin.isatty():
        return complain("login asks questions: run it in a terminal", Exit.USAGE)
    path = login.login_path(os.environ, os.path.expanduser("~"))
    try:
        url = _url(context, path)
        kept = _where_to_keep(url, path)
        if kept is None:
            return Exit.FINE
        method, granted = _log_in(login.LoginServer(url))
        login.keep_login(kept, url, granted, method)
    except ValueError as error:
        return complain(f"not an address of a Balsam server: {error}", Exit.USAGE)
    except EOFError:
        return complain("nothing was entered: not logged in", Exit.USAGE)
    except SourceError as error:
        return complain(str(error), Exit.FAILED)
    user = login.user_of(login.Login(url, granted.access_token, None, kept))
    until = f", until {show(granted.expiration[:19])}Z" if granted.expiration else ""
    print_lines([f"logged in to {show(url)}{user and f' as {show(user)}'}{until}; kept in {show(kept)}"])
    return Exit.FINE


def _url(context: Context, path: str) -> str:
    """The server that was named, else one that the user types. Raises ValueError."""
    named = [spec.target for spec in context.config.sources if BALSAM.names(spec)]
    if len(named) > 1:
        raise ValueError(f"several servers are configured; name one with --balsam: {', '.join(named)}")
    if named:
        return named[0]
    before = _known(path)
    offered = before.api_root if before is not None else ""
    entered = input(f"Address of the Balsam server{f' [{show(offered)}]' if offered else ''}: ").strip()
    return parse_balsam(entered or offered).target


def _known(path: str) -> login.Login | None:
    try:
        return login.read_login(path)
    except SourceError:
        return None


def _where_to_keep(url: str, path: str) -> str | None:
    """The file for the login; None to do nothing. The file of Balsam's client holds only one."""
    before = _known(path)
    if before is None or not before.api_root or login.server_of(before.api_root) == login.server_of(url):
        return path
    beside = login.path_beside(url, path)
    complain(f"{path} holds a login to {before.api_root}")
    question = f"[r]eplace it, or keep this one [b]eside it, in {show(os.path.basename(beside))}? [N] "
    return {"r": path, "b": beside}.get(input(question).strip().lower()[:1])


def _log_in(server: login.LoginServer) -> tuple[login.Method, login.GrantedLogin]:
    """Log in by password or in a browser. Raises SourceError when it is not granted."""
    parts = urlsplit(server.url)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        complain(f"{server.url}: the connection is not encrypted: others on the way can read what you enter")
    methods = server.methods()
    if not methods:
        raise SourceError(f"{server.url}: jobtui knows none of its ways to log in: use `balsam login`")
    if login.Method.DEVICE in methods and login.Method.PASSWORD in methods:
        is_by_password = input("Log in with [p]assword or in a [b]rowser? [b] ").strip().lower() == "p"
    else:
        is_by_password = login.Method.PASSWORD in methods
    if is_by_password:
        user = input(f"User [{show(getpass.getuser())}]: ").strip() or getpass.getuser()
        return login.Method.PASSWORD, server.by_password(user, lambda: getpass.getpass("Password: "))
    device = server.begin()
    address = show(device.verification_uri_complete or device.verification_uri)
    print_lines([f"Open {address}", f"and approve the code {show(device.user_code)}; ctrl+c gives up"])
    sys.stdout.flush()
    return login.Method.DEVICE, server.until_approved(device)
