"""`serve`: the dashboard in a browser, of this machine unless told otherwise; read-only, as everywhere."""

import socket
import sys
from collections.abc import Iterator, Mapping, Sequence

from jobtui.commands.context import Context
from jobtui.commands.exits import Exit
from jobtui.commands.reading import configured, no_source, warn
from jobtui.commands.streams import complain
from jobtui.grammar import COMMAND_BY_NAME, SETTING_BY_NAME
from jobtui.model.trace_specs import LOOPBACK, is_loopback, listen_place

DEFAULT_PLACE = f"{LOOPBACK}:8417"
DASHBOARDS = frozenset({"demo", "replay"})
"""Commands that open a dashboard."""


def run(context: Context) -> Exit:
    """Serve until interrupted; USAGE for what cannot be served, or where it cannot."""
    first = context.words[0] if context.words else ""
    if first in COMMAND_BY_NAME and first not in DASHBOARDS:
        complain(f"{first} is no dashboard; serve shows THING, demo or replay")
        return Exit.USAGE
    warn(context)
    if first not in DASHBOARDS and not configured(context):
        return no_source()
    try:
        from jobtui.web.server import DashboardServer
    except ImportError:
        complain("serve needs textual-serve: pip install 'jobtui[serve]'")
        return Exit.USAGE
    listener = _listener(context.flag("listen") or DEFAULT_PLACE)
    if listener is None:
        return Exit.USAGE
    server = DashboardServer(dashboard_words(context.invocation.settings, context.words), listener)
    sys.stdout.write(f"The dashboard is at {server.address}\n")
    sys.stdout.flush()
    server.run()
    return Exit.FINE


def dashboard_words(settings: Mapping[str, Sequence[str]], words: Sequence[str]) -> list[str]:
    """What starts the dashboard of one browser: this program, with the settings that it was given itself.

    -P, as what lies where the server was started is not to be imported.
    """
    apart = () if words and words[0] in DASHBOARDS else ("--",)
    return [sys.executable, "-P", "-m", "jobtui", *_flags(settings), *apart, *words]


def _flags(settings: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for name, values in settings.items():
        setting = SETTING_BY_NAME[name]
        for value in values:
            yield f"{setting.flag}={value}" if setting.metavar else setting.flag


def _listener(text: str) -> socket.socket | None:
    """What listens there; None when nothing can, which is said."""
    try:
        host, port = listen_place(text if ":" in text else f":{text}")
    except ValueError:
        complain(f"--listen {text}: expected HOST:PORT, such as {DEFAULT_PLACE}, or a port alone")
        return None
    host = host or LOOPBACK
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family)
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        complain(f"cannot listen at {host}:{port}: {why}; --listen HOST:PORT names another place")
        return None
    if not is_loopback(host):
        complain(
            f"{host} is reached from other machines: whoever has the address below can look, and nothing on "
            "the way is encrypted"
        )
    return listener
