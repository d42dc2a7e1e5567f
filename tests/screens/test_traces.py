"""Recent traces and one of them: opened where it failed, gone through by keys, kept still while it grows."""

import socket
import threading
from collections.abc import Iterator
from functools import partial

import httpx
import pytest
from msgspec import structs

from jobtui.app import JobtuiApp
from jobtui.backends.base import Batch
from jobtui.backends.registry import build
from jobtui.backends.traces.files import TraceFile
from jobtui.model.clock import SECOND
from jobtui.model.ids import TraceId, TraceRef
from jobtui.model.specs import ReadWindow, SourceSpec
from jobtui.model.traces import Resource, Span
from jobtui.screens.trace import TraceScreen
from jobtui.screens.traces import TracesScreen
from jobtui.widgets.waterfall import Waterfall
from tests.builders import ago
from tests.conftest import NOW
from tests.loopback import served
from tests.screens.captured import FAILED_TRACE, FILES, LATER, SIZE, app_on, app_on_traces, open_failed, shown
from tests.screens.scene import FAILED as FAILED_JOB
from tests.screens.scene import Scene, read
from tests.trace_servers import Jaeger as JaegerServer
from tests.trace_servers import Site, Spans
from tests.trace_servers import Tempo as TempoServer
from tests.tracing import TRACE_ID, a_span
from tests.waiting import LONG_S, wait_until
from tests.widgets.widget_app import press, screen_text, text


def waterfall(app: JobtuiApp) -> Waterfall:
    return app.screen.query_one(Waterfall)


def here(app: JobtuiApp) -> str:
    """The name of the span under the cursor; "" as long as there is none."""
    line = waterfall(app).current
    if line is None:
        return ""
    return line.run.name if line.run else line.span.name if line.span else str(line.missing)


async def test_a_waterfall_zooms_and_shows_the_scale() -> None:
    async with shown(app_on_traces(*FILES)) as (app, pilot):
        await open_failed(app, pilot)
        assert "┄12s┄" in text(app)
        await pilot.press("w")
        assert "to scale" in text(app)
        assert "┄12s┄" not in text(app)
        await pilot.press("w", "f")
        assert not waterfall(app).is_whole
        near = waterfall(app).seen
        await pilot.press("plus")
        assert near is not None
        assert (seen := waterfall(app).seen) is not None
        assert seen[1] - seen[0] < near[1] - near[0]
        await pilot.press("H")
        assert (earlier := waterfall(app).seen) is not None
        assert earlier[0] < seen[0]
        await pilot.press("escape")
        assert waterfall(app).is_whole
        await pilot.press("c")
        assert "critical path thick" in text(app)


async def test_the_cursor_stays_while_the_trace_grows() -> None:
    app = app_on_traces()
    store = app._session.store
    store.add_source("test", "otlp")
    end = NOW + 60 * SECOND
    first = [a_span(1, start=NOW, end=None), *(a_span(nth, nth - 1, NOW + 9 * SECOND, end) for nth in (2, 3))]
    store.apply("test", Batch(spans=tuple(first)))
    async with app.run_test(size=(120, 20)) as pilot:
        app.action_jump(TRACE_ID)
        await wait_until(lambda: "s3" in text(app), pilot)
        await pilot.press("G", "k", "left")
        assert here(app) == "s2"
        height = waterfall(app).cursor - waterfall(app).top
        early = (a_span(nth, 1, NOW + nth * SECOND // 9, NOW + nth * SECOND // 8) for nth in range(10, 14))
        store.apply("test", Batch(spans=tuple(early)))
        await wait_until(lambda: "s13" in text(app), pilot)
        assert (here(app), waterfall(app).cursor - waterfall(app).top) == ("s2", height + 4)
        assert "s3" not in text(app)
        bad = a_span(9, 2, NOW + 20 * SECOND, NOW + 21 * SECOND, error=True)
        store.apply("test", Batch(spans=(bad,)))
        await wait_until(lambda: "2 below  ✗ 1" in text(app), pilot)
        assert here(app) == "s2"


def spans_of_job() -> tuple[Span, ...]:
    sender = Resource("worker", {"service.name": "worker", "job.id": FAILED_JOB})
    start = ago(58)
    of_sender = partial(a_span, service=sender)
    bad = of_sender(2, 1, start + SECOND, start + 2 * SECOND, name="load", error=True, message="no crystal3")
    return (of_sender(1, None, start, start + 3 * SECOND, name="program"), bad)


async def test_a_job_shows_its_trace_and_the_spans_among_its_lines() -> None:
    scene = Scene(open_at=FAILED_JOB)
    scene.store.apply("/srv/db", Batch(spans=spans_of_job()))
    async with scene.app.run_test(size=SIZE) as pilot:
        await wait_until(lambda: "trace" in "\n".join(screen_text(scene.app)[5:12]), pilot)
        await press(pilot, "G", until="load was handled after an error: no crystal3")
        shown = text(scene.app)
        assert "supervisor: op created" in shown
        assert "program begins, took 3s" in shown
        await pilot.press("tab", "g")
        for _ in range(40):
            if "sure: a span of the job's trace" in text(scene.app):
                break
            await pilot.press("j")
        assert "sure: a span of the job's trace" in text(scene.app)
        await press(pilot, "T", until="! load: no crystal3")
        assert "sure: its spans name the job" in text(scene.app)
        await press(pilot, "enter", until=TraceScreen)
        await wait_until(lambda: here(scene.app) == "load", pilot)


async def test_a_job_finds_its_trace_when_it_comes_later() -> None:
    scene = Scene(open_at=FAILED_JOB)
    async with read(scene, size=SIZE) as (_, pilot):
        await press(pilot, "T", until="No trace of this job was found")
        earlier = a_span(1, None, ago(9_000), ago(8_999), name="earlier", service=spans_of_job()[0].resource)
        scene.store.apply("/srv/db", Batch(spans=(structs.replace(earlier, trace_id=TraceId("f" * 32)),)))
        await wait_until(lambda: "earlier" in text(scene.app), pilot)
        scene.store.apply("/srv/db", Batch(spans=spans_of_job()))
        await wait_until(lambda: "no crystal3" in text(scene.app), pilot)


async def test_the_cursor_goes_to_what_failed_once_that_is_known_unless_somebody_moved() -> None:
    scene = Scene(open_at=FAILED_JOB)
    top, bad = spans_of_job()
    async with scene.app.run_test(size=SIZE) as pilot:
        for moves, place in ((False, "load"), (True, "first")):
            first = a_span(3, 1, top.started_at, top.started_at + SECOND, name="first", service=top.resource)
            trace_id = TraceId(f"{1 + moves:032x}")
            known = [structs.replace(one, trace_id=trace_id) for one in (top, first)]
            scene.store.apply("/srv/db", Batch(spans=tuple(known)))
            scene.app.commander().open_trace(TraceRef(trace_id))
            await wait_until(lambda: "first" in text(scene.app), pilot)
            if moves:
                await pilot.press("j")
            late = structs.replace(bad, trace_id=trace_id)
            scene.store.apply("/srv/db", Batch(spans=(late,)))
            await wait_until(lambda: "no crystal3" in text(scene.app), pilot)
            assert here(scene.app) == place
            await pilot.press("escape")


async def test_a_list_that_is_cut_short_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.screens.traces.LISTED", 1)
    async with shown(app_on_traces(*FILES)) as (_, pilot):
        await press(pilot, "5", until="the newest 1 of 2 traces")


@pytest.fixture(params=["jaeger", "tempo"])
def on_server(request: pytest.FixtureRequest) -> Iterator[tuple[JobtuiApp, Site]]:
    site = Site(JaegerServer(Spans()) if request.param == "jaeger" else TempoServer(Spans()))
    with served(site) as url:
        yield app_on(build(SourceSpec(request.param, url), ReadWindow(until=LATER)), now=LATER), site


async def test_keys_work_while_a_server_is_asked_for_a_job(on_server: tuple[JobtuiApp, Site]) -> None:
    app, site = on_server
    gate, answer = threading.Event(), site.answer

    def late(request: httpx.Request) -> httpx.Response:
        gate.wait(LONG_S)
        return answer(request)

    async with app.run_test(size=SIZE) as pilot:
        await wait_until(lambda: not any(one.error for one in app._session.store.sources()), pilot)
        site.answer = late  # type: ignore[method-assign]
        await press(pilot, "colon", *"81419552", "enter", until="asking trace servers")
        await press(pilot, "escape", "5", until=TracesScreen)
        gate.set()
        keys = ("1", "colon", *"nothing7", "enter")
        await press(pilot, *keys, until=lambda: "nothing7" in text(app) and "asking" not in text(app))
        assert not isinstance(app.screen, TraceScreen)


async def test_a_server_that_does_not_answer_holds_up_no_list() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        sources = (TraceFile(FILES[0]), build(SourceSpec("jaeger", url)))
        async with shown(app_on(*sources, now=LATER)) as (app, pilot):
            await wait_until(lambda: app._session.store.traces.size(FAILED_TRACE), pilot)
            await press(pilot, "5", until="hardWork.step")
            assert f"{url}: " not in text(app)
            silent.close()
            await wait_until(lambda: f"{url}: " in text(app), pilot)
            assert "hardWork.step" in text(app)
