"""Clients of servers whose requests are answered in this process, or that may spend less on a server."""

from typing import Any, TypeVar

import httpx

from jobtui.transport.http import HttpClient, Limits

Client = TypeVar("Client")


def carried(
    client: Client, transport: httpx.AsyncBaseTransport | None = None, limits: Limits | None = None
) -> Client:
    """The same client, which asks through this transport, within these limits."""
    whose: Any = client
    http: HttpClient = whose if isinstance(client, HttpClient) else whose._http
    http.transport = transport
    http.limits = limits or http.limits
    return client
