"""What is said behind `:`, what is pasted, views, and columns."""

import re
import stat
from pathlib import Path

import pytest

from jobtui.screens.command_table import COMMANDS, CommandError, complete_command, parse_command
from jobtui.views import View, Views, ViewsError
from jobtui.widgets.filter_bar import MOST, History
from tests.rows import ROWS
from tests.screens.scene import FAILED, Scene, ready, say
from tests.waiting import wait_until
from tests.widgets.widget_app import text


def test_every_command_is_understood_whole_and_cut_where_that_is_clear() -> None:
    for command in COMMANDS:
        said = f"{command.name} x" if command.needs_argument else command.name
        assert parse_command(said).command is command
    assert parse_command("  sort -age ").rest == "-age"
    assert parse_command("qui").command.name == "quit"


@pytest.mark.parametrize(("said", "wrong", "hint"), ROWS["wrong commands"])
def test_a_wrong_command_is_shown_at_its_place(said: str, wrong: str, hint: str) -> None:
    with pytest.raises(CommandError, match=re.escape(hint)) as caught:
        parse_command(said)
    assert said[caught.value.start : caught.value.end] == wrong


@pytest.mark.parametrize(
    ("head", "choices", "start"),
    [
        ("so", ["sources", "sort"], 0),
        ("sort a", ["age", "app"], 5),
        ("sort -ag", ["-age"], 5),
        ("filter status:fai", ["status:failed"], 7),
        ("filter app:my", ["app:myapp"], 7),
        ("view mi", ["mine"], 5),
        ("quit ", [], 5),
        ("nonsense x", [], 10),
        ("EPR", [FAILED], 0),
        ("goto EPRS", [FAILED], 5),
        ("filter -EPR", [FAILED], 8),
        ("filter id:eprsqtuw-x,e", [f"id:eprsqtuw-x,{FAILED}"], 7),
        ("EP", [], 0),
    ],
)
def test_commands_are_completed(head: str, choices: list[str], start: int) -> None:
    found = complete_command(
        head, len(head), {"app": ["myapp", "srw"], "view": ["mine", "other"], "id": [FAILED]}
    )
    assert list(found.choices) == choices
    assert found.start == start


def test_the_history_goes_back_and_forth_and_is_bounded() -> None:
    history = History()
    for number in range(MOST + 5):
        history.add(str(number))
    history.add(str(MOST))
    assert len(history.lines) == MOST
    assert [history.earlier("draft"), history.earlier(""), history.later(""), history.later("")] == [
        str(MOST),
        str(MOST + 4),
        str(MOST),
        "draft",
    ]
    empty = History()
    assert (empty.earlier("x"), empty.later("x")) == ("x", "x")


async def test_a_view_is_kept_only_when_asked_and_shown_again(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "views.json"
    scene = Scene()
    scene.app._shared.views = Views(path, "prod")
    async with scene.app.run_test(size=(120, 40)) as pilot:
        table = await ready(scene, pilot)
        await say(pilot, "filter status:failed")
        await say(pilot, "sort -age")
        await wait_until(lambda: (table.sorted_by, table.reverse) == ("age", True), pilot)
        assert not path.parent.exists()
        await say(pilot, "save bad ones")
        await wait_until(path.exists, pilot)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        await say(pilot, "filter")
        await say(pilot, "sort")
        await wait_until(
            lambda: table.count == 9 and (table.sorted_by, table.reverse) == (None, False), pilot
        )
        await say(pilot, "view bad ones")
        await wait_until(
            lambda: table.count == 1 and (table.sorted_by, table.reverse) == ("age", True), pilot
        )
        await say(pilot, "view bad one")
        await wait_until(lambda: "did you mean bad ones?" in text(scene.app), pilot)
    assert Views(path, "prod").names() == ["bad ones"]
    assert Views(path, "test").names() == []


def test_a_file_with_nonsense_in_it_is_said_to_be_so(tmp_path: Path) -> None:
    path = tmp_path / "views.json"
    for content in (b"\xff", b"[", b"[]", b"[" * 100_000):
        path.write_bytes(content)
        with pytest.raises(ViewsError, match=str(path)):
            Views(path).names()
    path.write_text('{"": {"a": {"filter": 3, "sort": [], "columns": ["age", 7]}, "b": 1}}')
    assert Views(path).get("a") == View(columns=("age",))
    assert Views(path).get("b") is None
    assert Views(path).forget("a")
    assert not Views(path).forget("a")


def test_the_reference_names_every_command() -> None:
    reference = (Path(__file__).parents[2] / "docs" / "reference.md").read_text()
    for command in COMMANDS:
        said = f"{command.name} {command.argument}".strip()
        assert f"| `{said}` | {command.help} |" in reference
