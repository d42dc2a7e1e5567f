"""Clients whose requests are answered in this process, or may cost less; sources with another clock."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx

from jobtui.backends.base import PolledSource
from jobtui.backends.engine import Engine
from jobtui.model.clock import Clock
from jobtui.transport.http import HttpClient, HttpLimits

Client = TypeVar("Client")
Timed = TypeVar("Timed", bound=PolledSource | Engine)


def timed(whose: Timed, clock: Clock) -> Timed:
    """The same source or engine, which goes by this clock."""
    whose.clock = clock
    return whose


Answering = Callable[[httpx.Request], httpx.Response] | Callable[[httpx.Request], Awaitable[httpx.Response]]


def carried(client: Client, answer: Answering | None = None, limits: HttpLimits | None = None) -> Client:
    """The same client, whose requests this answers, within these limits."""
    whose: Any = client
    http: HttpClient = whose if isinstance(client, HttpClient) else whose._http
    http.transport = None if answer is None else httpx.MockTransport(answer)  # type: ignore[arg-type]
    http.limits = limits or http.limits
    return client
