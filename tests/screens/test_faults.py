"""Whatever raises in the dashboard costs only itself: every handler, timer, worker and widget is tried.

Places are listed by looking through the package, so that a new one cannot be left out.
"""

import asyncio
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.app import App
from textual.containers import Vertical
from textual.dom import DOMNode
from textual.message_pump import MessagePump
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

import jobtui.screens
import jobtui.terminal
import jobtui.widgets
from jobtui.app import JobtuiApp
from jobtui.model import health
from jobtui.model.health import Fault, Faults, contained
from jobtui.render import log_lines
from jobtui.screens.logs import LogScreen
from jobtui.screens.palette import Palette
from jobtui.screens.text import HelpScreen
from jobtui.screens.trace_reader import TraceReader
from jobtui.session import Session
from jobtui.terminal import textual_patches
from jobtui.widgets.lines import LineView
from jobtui.widgets.row_view import RowView
from tests.builders import a_job
from tests.fakes import SECRET, Injected, batch, fail, fail_later, fail_once
from tests.hostile.widgets import CASES
from tests.screens.captured import LARGE_TOO, app_on_traces, on_logs, open_failed, shown, stamped, until
from tests.screens.scene import opened, read, words
from tests.screens.tour import STOPS, Stop, at_stop, has
from tests.waiting import wait_until
from tests.widgets.widget_app import Stack, WidgetApp, press, text

CALLED_BACK_BY = ("set_interval", "set_timer", "call_later", "call_after_refresh", "call_next")
"""Methods that are given something to be called later."""


def nodes() -> Iterator[type[MessagePump]]:
    """Every class of the package that Textual sends messages to."""
    modules = [JobtuiApp.__module__]
    for package in (jobtui.screens, jobtui.terminal, jobtui.widgets):
        modules += [f"{package.__name__}.{module.name}" for module in pkgutil.iter_modules(package.__path__)]
    for name in modules:
        for found in vars(import_module(name)).values():
            if isinstance(found, type) and issubclass(found, MessagePump) and found.__module__ == name:
                yield found


def handlers(node: type[MessagePump]) -> Iterator[str]:
    """The methods of a class that Textual calls by itself, and the one that reports a fault."""
    for name, method in vars(node).items():
        is_called = name.startswith(("on_", "action_", "watch_", "key_", "say_fault"))
        if name == "on_event":  # that is what hands everything to handlers
            continue
        if inspect.isfunction(method) and (is_called or hasattr(method, "_textual_on")):
            yield name


_busy: ContextVar[object] = ContextVar("busy", default=None)
"""The task in which one of these is running; tasks that it begins are others."""


@contextmanager
def busy() -> Iterator[bool]:
    """Gives whether none of these is running in this task yet."""
    task = asyncio.current_task()
    is_first = _busy.get() is not task
    token = _busy.set(task)
    try:
        yield is_first
    finally:
        _busy.reset(token)


def raising_after(work: Callable[..., Any], raised: set[str]) -> Callable[..., Any]:
    """The same, which raises when it has done what it does; not when it is called by another of these."""
    name = getattr(work, "__qualname__", repr(work))

    def ended() -> None:
        raised.add(name)
        raise Injected(SECRET)

    @wraps(work)
    async def raises_later(*arguments: Any, **named: Any) -> Any:
        with busy() as is_first:
            found = await work(*arguments, **named)
        return ended() if is_first else found

    @wraps(work)
    def raises(*arguments: Any, **named: Any) -> Any:
        with busy() as is_first:
            found = work(*arguments, **named)
        if is_first and inspect.isawaitable(found):
            return _awaited(found, ended)
        return ended() if is_first else found

    return raises_later if inspect.iscoroutinefunction(work) else raises


async def _awaited(found: Any, ended: Callable[[], None]) -> None:
    await found
    ended()


@pytest.fixture
def raised(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Lets all handlers, and all that is called back or done in a worker, raise; gives the names of those."""
    names: set[str] = set()
    for node in nodes():
        for name in handlers(node):
            monkeypatch.setattr(node, name, raising_after(vars(node)[name], names))
    for giver in CALLED_BACK_BY:
        _let_raise_later(monkeypatch, MessagePump, giver, names)
    _let_raise_later(monkeypatch, DOMNode, "run_worker", names)
    return names


def _let_raise_later(monkeypatch: pytest.MonkeyPatch, node: type, giver: str, names: set[str]) -> None:
    give = getattr(node, giver)
    at = 1 if giver in ("set_interval", "set_timer") else 0

    @wraps(give)
    def giving(self: Any, *arguments: Any, **named: Any) -> Any:
        given = list(arguments)
        work = given[at] if len(given) > at else named.get("callback")
        is_ours = "jobtui" in (getattr(getattr(work, "func", work), "__module__", None) or "")
        if callable(work) and is_ours and not hasattr(work, "__wrapped__"):
            given[at:] = [raising_after(work, names), *given[at + 1 :]]
            named.pop("callback", None)
        return give(self, *given, **named)

    monkeypatch.setattr(node, giver, giving)


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.name)
async def test_every_screen_is_shown_whatever_its_handlers_raise(
    stop: Stop, raised: set[str], expected_faults: Faults
) -> None:
    async with at_stop(stop, (120, 40)) as (app, pilot):
        assert has(app, stop.sign)
        known = {name.rpartition(".")[2] for name in raised}
        assert known & {"on_mount", "_tick", "_flush", "on_resize"}, raised
        await press(pilot, "escape", "escape", "escape", "question_mark", until=HelpScreen)
        assert app.is_running
    assert {fault.kind for fault in expected_faults.all()} == {"Injected"}, expected_faults.all()
    assert not any(SECRET in fault.line for fault in expected_faults.all())


def test_every_kind_of_place_is_found() -> None:
    found = {node.__name__: [*handlers(node)] for node in nodes()}
    assert "on_key" not in found["JobsScreen"]
    assert {"action_columns", "_show_words"} <= {*found["JobsScreen"]}
    assert "_jump" in found["JobtuiApp"]
    assert len(found) > 60


@pytest.mark.parametrize("widget", CASES, ids=lambda widget: widget.__name__)
async def test_a_widget_that_cannot_be_drawn_says_so(widget: type[Widget], expected_faults: Faults) -> None:
    shown, tell = CASES[widget]("plain text")
    app = Stack([shown], 4)
    drawn_by = {"line", "row", "heading"} if issubclass(widget, RowView) else {"line"}
    async with app.run_test(size=(100, 8)) as pilot:
        tell()
        await pilot.pause()
        for name in drawn_by if issubclass(widget, LineView) else {"render_line"}:
            if name == "heading" and not getattr(shown, "headings", 0):
                continue
            expected_faults._known.clear()
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(type(shown), name, fail)
                redraw(shown)
                await wait_until(expected_faults.all, pilot)
                drawn = text(app)
                is_covered = isinstance(shown, Vertical)  # by what is in it
                assert is_covered or "a fault of jobtui: Injected" in drawn
                assert SECRET not in drawn
                count = len(expected_faults)
                for _ in range(3):
                    redraw(shown, anew=False)
                    await pilot.pause()
                is_line = isinstance(shown, LineView)
                assert not is_line or len(expected_faults) == count, "counted once, not at every paint"
            redraw(shown)
            await wait_until(lambda: "a fault of jobtui" not in text(app), pilot)


async def test_a_timer_that_a_task_outside_the_app_begins_fires_and_its_widget_closes() -> None:
    widget, fired = Static("text"), asyncio.Event()
    app = WidgetApp(widget)
    async with app.run_test() as pilot:
        Context().run(lambda: widget.set_timer(0.001, fired.set))
        await wait_until(fired.is_set, pilot)


async def test_a_timer_that_raises_is_counted_and_its_widget_closes(
    monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    widget = Static("text")
    run_timer = textual_patches._run_timer

    async def run_or_fail(timer: Timer) -> None:
        if timer.name == "raises":
            raise Injected(SECRET)
        await run_timer(timer)

    monkeypatch.setattr(textual_patches, "_run_timer", run_or_fail)
    async with WidgetApp(widget).run_test() as pilot:
        widget.set_timer(0.001, print, name="raises")
        await wait_until(expected_faults.all, pilot)
    (fault,) = expected_faults.all()
    assert fault.stage == "running a timer"


async def test_following_a_log_starts_again_after_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    path = tmp_path / "supervisor.log"
    path.write_text(stamped(1, "first"))
    fail_once(monkeypatch, LogScreen, "_look")
    async with on_logs(path, size=(160, 24)) as (app, pilot):
        await until(app, pilot, "a fault of jobtui: Injected", "started again in")
        with path.open("a") as file:
            file.write(stamped(2, "second"))
        await until(app, pilot, "first", "second")
    assert [(fault.stage, fault.count) for fault in expected_faults.all()] == [("following a log", 1)]


async def test_faults_are_counted_where_no_source_is_shown(tmp_path: Path, expected_faults: Faults) -> None:
    (path := tmp_path / "supervisor.log").write_text(stamped(1, "first"))
    with contained("trying"):
        raise Injected(SECRET)
    async with on_logs(path, size=(60, 24)) as (app, pilot):
        for lines in (24, 8, 5, 1):
            await pilot.resize_terminal(60, lines)
            await until(app, pilot, "1 fault")


async def test_a_line_of_a_log_that_cannot_be_drawn_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    path = tmp_path / "supervisor.log"
    path.write_text(stamped(1, "first") + stamped(2, "second") + stamped(3, "third"))
    body = log_lines.body
    monkeypatch.setattr(
        log_lines, "body", lambda line, look: fail() if "second" in line.text else body(line, look)
    )
    async with on_logs(path, size=(160, 24)) as (app, pilot):
        await until(app, pilot, "first", "third", "(drawing a line of a log)")
        assert "second" not in text(app)
    assert [fault.stage for fault in expected_faults.all()] == ["drawing a line of a log"]


async def test_following_a_trace_starts_again_after_a_fault(
    monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    fail_once(monkeypatch, TraceReader, "_study_known")
    async with shown(app_on_traces(*LARGE_TOO)) as (app, pilot):
        await open_failed(app, pilot)
        await until(app, pilot, "a fault of jobtui: Injected", "started again in")
    assert [fault.stage for fault in expected_faults.all()] == ["following a trace"]


@pytest.mark.parametrize(
    ("owner", "name", "counted"),
    [
        (None, "", ["polling"]),
        (textual_patches, "monotonic", ["reporting a fault", "polling"]),
        (Faults, "note", []),
        (health, "is_fault", []),
        (health, "location_of", []),
        (Fault, "words", ["polling", "reporting a fault"]),
        (Faults, "__len__", ["drawing SourceStrip", "polling"]),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
async def test_polling_is_begun_again_and_says_so(
    owner: object, name: str, counted: list[str], monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    """Also where what judges, counts or tells a fault raises itself; the clock does so once."""
    fail_once(monkeypatch, Session, "run")
    if name == "monotonic":
        works, broken = getattr(owner, name), iter([fail])
        monkeypatch.setattr(owner, name, lambda *given: next(broken, works)(*given))
    elif owner is not None:
        monkeypatch.setattr(owner, name, property(fail) if name == "words" else fail)
    async with read() as (scene, pilot):
        if name != "words":
            await until(scene.app, pilot, "a fault of jobtui: Injected", "(polling)", "started again in")
        scene.db.add(batch(a_job(11, name="told after")))
        await until(scene.app, pilot, "told after")
        await press(pilot, "question_mark", until=HelpScreen)
        monkeypatch.undo()
    assert [fault.stage for fault in expected_faults.all()] == counted


async def test_an_uncaught_exception_is_counted(expected_faults: Faults) -> None:
    async with read(size=(160, 40)) as (scene, pilot):
        scene.app._handle_exception(Injected(SECRET))
        await until(scene.app, pilot, "1 fault")
        await press(pilot, "question_mark", until=HelpScreen)
    assert [fault.stage for fault in expected_faults.all()] == ["in the dashboard"]


KEY_STAGES = "taking a key", "taking keys", "taking keys: later", "opening the line for commands"


@pytest.mark.parametrize("stage", [*KEY_STAGES, "Key for JobsScreen"])
async def test_a_key_or_paste_that_raises_costs_itself(
    stage: str, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    takes: type[MessagePump] = MessagePump if stage.startswith("Key") else App
    handle = takes.on_event

    async def handling(self: Any, event: events.Event) -> None:
        if isinstance(event, events.Key) and event.key == "x":
            fail()
        await handle(self, event)

    monkeypatch.setattr(takes, "on_event", handling)
    monkeypatch.setattr(JobtuiApp, "opens_input", fail_later)
    async with read() as (scene, pilot):
        if stage == "taking keys":
            looks = iter([fail])
            monkeypatch.setattr(JobtuiApp, "is_opening_input", lambda app: next(looks, bool)())
        elif stage == "taking keys: later":  # the second of those that are to settle before the next key
            give, turns = MessagePump.call_later, iter((lambda: None, fail))

            def later(pump: MessagePump, back: Callable[..., Any], *given: Any) -> bool:
                if back == scene.app._settle:
                    next(turns, bool)()
                return give(pump, back, *given)

            monkeypatch.setattr(MessagePump, "call_later", later)
        if not stage.startswith("opening"):
            await pilot.press("z" if stage.endswith("later") else "x")
        else:
            scene.app.post_message(events.Paste("something"))
        await wait_until(expected_faults.all, pilot)
        await press(pilot, "question_mark", until=HelpScreen)
    assert [fault.stage for fault in expected_faults.all()] == [stage.partition(":")[0]]


async def test_a_key_does_not_wait_forever_for_lost_messages() -> None:
    async with read() as (scene, pilot):
        scene.app._is_busy = True
        await press(pilot, "question_mark", until=HelpScreen)


async def test_a_search_of_the_palette_that_raises_costs_no_other(
    monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    monkeypatch.setattr(Palette, "_passing", lambda *arguments: map(fail, arguments))
    async with read() as (scene, pilot):
        found = await opened(scene, pilot, "choose col")
        await wait_until(lambda: words(found)[:1] and "Choose columns" in words(found)[0], pilot)
        await wait_until(expected_faults.all, pilot)
    assert [fault.stage for fault in expected_faults.all()] == ["searching from the palette"]


async def test_a_screen_that_cannot_be_composed_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    (path := tmp_path / "supervisor.log").write_text(stamped(1, "first"))
    monkeypatch.setattr(HelpScreen, "compose", fail)
    async with on_logs(path, size=(120, 24)) as (app, pilot):
        await pilot.press("question_mark")
        await until(app, pilot, "a fault of jobtui: Injected at", "composing HelpScreen")
        await press(pilot, "escape", until="first")


def redraw(shown: Widget, *, anew: bool = True) -> None:
    if isinstance(shown, LineView):
        shown.start_over() if anew else shown.repaint()
    else:
        shown.refresh()
