"""Keys, columns and colours of a user: what is understood, and what is told of mistakes."""

import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.actions import ACTIONS, Keymap, Place, key_of
from jobtui.config import Config, ConfigError, load
from jobtui.keymap import NEEDED, NoSuchKey, clashes, key_named, unreachable, with_wishes
from jobtui.model.looks import ANYWHERE, AUTO, KeyWish, Looks
from jobtui.render.styles import STYLES, mistake_in_style
from jobtui.theme import THEMES, VARIABLE
from tests.personal_tables import PAGE, renewed


def config_of(tmp_path: Path, text: str, profile: str | None = None) -> Config:
    path = tmp_path / "c.toml"
    path.write_text(text)
    flags = {"config": (str(path),)} | ({"profile": (profile,)} if profile else {})
    return load(flags, {})


def mistakes(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        config_of(tmp_path, text)
    return [line.removeprefix(f"{tmp_path / 'c.toml'}:") for line in raised.value.lines]


def test_what_is_not_wanted_otherwise_is_as_usual(tmp_path: Path) -> None:
    assert config_of(tmp_path, "").looks == Looks()


def test_settings_of_the_terminal(tmp_path: Path) -> None:
    text = 'theme = "light"\nglyphs = "ascii"\nclipboard = "tmux"\nmouse = "off"\ntitle = "on"\nfps = 15\n'
    assert config_of(tmp_path, text + "readonly = true\n").looks == Looks(
        theme="light", glyphs="ascii", clipboard="tmux", mouse="off", title=True, fps=15
    )
    assert load({}, {"JOBTUI_THEME": "none", "JOBTUI_FPS": "30"}).looks == Looks(theme="none", fps=30)
    with pytest.raises(ConfigError, match=r"^--theme: 'drak' is none of auto, .*did you mean \"dark\""):
        load({"theme": ("drak",)}, {})
    with pytest.raises(ConfigError, match=r"^JOBTUI_READONLY: cannot be turned off: jobtui only reads$"):
        load({}, {"JOBTUI_READONLY": "0"})


def test_keys_are_written_as_a_person_writes_them(tmp_path: Path) -> None:
    text = '[keys]\ncopy = ["ctrl+X", "F5"]\nfilter = "("\n[keys.logs]\nfollow = []\n'
    wishes = config_of(tmp_path, text + '[profiles.p.keys]\ncopy = "Y"\n').looks.keys
    assert [(wish.place, wish.action, wish.keys) for wish in wishes] == [
        (ANYWHERE, "copy", ("ctrl+x", "f5")),
        (ANYWHERE, "filter", ("left_parenthesis",)),
        ("logs", "follow", ()),
    ]
    assert wishes[0].origin == f"{tmp_path / 'c.toml'}:2"


@pytest.mark.parametrize(
    ("text", "key"),
    [("g", "g"), ("G", "G"), ("/", "slash"), ("?", "question_mark"), ("enter", "enter"), ("Esc", "escape"),
     ("shift+left", "shift+left"), ("ctrl+Y", "ctrl+y"), ("+", "plus"), ("ctrl++", "ctrl+plus"),
     ("-", "minus"),
     ("\\", "backslash"), ("@", "at"), ("pgup", "pageup"), ("F12", "f12"), ("é", "é")],
)  # fmt: skip
def test_names_of_keys(text: str, key: str) -> None:
    assert key_named(text) == key


@given(st.text(max_size=8))
def test_no_text_does_worse_than_be_no_key(text: str) -> None:
    with suppress(NoSuchKey):
        assert key_named(text)


def test_every_action_has_one_name_and_keys_that_can_be_written() -> None:
    for action in ACTIONS:
        assert action.name.replace("-", "").isalnum(), action
        assert {key_named(shown) for shown in action.shown_keys.split()} == set(action.keys)
    assert {action.name for action in ACTIONS} >= set(NEEDED)
    at = [(action.name, place) for action in ACTIONS for place in action.places]
    calls = {(action.name, place, action.call) for action in ACTIONS for place in action.places}
    assert len(set(at)) == len(calls)


def test_the_usual_keys_clash_nowhere() -> None:
    assert list(clashes(())) == []
    assert unreachable(()) == []
    assert set(with_wishes(())) == set(ACTIONS)


def test_a_key_can_be_given_on_one_screen_only() -> None:
    actions = with_wishes((KeyWish("jobs", "sort", ("f5",), ""), KeyWish(ANYWHERE, "copy", ("f6",), "")))
    sorts = {place: one.keys for one in actions if one.name == "sort" for place in one.places}
    assert sorts[Place.JOBS] == ("f5",)
    assert sorts[Place.AGENTS] == ("s",)
    assert {one.keys for one in actions if one.name == "copy"} == {("f6",)}


def test_all_mistakes_are_told_with_line_and_column(tmp_path: Path) -> None:
    text = (
        'srbd = "/db"\n'
        "since = 2\n"
        "[keys]\n"
        'cpoy = "c"\n'
        'sort = "hyper+x"\n'
        'copy = ["y", "s"]\n'
        "quit = []\n"
        "[keys.logs]\n"
        'columns = "c"\n'
        "[columns]\n"
        'jobs = ["state", "agee", "state"]\n'
        'sort = "names"\n'
        "revers = true\n"
        "[colors]\n"
        'eror = "red"\n'
        'status.failed = "very red"\n'
        "[hosts]\n"
        "a = 1\n"
        "[alarm]\n"
        "bel = true\n"
    )
    assert mistakes(tmp_path, text) == [
        '1:1: unknown key "srbd"; did you mean "srdb"?',
        "2:9: since: expected a text, found a number",
        '4:1: keys: no action "cpoy"; did you mean "copy"?',
        '5:8: keys.sort: no key is called "hyper+x"; such as g, G, /, F5, ctrl+x, shift+left, enter',
        '6:8: keys.copy: "s" means both copy and log-set on logs',
        '6:8: keys.copy: "s" means both tab-script and copy on job',
        "7:8: keys.quit: quit needs a key",
        '9:1: keys.logs: no action "columns" on logs; did you mean "command"?',
        '11:18: columns.jobs: no column "agee"; did you mean "age"?',
        '11:26: columns.jobs: "state" is there twice',
        '12:8: columns.sort: no column "names"; did you mean "name"?',
        '13:1: columns: unknown key "revers"; did you mean "reverse"?',
        '15:1: colors: no colour is called "eror"; did you mean "error"?',
        '16:17: colors.status.failed: "very red" is no style; such as "bold red", "#e57373 on black", '
        '"underline"',
        "18:5: hosts.a: expected a text, found a number",
        "20:1: alarm: bel: unknown; there are bell, command, rest_s",
    ]


def test_columns_and_colours_of_a_profile_stand_over_those_of_the_file(tmp_path: Path) -> None:
    text = (
        '[columns]\njobs = ["state", "age"]\nsort = "age"\n[colors]\nerror = "red"\nkey = "blue"\n'
        '[profiles.p.columns]\nreverse = true\n[profiles.p.colors]\n"error" = "bold #ff0000 on default"\n'
    )
    looks = config_of(tmp_path, text).looks
    assert (looks.columns, looks.sort, looks.reverse) == (("state", "age"), "age", False)
    looks = config_of(tmp_path, text, "p").looks
    assert (looks.columns, looks.sort, looks.reverse) == (("state", "age"), "age", True)
    assert looks.colors == {"error": "bold #ff0000 on default", "key": "blue"}


@pytest.mark.parametrize(
    "style", ["red", "bold red", "not dim #0d0e11 on #dcae62", "on blue", "UNDERLINE", "default"]
)
def test_styles_that_are_some(style: str) -> None:
    from rich.style import Style

    assert mistake_in_style(style) == ""
    Style.parse(style)


@pytest.mark.parametrize(
    "style", ["", "on", "not", "red blue", "red on blue on green", "#12", "on bold", "not red", "blink"]
)
def test_styles_that_are_none(style: str) -> None:
    assert "is no style" in mistake_in_style(style)


def test_the_styles_a_user_may_name_are_those_of_the_themes() -> None:
    known = {VARIABLE + name.replace(".", "-") for name in STYLES}
    of_themes = {name for theme in THEMES for name in theme.variables if name.startswith(VARIABLE)}
    assert of_themes == known


@pytest.mark.parametrize(
    ("mouse", "environ", "takes"),
    [
        (AUTO, {}, True),
        (AUTO, {"SSH_TTY": "/dev/pts/1"}, False),
        (AUTO, {"SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}, False),
        ("on", {"SSH_TTY": "/dev/pts/1"}, True),
        ("off", {}, False),
    ],
)
def test_the_mouse_is_left_alone_over_ssh(mouse: str, environ: dict[str, str], takes: bool) -> None:
    assert Looks(mouse=mouse).takes_mouse(environ) is takes


def test_over_ssh_it_paints_less_often() -> None:
    assert Looks().most_fps({}) is None
    assert Looks().most_fps({"SSH_TTY": "/dev/pts/1"}) == 20
    assert Looks(fps=7).most_fps({"SSH_TTY": "/dev/pts/1"}) == 7


def test_words_name_the_keys_that_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    assert key_of("app.pause") == "p"
    monkeypatch.setattr(Keymap, "actions", with_wishes((KeyWish(ANYWHERE, "pause", ("f8",), ""),)))
    assert key_of("app.pause") == "f8"
    assert key_of("not there") == ""


def test_the_page_names_every_action_column_and_colour() -> None:
    page = PAGE.read_text()
    assert renewed(page) == page, "renew it: .venv/bin/python -m tests.personal_tables"


def test_the_example_of_the_page_is_right(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    looks = config_of(tmp_path, example).looks
    assert looks.columns
    assert looks.keys
    assert looks.colors


def test_who_wants_nothing_otherwise_pays_nothing() -> None:
    """Neither the file's parser nor what reads keys, columns and colours is imported."""
    code = (
        "import sys; from jobtui.config import load; load({}, {}); "
        "unwanted = {'jobtui.config.personal', 'jobtui.keymap', 'jobtui.actions', 'jobtui.render'}; "
        "sys.exit(', '.join(unwanted & set(sys.modules)) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
