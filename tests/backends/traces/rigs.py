"""What answers about traces are tested on: a session with one source of each kind, and what follows it."""

import json
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

from jobtui.backends.registry import build
from jobtui.backends.traces.receiver import Receiver
from jobtui.model.clock import Clock
from jobtui.model.specs import SourceSpec, Window
from jobtui.session import Session
from jobtui.session.traces import SessionTraces
from tests.backends.traces.sending import send
from tests.jaeger_server import Jaeger
from tests.loopback import served
from tests.tempo_server import Tempo
from tests.trace_servers import Site, Spans


class Rig(Protocol):
    session: Session
    client: SessionTraces
    is_exact: bool

    async def update(self) -> None:
        """Let the source know what was sent by now."""


class Asked:
    def __init__(self, setting: str, site: Site, stack: ExitStack, clock: Clock, *, exact: bool) -> None:
        self.site = site
        self.is_exact = exact
        url = stack.enter_context(served(site))
        self.session = Session([build(SourceSpec(setting, url), Window(until=clock.now()))], clock)
        self.client = _job_reader(self.session)

    async def update(self) -> None:
        """It is asked again each time."""


class Files:
    is_exact = True

    def __init__(self, spans: Spans, folder: Path, clock: Clock) -> None:
        self._spans = spans
        self._path = folder / "spans.jsonl"
        self._written: set[str] = set()
        self._path.touch()
        self.session = Session([build(SourceSpec("trace_file", str(self._path)))], clock)
        self.client = _job_reader(self.session)

    async def update(self) -> None:
        with self._path.open("a") as file:
            for document in fresh(self._spans, self._written):
                file.write(json.dumps(document) + "\n")
        await self.session.catch_up()


class Received:
    is_exact = True

    def __init__(self, spans: Spans, clock: Clock) -> None:
        self._spans = spans
        self._sent: set[str] = set()
        self._receiver = Receiver("127.0.0.1:0")
        self.session = Session([self._receiver], clock)
        self.client = _job_reader(self.session)

    async def update(self) -> None:
        await self.session.catch_up()
        for document in fresh(self._spans, self._sent):
            assert (await send(self._receiver, json.dumps(document).encode())).status == 200
        await self.session.catch_up()


def fresh(spans: Spans, known: set[str]) -> list[dict[str, object]]:
    """Documents with the spans that are not known yet, which are known then."""
    found: list[dict[str, object]] = []
    for trace_id in spans.ids:
        for group in spans.groups(trace_id):
            scopes = [
                {**scope, "spans": [one for one in scope["spans"] if one["spanId"] not in known]}
                for scope in group["scopeSpans"]
            ]
            if any(scope["spans"] for scope in scopes):
                found.append({"resourceSpans": [{**group, "scopeSpans": scopes}]})
        known |= {span["spanId"] for span, _ in spans.spans(trace_id)}
    return found


def _job_reader(session: Session) -> SessionTraces:
    """Answers for tests, which do not wait long before they ask again."""
    return SessionTraces(session.store, lambda: session.sources, session.clock, period_s=0.01)


RIGS = (
    "files", "received", "jaeger-v3", "jaeger-v3-old", "jaeger-v1", "jaeger-cassandra", "tempo",
    "tempo-v1",
)  # fmt: skip
"""Every way to traces. Some storages of Jaeger want a service named."""


@asynccontextmanager
async def a_rig(name: str, spans: Spans, folder: Path, clock: Clock) -> AsyncIterator[Rig]:
    with ExitStack() as stack:
        rig: Rig
        if name == "files":
            rig = Files(spans, folder, clock)
        elif name == "received":
            rig = Received(spans, clock)
        elif name.startswith("tempo"):
            site = Site(Tempo(spans, is_old=name == "tempo-v1"), "/tempo")
            rig = Asked("tempo", site, stack, clock, exact=True)
        else:
            versions = ("v1",) if name == "jaeger-v1" else ("v3", "v1")
            jaeger = Jaeger(spans, versions=versions, is_old=name == "jaeger-v3-old")
            jaeger.wants_service = name == "jaeger-cassandra"
            rig = Asked("jaeger", Site(jaeger, "/jaeger"), stack, clock, exact=name != "jaeger-v1")
        async with rig.session:
            await rig.update()
            yield rig
