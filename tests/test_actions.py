from jobtui.actions import ACTIONS, Place, actions_at, hints_at
from jobtui.app import JobtuiApp
from jobtui.screens.base import LiveScreen
from jobtui.screens.charts import ChartsScreen
from jobtui.screens.job import JobScreen
from jobtui.screens.jobs import JobsScreen
from jobtui.screens.sources import SourcesScreen
from jobtui.screens.text import ReadingScreen
from jobtui.screens.trace import TraceScreen
from jobtui.screens.traces import TracesScreen

SCREENS: tuple[type[LiveScreen], ...] = (
    JobsScreen, JobScreen, ChartsScreen, SourcesScreen, ReadingScreen, TracesScreen, TraceScreen,
)  # fmt: skip


def test_no_key_means_two_things_on_a_screen() -> None:
    for place in Place:
        keys = [key for action in actions_at(place) for key in action.keys]
        assert len(keys) == len(set(keys)), place


def test_every_action_can_be_taken_where_the_table_says() -> None:
    for screen in SCREENS:
        for action in actions_at(screen.PLACE):
            name = action.call.partition("(")[0]
            owner: type[object] = JobtuiApp if name.startswith("app.") else screen
            assert hasattr(owner, f"action_{name.removeprefix('app.')}"), action


def test_every_screen_binds_the_keys_of_the_table() -> None:
    for screen in SCREENS:
        bound = {key for binding in screen.BINDINGS for key in binding.key.split(",")}  # type: ignore[union-attr]
        assert bound == {key for action in actions_at(screen.PLACE) for key in action.keys}


def test_quitting_and_help_are_everywhere() -> None:
    for place in Place:
        words = [hint.word for hint in hints_at(place)]
        assert "quit" in words
        assert "keys" in words
    assert "back" not in [hint.word for hint in hints_at(Place.JOBS)]


def test_the_footer_names_the_screens_in_one_word() -> None:
    for place in Place:
        hints = hints_at(place)
        assert [hint.key for hint in hints if hint.word in ("screens", "agents", "charts")] == ["1-8"]
    assert all(action.help for action in ACTIONS)
