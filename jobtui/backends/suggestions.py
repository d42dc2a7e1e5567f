"""Further sources that a machine seems to have, for somebody who is asked whether they are wanted.

Unlike what `discovery` finds they are never read unasked. Looks at names and variables, at Slurm's
configuration, and at nothing else.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import urlsplit

from jobtui.backends.discovery import Discovered, Surroundings
from jobtui.model.specs import (
    SourceSpec,
    parse_archive,
    parse_jaeger,
    parse_otlp_listen,
    parse_slurm,
    parse_tempo,
)
from jobtui.transport.files import read_small

SLURM_CONF = "etc/slurm/slurm.conf"
ARCHIVES = ("var/lib/sarchive", "srv/sarchive", "var/spool/sarchive")
JAEGER_PAGES = 16686
"""The port at which Jaeger answers questions; variables name the one at which it takes spans."""
JAEGER_COLLECTORS = ("OTEL_EXPORTER_JAEGER_ENDPOINT", "JAEGER_ENDPOINT", "JAEGER_AGENT_HOST")
QUERIED: Mapping[str, Callable[[str], SourceSpec]] = {
    "JAEGER_QUERY_URL": parse_jaeger,
    "TEMPO_URL": parse_tempo,
}
OTLP = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
HTTP_PORT = 4318
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
LARGEST = 1 << 20
_STATE = re.compile(r"^\s*StateSaveLocation\s*=\s*(\S+)", re.IGNORECASE | re.MULTILINE)


def suggest(around: Surroundings) -> Iterable[Discovered]:
    if found := shutil.which("squeue", path=around.environ.get("PATH", "")):
        yield Discovered(parse_slurm("local"), f"found {found}")
    yield from _archives(around)
    for name, parse in QUERIED.items():
        yield from _parsed(parse, around.environ.get(name, ""), name)
    yield from _jaeger(around)
    yield from _spans(around)


def _archives(around: Surroundings) -> Iterable[Discovered]:
    for name in ARCHIVES:
        path = os.path.join(around.root, name)
        if os.path.isdir(path):
            yield Discovered(parse_archive(path), f"found {path}")
    conf = os.path.join(around.root, SLURM_CONF)
    try:
        said = _STATE.search(read_small(conf, LARGEST).decode("utf-8", "replace"))
    except OSError:
        return
    if said and os.access(said[1], os.R_OK | os.X_OK):
        yield Discovered(parse_archive(said[1]), f"StateSaveLocation of {conf}")


def _jaeger(around: Surroundings) -> Iterable[Discovered]:
    """The pages of a Jaeger whose collector is known: a guess, at the usual port of the same host."""
    for name in JAEGER_COLLECTORS:
        host = _host(around.environ.get(name, ""))
        if host:
            yield from _parsed(parse_jaeger, f"http://{host}:{JAEGER_PAGES}", f"guessed from {name}")
            return


def _spans(around: Surroundings) -> Iterable[Discovered]:
    """Where programs of this machine send their spans: jobtui can listen there, when nobody else does."""
    for name in OTLP:
        url = around.environ.get(name, "")
        if url and _host(url) in LOOPBACK and f":{HTTP_PORT}" in url:
            yield from _parsed(parse_otlp_listen, str(HTTP_PORT), f"{name} sends there")
            return


def _parsed(parse: Callable[[str], SourceSpec], text: str, origin: str) -> Iterable[Discovered]:
    try:
        if text.strip():
            yield Discovered(parse(text.strip()), origin)
    except ValueError:
        return


def _host(address: str) -> str:
    try:
        host = urlsplit(address if "//" in address else f"//{address}").hostname or ""
    except ValueError:
        return ""
    return f"[{host}]" if ":" in host and host not in LOOPBACK else host
