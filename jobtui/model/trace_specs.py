"""What names a server of traces, or the address at which spans are received. Opens nothing."""

import re

from jobtui.model.specs import SourceSpec

OTLP_PORT = 4318
"""The port of OTLP over HTTP."""
LOOPBACK = "127.0.0.1"
_URL = re.compile(r"(?P<scheme>https?)://(?P<rest>(?![/:])(?:(?![?#])[!-~])+)", re.IGNORECASE)
_LISTEN = re.compile(r"(?:(?P<host>\[[0-9a-f:.]+\]|[\w.-]+|\*)?:)?(?P<port>\d{1,5})?", re.ASCII | re.I)


def parse_server(setting: str, text: str) -> SourceSpec:
    """The source that `--jaeger URL` or `--tempo URL` names. Raises ValueError for what is no address."""
    found = _URL.fullmatch(text.strip())
    if found is None:
        raise ValueError("expected http://host:port or https://host, perhaps with the path it is served at")
    if "@" in found["rest"]:
        raise ValueError(
            "a name or password in the address is not taken, all may see it: put it into [servers] of the "
            f"configuration file, or into JOBTUI_{setting.upper()}_BASIC"
        )
    return SourceSpec(setting, f"{found['scheme'].lower()}://{found['rest'].rstrip('/')}")


def parse_jaeger(text: str) -> SourceSpec:
    """The source that `--jaeger URL` names. Raises ValueError for what is no address of a server."""
    return parse_server("jaeger", text)


def parse_tempo(text: str) -> SourceSpec:
    """The source that `--tempo URL` names. Raises ValueError for what is no address of a server."""
    return parse_server("tempo", text)


def parse_otlp_listen(text: str) -> SourceSpec:
    """The source that `--otlp-listen HOST:PORT` names; without a host it is this machine alone.

    Raises ValueError for what is no address.
    """
    found = _LISTEN.fullmatch(text.strip()) if text.strip() else None
    port = int(found["port"] or OTLP_PORT) if found else 0
    if found is None or port > 65_535:
        raise ValueError("expected HOST:PORT, such as 127.0.0.1:4318, or a port alone")
    return SourceSpec("otlp_listen", f"{found['host'] or LOOPBACK}:{port}")


def listen_place(target: str) -> tuple[str, int]:
    """The host and port of an address to listen at."""
    host, _, port = target.rpartition(":")
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    return host in ("localhost", "::1") or re.fullmatch(r"127(\.\d+){1,3}", host) is not None
