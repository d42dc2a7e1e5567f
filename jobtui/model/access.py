"""How a server wants to be asked: a token, a name and password, headers, and by whom it is vouched for.

All of it comes from the configuration file or the environment, as all may see the arguments of a process.
What reads it there is `model.access_reading`.
"""

from collections.abc import Mapping
from typing import NamedTuple

SERVERS = ("jaeger", "tempo", "elastic")
"""Settings that name servers which may want a login."""
VARIABLES: Mapping[str, str] = {"bearer": "_BEARER", "basic": "_BASIC", "headers": "_HEADERS"}
"""What may be said in the environment, and how the name of the variable ends."""


class Access(NamedTuple):
    """How to ask a server. All but `bearer_file` and `ca_file` is secret.

    `bearer_file` holds a token that others renew. `ca_file` is "" for the authorities of the system.
    """

    bearer: str = ""
    bearer_file: str = ""
    user: str = ""
    password: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    ca_file: str = ""

    def __repr__(self) -> str:
        """Without what is secret, which must not get into a traceback."""
        given = [name for name, value in zip(self._fields, self, strict=True) if value]
        return f"Access({', '.join(given)})"

    @property
    def has_login(self) -> bool:
        """Whether something secret is sent."""
        return bool(self.bearer or self.bearer_file or self.user or self.headers)


NO_ACCESS = Access()
