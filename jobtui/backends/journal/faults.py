"""What programs say when something is wrong, and what a person can do about it: one clear line for each.

The tables are in the order in which they are tried. What no table knows is told in the program's own words.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jobtui.backends.base import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.secrets import mask_text

WORDS_LIMIT = 200


class Fault(NamedTuple):
    """What is said (a pattern), what kind of failure it is, and the line to show, with names for values."""

    said: str
    kind: type[SourceError]
    line: str


JOURNALCTL: Sequence[Fault] = (
    Fault(
        r"insufficient permissions",
        SourceDenied,
        "{user} may not read the journal{there}; as root: {usermod}, then log in anew",
    ),
    Fault(
        r"journalctl.*(?:not found|No such file)|Unknown command.*journalctl",
        SourceMissing,
        "there is no journalctl{there}; it is a host without systemd, or not in the PATH of a login shell",
    ),
    Fault(
        r"Failed to open (?P<what>.+): No such file or directory",
        SourceMissing,
        "there is no {what}{there}; check the directory",
    ),
    Fault(
        r"Failed to open (?P<what>.+): Permission denied",
        SourceDenied,
        "{user} may not read {what}{there}; as root: {usermod}, then log in anew",
    ),
)

SSH: Sequence[Fault] = (
    Fault(
        r"Could not resolve hostname",
        SourceUnreachable,
        "no host is called {host}; check the name, or give it a Host entry in ~/.ssh/config",
    ),
    Fault(
        r"REMOTE HOST IDENTIFICATION HAS CHANGED",
        SourceDenied,
        "the host key of {host} has changed; when its administrator confirms the new one: "
        "ssh-keygen -R {known_host}, then once: {ssh}",
    ),
    Fault(
        r"Host key verification failed|host key is known for",
        SourceDenied,
        "the host key of {host} is not known yet; log in once and compare it: {ssh}",
    ),
    Fault(
        r"Too many authentication failures",
        SourceDenied,
        "too many keys were offered to {host}; name the right one in ~/.ssh/config "
        "(IdentityFile, IdentitiesOnly yes)",
    ),
    Fault(
        r"Permission denied \([^)]*(?:password|keyboard)[^)]*\)",
        SourceDenied,
        "{host} wants a password, none is ever typed for you; give it your key: {ssh_copy_id}, "
        "or unlock the key you have: ssh-add",
    ),
    Fault(
        r"Permission denied \(",
        SourceDenied,
        "{host} takes none of your keys; unlock the right one (ssh-add), or have it added there; try: {ssh}",
    ),
    Fault(
        r"Connection refused",
        SourceUnreachable,
        "{host} refuses connections to port {port}; check the port and, there: systemctl status ssh",
    ),
    Fault(
        r"No route to host|Network is unreachable",
        SourceUnreachable,
        "there is no way to {host} from here; check the network or VPN, or name a jump host in ~/.ssh/config",
    ),
    Fault(
        r"timed out|Timeout, server",
        SourceUnreachable,
        "{host} does not answer any more; check that it is up: {ssh}",
    ),
    Fault(
        r"kex_exchange_identification|banner exchange|Connection (?:closed|reset) by .* port",
        SourceUnreachable,
        "{host} hangs up before the login; its sshd is overloaded, or bars this machine; try: {ssh}",
    ),
    Fault(
        r"Bad owner or permissions on (?P<what>\S+)",
        SourceDenied,
        "ssh does not trust {what}; type: chmod 600 {what}",
    ),
    Fault(
        r"(?P<what>\S+(?:: line \d+)?): (?:Bad configuration option|terminating)",
        SourceError,
        "ssh does not understand its settings ({what}); try: {ssh}",
    ),
    Fault(
        r"account is (?:currently )?not available|This service allows sftp connections only",
        SourceDenied,
        "{host} lets {user} log in, but run nothing; name a user with a shell",
    ),
    Fault(
        r"closed by remote host|Broken pipe|Connection reset|client_loop|mux_client",
        SourceUnreachable,
        "{host} broke the connection off; it is going down, or its sshd was stopped",
    ),
)


def known_fault(table: Sequence[Fault], said: str, values: Mapping[str, str]) -> SourceError | None:
    """The failure that a table knows for what was said; None when it knows none.

    `values` has what the lines name: `name`, the source, always.
    """
    for fault in table:
        if found := re.search(fault.said, said, re.IGNORECASE):
            named = {**values, **{key: in_words(value) for key, value in found.groupdict().items()}}
            return fault.kind(f"{values['name']}: {fault.line.format_map(named)}")
    return None


def in_words(text: str) -> str:
    """The last line of what a program said, short, without control characters and secrets."""
    lines = ["".join(char if char.isprintable() else " " for char in line) for line in text.splitlines()]
    told = [" ".join(line.split()) for line in lines if line.strip()]
    return mask_text(told[-1][:WORDS_LIMIT]) if told else ""
