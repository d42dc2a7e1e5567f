"""Where settings come from, which of them holds, and what is said of wrong ones."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.config import Config, ConfigError, load
from jobtui.grammar import SETTING_BY_NAME
from jobtui.model.alarms import Alarms
from jobtui.model.specs import LogRole, SourceSpec

NO_FLAGS: Mapping[str, tuple[str, ...]] = {}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def home_file(home: Path, text: str) -> Path:
    return write(home / ".config" / "jobtui" / "config.toml", text)


def with_file(path: Path, **flags: str) -> Config:
    return load({"config": (str(path),)} | {name: (value,) for name, value in flags.items()}, {})


def test_nothing_is_set_when_nothing_is_given() -> None:
    config = load(NO_FLAGS, {})
    assert config.sources == ()
    assert config.file is None
    assert {effective.origin for effective in config.settings.values()} == {"default"}


def test_flags_win_over_environment_over_profile_over_file(plain_environment: Path) -> None:
    path = home_file(
        plain_environment,
        'srdb = "/of/file"\nsince = "1h"\nuntil = "5m"\nprofile = "prod"\n'
        '[profiles.prod]\nsrdb = "/of/profile"\nsince = "2h"\n[profiles.other]\nsrdb = "/of/other"\n',
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
    path = write(tmp_path / "etc" / "c.toml", 'srdb = ["db", "~/db", "/db"]\nlog = "server=logs/s.log"\n')
    assert [spec.target for spec in with_file(path).sources] == [
        str(tmp_path / "etc" / "db"),
        str(plain_environment / "db"),
        "/db",
        str(tmp_path / "etc" / "logs" / "s.log"),
    ]


@pytest.mark.parametrize("text", ["a=b.log", "x=1"])
def test_a_word_before_an_equals_sign_is_a_role(text: str) -> None:
    with pytest.raises(ConfigError, match="unknown role"):
        load({"log": (text,)}, {})
    assert load({"log": (f"./{text}",)}, {}).sources[0].target == f"./{text}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('srbd = "/db"', 'unknown key "srbd"; did you mean "srdb"?'),
        ("srdb = 3", "srdb: expected a text or a list of texts, found a number"),
        ('srdb = ["/a", true]', "found a list with true or false"),
        ('profile = ["a"]', "profile: expected a text, found a list"),
        ("since = 2", "since: expected a text"),
        ('config = "x"', 'unknown key "config"'),
        ('[profiles.a]\nprofile = "b"', 'unknown key "profile"'),
        ('[profiles.a]\nlgo = "b"', '2:1: profiles.a: unknown key "lgo"; did you mean "log"?'),
        ("profiles = 3", "expected tables"),
        ("[profiles]\na = 3", "profiles.a: expected a table"),
        ('profile = "prd"\n[profiles.prod]', 'no profile "prd"'),
        ('log = "supervsor=x"', 'unknown role "supervsor"'),
        ('log = "server="', "expected a file"),
        ('srdb = "a\\u0000b"', "expected a directory"),
        ("srdb = [", "not TOML"),
    ],
)
def test_a_wrong_file_is_an_error_that_names_file_and_key(tmp_path: Path, text: str, says: str) -> None:
    path = write(tmp_path / "c.toml", text)
    with pytest.raises(ConfigError) as raised:
        with_file(path)
    assert says in str(raised.value)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.toml: no such configuration file \(--config\)"):
        with_file(tmp_path / "gone.toml")
    with pytest.raises(ConfigError, match="JOBTUI_CONFIG"):
        load({}, {"JOBTUI_CONFIG": str(tmp_path / "gone.toml")})
    with pytest.raises(ConfigError, match="cannot be read"):
        with_file(tmp_path)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_bytes(b'srdb = "\xff"')
    with pytest.raises(ConfigError, match=r"c\.toml:1:9: not UTF-8"):
        with_file(path)
    path.write_bytes(b"#" * (1 << 21))
    with pytest.raises(ConfigError, match="not a configuration file"):
        with_file(path)


def test_an_unknown_variable_is_told_and_ignored() -> None:
    (warning,) = load({}, {"JOBTUI_SRBD": "/db", "OTHER": "x"}).warnings
    assert "JOBTUI_SRBD" in warning
    assert '"JOBTUI_SRDB"' in warning


def test_a_wrong_flag_value_names_the_flag() -> None:
    with pytest.raises(ConfigError, match=r"^--log: 'foo=bar': unknown role"):
        load({"log": ("foo=bar",)}, {})


_VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(key=st.sampled_from([*SETTING_BY_NAME, "profiles", "other"]), value=_VALUES)
def test_no_value_does_worse_than_a_clear_error(
    key: str, value: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text(f"{key} = {_toml(value)}\n")
    says = str(path)
    try:
        with_file(path)
    except ConfigError as error:
        says = str(error)
    assert str(path) in says


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, str):
        return (
            '"' + "".join(f"\\U{ord(c):08x}" if not 0xD800 <= ord(c) < 0xE000 else "?" for c in value) + '"'
        )
    return str(value)


def test_journals_are_named_in_every_way_there_is(tmp_path: Path) -> None:
    path = write(tmp_path / "c.toml", 'journal = ["local", "j", "ssh://op@v3:2222", "HTTP://v3:19531/"]\n')
    config = with_file(path)
    wanted = ["local", str(tmp_path / "j"), "ssh://op@v3:2222", "http://v3:19531"]
    assert [spec.target for spec in config.sources] == wanted
    assert {spec.setting for spec in config.sources} == {"journal"}


def test_units_of_journals_go_with_each(tmp_path: Path) -> None:
    config = load({"journal": ("local",), "journal_unit": ("a.service", "b@*")}, {})
    assert [spec.units for spec in config.sources] == [("a.service", "b@*")]


@pytest.mark.parametrize(
    "text", ["ssh://", "ssh://-oProxyCommand=x", "ssh://a b", "ftp://host", "http://", "http://u:p@host"]
)
def test_what_is_no_journal_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--journal"):
        load({"journal": (text,)}, {})


def test_hosts_have_journals_those_of_the_profile_first(tmp_path: Path) -> None:
    path = write(
        tmp_path / "c.toml",
        '[hosts]\n"v7.example.org" = "ssh://v7"\nv8 = "j"\n[profiles.p.hosts]\nv8 = "http://v8:19531"\n',
    )
    assert with_file(path).hosts == {"v7.example.org": "ssh://v7", "v8": str(tmp_path / "j")}
    assert with_file(path, profile="p").hosts["v8"] == "http://v8:19531"


@pytest.mark.parametrize(
    "text", ["hosts = 3", "[hosts]\na = 3", '[hosts]\na = "ftp://x"', "[profiles.p]\nhosts = 1"]
)
def test_wrong_hosts_are_an_error_that_says_where(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "c.toml", text + "\n")
    with pytest.raises(ConfigError, match="hosts"):
        with_file(path)


def test_mounts_are_directories_here_by_those_on_clusters(tmp_path: Path) -> None:
    text = '[mounts]\n"/scratch" = "/mnt/cori"\n[profiles.p.mounts]\n"/scratch" = "cori"\n'
    path = write(tmp_path / "c.toml", text)
    assert with_file(path).mounts == {"/scratch": "/mnt/cori"}
    assert with_file(path, profile="p").mounts == {"/scratch": str(tmp_path / "cori")}


@pytest.mark.parametrize(
    "text",
    ["mounts = 3", '[mounts]\n"/a" = 3', '[mounts]\na=""', '[mounts]\n"/a" = ""', "[profiles.p]\nmounts = 1"],
)
def test_wrong_mounts_are_an_error_that_says_where(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="mounts"):
        with_file(write(tmp_path / "c.toml", text + "\n"))


def test_alarms_are_off_and_those_of_a_profile_hold_for_it(tmp_path: Path) -> None:
    text = '[alarm]\nbell = true\n[profiles.p.alarm]\ncommand = ["a", "b c"]\nrest_s = 90\n'
    path = write(tmp_path / "c.toml", text)
    assert not load({}, {}).alarms
    assert with_file(path).alarms == Alarms(bell=True)
    assert with_file(path, profile="p").alarms == Alarms(command=("a", "b c"), rest_s=90.0)


@pytest.mark.parametrize(
    "text",
    [
        "alarm = 3",
        '[alarm]\ncommand = "rm -rf ~"',
        "[alarm]\ncommand = [1]",
        '[alarm]\ncommand = ["a\\u0000"]',
        "[alarm]\nbell = 1",
        "[alarm]\nrest_s = 9",
        "[alarm]\nrest_s = nan",
        "[alarm]\nbel = true",
        "[profiles.p]\nalarm = 1",
    ],
)
def test_wrong_alarms_are_an_error_that_says_where(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="alarm"):
        with_file(write(tmp_path / "c.toml", text + "\n"))


def test_how_many_events_of_a_balsam_server_are_kept() -> None:
    url = "http://balsam.example.org"
    assert [spec.kept for spec in load({"balsam": (url,)}, {}).sources] == [0]
    assert [spec.kept for spec in load({"balsam": (url,), "balsam_cache": ("500000",)}, {}).sources] == [
        500_000
    ]
    for wrong in ("-1", "many", "5000001", "٣"):
        with pytest.raises(ConfigError, match="no whole number up to 5,000,000"):
            load({"balsam": (url,), "balsam_cache": (wrong,)}, {})
