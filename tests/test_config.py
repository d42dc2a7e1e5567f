"""Command lines and settings: what they say, where settings come from, and what is said of wrong ones."""

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui import actions as keys
from jobtui.cli import UsageError, main, parse
from jobtui.config import Config, ConfigError, load
from jobtui.config.file import SettingPosition as TomlPosition
from jobtui.config.file import positions_of
from jobtui.grammar import COMMANDS, DASHBOARD, SETTINGS, Option, flags_of
from jobtui.model.settings import ANYWHERE, Alarms, Appearance, KeyWish
from jobtui.model.specs import LogRole, SourceSpec
from jobtui.render.styles import mistake_in_style, style_names
from jobtui.theme import THEMES, VARIABLE
from tests.offenders import each
from tests.reference import CONFIGURATION
from tests.rows import ROWS, table


def config_of(folder: Path, text: str, **flags: str) -> Config:
    """What holds with a file of this text there, and these flags."""
    path = folder / "c.toml"
    path.write_text(text)
    return load({"config": (str(path),)} | {name: (value,) for name, value in flags.items()}, {})


def test_nothing_is_set_when_nothing_is_given() -> None:
    config = load({}, {})
    assert config.sources == ()
    assert config.file is None
    assert {effective.origin for effective in config.settings.values()} == {"default"}


def test_flags_win_over_environment_over_profile_over_file(plain_environment: Path) -> None:
    path = plain_environment / ".config" / "jobtui" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(
        'srdb = "/of/file"\nsince = "1h"\nuntil = "5m"\nprofile = "prod"\n'
        '[profiles.prod]\nsrdb = "/of/profile"\nsince = "2h"\n[profiles.other]\nsrdb = "/of/other"\n'
    )

    def srdb(flags: Mapping[str, tuple[str, ...]], environ: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
        return load(flags, environ).settings["srdb"]

    assert srdb({}, {}) == (("/of/profile",), f"{path}:6")
    assert srdb({"profile": ("other",)}, {}) == (("/of/other",), f"{path}:9")
    assert srdb({}, {"JOBTUI_PROFILE": "other"})[0] == ("/of/other",)
    assert srdb({}, {"JOBTUI_SRDB": "/of/environ"}) == (("/of/environ",), "JOBTUI_SRDB")
    assert srdb({"srdb": ("/of/flag",)}, {"JOBTUI_SRDB": "/of/environ"}) == (("/of/flag",), "--srdb")
    config = load({}, {})
    assert config.settings["since"].values == ("2h",)
    assert config.settings["until"] == (("5m",), f"{path}:3")
    assert (config.profile, config.profiles, config.file) == ("prod", ("prod", "other"), str(path))


def test_sources_come_in_the_order_of_the_table_and_once() -> None:
    config = load({"log": ("server=s.log", "a.log", "supervisor=./s.log"), "srdb": ("/db", "/db/")}, {})
    assert config.sources == (
        SourceSpec("srdb", "/db/"),
        SourceSpec("log", "./s.log", LogRole.SUPERVISOR),
        SourceSpec("log", "a.log", LogRole.AUTO),
    )


def test_a_variable_holds_several_values() -> None:
    config = load({}, {"JOBTUI_LOG": "server=/a b.log; /c.log ;", "JOBTUI_SRDB": "  "})
    assert [spec.target for spec in config.sources] == ["/a b.log", "/c.log"]
    assert config.settings["srdb"].origin == "default"


def test_paths_of_a_file_are_relative_to_it_and_know_home(tmp_path: Path, plain_environment: Path) -> None:
    config = config_of(tmp_path, 'srdb = ["db", "~/db", "/db"]\nlog = "server=logs/s.log"\n')
    places = [tmp_path / "db", plain_environment / "db", Path("/db"), tmp_path / "logs" / "s.log"]
    assert [spec.target for spec in config.sources] == [*map(str, places)]


@each("a=b.log", "x=1")
def test_a_word_before_an_equals_sign_is_a_role_and_a_wrong_one_names_the_flag(text: str) -> None:
    with pytest.raises(ConfigError, match=rf"^--log: '{text}': unknown role"):
        load({"log": (text,)}, {})
    assert load({"log": (f"./{text}",)}, {}).sources[0].target == f"./{text}"


MISTAKES = table("config_mistakes")
HUGE = [
    [f"fps = {'9' * 5_000}", ":1: a number has thousands of digits"],
    [f"fps = 0x{'f' * 5_000}", "fps: expected"],
]


@pytest.mark.parametrize(("text", "says"), [*MISTAKES["wrong"], *HUGE])
def test_a_wrong_file_is_an_error_that_names_file_and_key(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        config_of(tmp_path, text)
    assert says in str(raised.value)
    assert str(tmp_path / "c.toml") in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_was_asked_for_must_be_a_text_that_is_there(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone.toml")
    with pytest.raises(ConfigError, match=r"gone\.toml: no such configuration file \(--config\)"):
        load({"config": (gone,)}, {})
    with pytest.raises(ConfigError, match="JOBTUI_CONFIG"):
        load({}, {"JOBTUI_CONFIG": gone})
    with pytest.raises(ConfigError, match="cannot be read"):
        load({"config": (str(tmp_path),)}, {})
    path = tmp_path / "c.toml"
    for data, says in (
        (b'srdb = "\xff"', r"c\.toml:1:9: not UTF-8"),
        (b"#" * (1 << 21), "not a configuration"),
    ):
        path.write_bytes(data)
        with pytest.raises(ConfigError, match=says):
            load({"config": (str(path),)}, {})


def test_an_unknown_variable_is_reported_and_ignored() -> None:
    (warning,) = load({}, {"JOBTUI_SRBD": "/db", "OTHER": "x"}).warnings
    assert "JOBTUI_SRBD" in warning
    assert '"JOBTUI_SRDB"' in warning


def test_journals_are_named_in_every_way_there_is_and_have_their_units(tmp_path: Path) -> None:
    config = config_of(tmp_path, 'journal = ["local", "j", "ssh://op@v3:2222", "HTTP://v3:19531/"]\n')
    wanted = ["local", str(tmp_path / "j"), "ssh://op@v3:2222", "http://v3:19531"]
    assert [spec.target for spec in config.sources] == wanted
    assert {spec.setting for spec in config.sources} == {"journal"}
    config = load({"journal": ("local",), "journal_unit": ("a.service", "b@*")}, {})
    assert [spec.units for spec in config.sources] == [("a.service", "b@*")]


@each("ssh://", "ssh://-oProxyCommand=x", "ssh://a b", "ftp://host", "http://", "http://u:p@host")
def test_a_value_that_is_not_a_journal_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--journal"):
        load({"journal": (text,)}, {})


@pytest.mark.parametrize(
    ("text", "name", "whole", "of_profile"),
    [
        (
            '[hosts]\n"v7.example.org" = "ssh://v7"\nv8 = "j"\n[profiles.p.hosts]\nv8 = "http://v8:19531"\n',
            "hosts", {"v7.example.org": "ssh://v7", "v8": "{}/j"},
            {"v7.example.org": "ssh://v7", "v8": "http://v8:19531"},
        ),
        (
            '[mounts]\n"/scratch" = "/mnt/cori"\n[profiles.p.mounts]\n"/scratch" = "cori"\n',
            "mounts", {"/scratch": "/mnt/cori"}, {"/scratch": "{}/cori"},
        ),
        (
            '[alarm]\nbell = true\n[profiles.p.alarm]\ncommand = ["a", "b c"]\nrest_s = 90\n',
            "alarms", Alarms(bell=True), Alarms(command=("a", "b c"), rest_s=90.0),
        ),
    ],
)  # fmt: skip
def test_a_table_of_a_profile_applies_to_that_profile(
    tmp_path: Path, text: str, name: str, whole: object, of_profile: object
) -> None:
    def found(**flags: str) -> str:
        return str(getattr(config_of(tmp_path, text, **flags), name)).replace(str(tmp_path), "{}")

    assert found() == str(whole)
    assert found(profile="p") == str(of_profile)
    assert not getattr(load({}, {}), name)


@given(st.text(alphabet="ab1.=[]{}\"'\\,#\n \t-", max_size=60))
def test_positions_of_accepts_any_text(text: str) -> None:
    assert positions_of(text).of(("x",)) == TomlPosition(1, 1)


def test_settings_of_the_terminal(tmp_path: Path) -> None:
    text = 'theme = "light"\nglyphs = "ascii"\nclipboard = "tmux"\nmouse = "off"\ntitle = "on"\nfps = 15\n'
    looks = Appearance(theme="light", glyphs="ascii", clipboard="tmux", mouse="off", title=True, fps=15)
    assert config_of(tmp_path, text).looks == looks
    assert config_of(tmp_path, "").looks == Appearance()
    assert load({}, {"JOBTUI_THEME": "none", "JOBTUI_FPS": "30"}).looks == Appearance(theme="none", fps=30)
    with pytest.raises(ConfigError, match=r"^--theme: 'drak' is not one of auto, .*did you mean \"dark\""):
        load({"theme": ("drak",)}, {})


def test_keys_are_written_as_people_write_them(tmp_path: Path) -> None:
    text = '[keys]\ncopy = ["ctrl+X", "F5"]\nfilter = "("\n[keys.logs]\nfollow = []\n'
    wishes = config_of(tmp_path, text + '[profiles.p.keys]\ncopy = "Y"\n').looks.keys
    assert [(wish.screen, wish.action, wish.keys) for wish in wishes] == [
        (ANYWHERE, "copy", ("ctrl+x", "f5")),
        (ANYWHERE, "filter", ("left_parenthesis",)),
        ("logs", "follow", ()),
    ]
    assert wishes[0].origin == f"{tmp_path / 'c.toml'}:2"


@given(st.text(max_size=8))
def test_any_text_is_a_key_or_a_mistake(text: str) -> None:
    with suppress(keys.NoSuchKey):
        assert keys.key_named(text)


def test_every_action_has_one_name_and_valid_keys() -> None:
    for action in keys.ACTIONS:
        assert action.name.replace("-", "").isalnum(), action
        assert {keys.key_named(keys.shown_key(key)) for key in action.keys} == set(action.keys)
    assert {action.name for action in keys.ACTIONS} >= set(keys.NEEDED)
    at = [(action.name, place) for action in keys.ACTIONS for place in action.screens]
    calls = {(action.name, place, action.call) for action in keys.ACTIONS for place in action.screens}
    assert len(set(at)) == len(calls)


def test_default_keys_do_not_conflict() -> None:
    assert list(keys.clashes(())) == []
    assert keys.unreachable(()) == []
    assert set(keys.with_wishes(())) == set(keys.ACTIONS)


def test_a_key_can_be_given_on_one_screen_only() -> None:
    actions = keys.with_wishes((KeyWish("jobs", "sort", ("f5",), ""), KeyWish(ANYWHERE, "copy", ("f6",), "")))
    sorts = {place: one.keys for one in actions if one.name == "sort" for place in one.screens}
    assert sorts[keys.ScreenName.JOBS] == ("f5",)
    assert sorts[keys.ScreenName.AGENTS] == ("s",)
    assert {one.keys for one in actions if one.name == "copy"} == {("f6",)}


def test_all_mistakes_are_reported_with_line_and_column(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        config_of(tmp_path, MISTAKES["all"]["file"])
    said = [line.removeprefix(f"{tmp_path / 'c.toml'}:") for line in raised.value.lines]
    assert said == MISTAKES["all"]["said"]


GOOD_STYLES = ("red", "bold red", "not dim #0d0e11 on #dcae62", "on blue", "UNDERLINE", "default")
BAD_STYLES = ("", "on", "not", "red blue", "red on blue on green", "#12", "on bold", "not red", "blink")


@each(*GOOD_STYLES, *BAD_STYLES)
def test_mistake_in_style_agrees_with_rich(style: str) -> None:
    from rich.style import Style

    if style in GOOD_STYLES:
        assert mistake_in_style(style) == ""
        Style.parse(style)
    else:
        assert "is not a style" in mistake_in_style(style)


def test_the_styles_a_user_may_name_are_those_of_the_themes() -> None:
    known = {VARIABLE + name.replace(".", "-") for name in style_names()}
    of_themes = {name for theme in THEMES for name in theme.variables if name.startswith(VARIABLE)}
    assert of_themes == known


@each(*ROWS["whether the mouse is taken"])
def test_over_ssh_the_mouse_is_left_alone_and_it_paints_less_often(
    mouse: str, environ: dict[str, str], takes: bool
) -> None:
    assert Appearance(mouse=mouse).takes_mouse(environ) is takes
    assert Appearance().most_fps(environ) == (20 if environ else None)
    assert Appearance(fps=7).most_fps(environ) == (7 if environ else Appearance(fps=7).most_fps({}))


def test_key_of_gives_the_key_in_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    assert keys.key_of("app.pause") == "p"
    monkeypatch.setattr(keys.Keymap, "actions", keys.with_wishes((KeyWish(ANYWHERE, "pause", ("f8",), ""),)))
    assert keys.key_of("app.pause") == "f8"
    assert keys.key_of("not there") == ""


def test_the_example_of_the_page_is_right(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", CONFIGURATION.read_text(), re.DOTALL)
    looks = config_of(tmp_path, example).looks
    assert looks.columns
    assert looks.keys
    assert looks.colors


LINES = table("command_lines")["lines"]


@each(*LINES)
def test_parse_reads_a_command_line(
    line: list[str], command: str, words: list[str], settings: dict[str, list[str]], flags: dict[str, str]
) -> None:
    found = parse(line)
    assert (found.command.name, list(found.words)) == (command, words)
    assert ({name: list(values) for name, values in found.settings.items()}, found.flags) == (settings, flags)
    assert "help" in parse(["jobs", "-h"]).flags


def test_help_and_version_read_no_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--srdb", "/nowhere", "help", "show"]) == 0
    as_word = capsys.readouterr().out
    assert main(["show", "--help"]) == 0
    assert "Usage: jobtui [FLAGS] show ID" in (as_flag := capsys.readouterr().out)
    assert as_word == as_flag
    assert main(["--version", "--srdb", "/nowhere"]) == 0
    assert capsys.readouterr().out.startswith("jobtui 0")


def test_help_names_everything_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    program = capsys.readouterr().out
    assert all(f"  {command.name}" in program and command.summary[:20] in program for command in COMMANDS)
    assert all(f"{setting.flag} " in program for setting in SETTINGS)
    for command in COMMANDS:
        main([command.name, "--help"])
        own = capsys.readouterr().out
        assert all(flag.flag in own for flag in command.flags)
        assert max(map(len, own.splitlines())) <= 100


def test_each_spelling_has_one_meaning() -> None:
    meaning: dict[str, object] = {}
    everything: list[Option] = [flag for command in (DASHBOARD, *COMMANDS) for flag in flags_of(command)]
    for flag in everything:
        for spelling in (flag.flag, flag.short and f"-{flag.short}"):
            if spelling:
                told = flag._replace(help="")
                assert meaning.setdefault(spelling, told) == told
    assert not set(meaning) & {setting.flag for setting in SETTINGS}


_WORDS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        ["--", "-", "-f", "-n", "--json", "--srdb", "--srdb=x", "logs", "jobs", "-fn", "--lines=3"]
    ),
)


@given(st.lists(_WORDS, max_size=6))
def test_no_command_line_breaks_the_parser(arguments: list[str]) -> None:
    with suppress(UsageError):
        parse(arguments)
