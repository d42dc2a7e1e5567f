"""What names a server of traces or an archive of scripts."""

from pathlib import Path

import pytest

from jobtui.commands.open import of_specs, spelled
from jobtui.config import load
from jobtui.model.specs import (
    SourceSpec,
    is_loopback,
    listen_place,
    parse_archive,
    parse_elastic,
    parse_jaeger,
    parse_kafka,
    parse_otlp_listen,
    parse_tempo,
)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("http://localhost:16686", "http://localhost:16686"),
        (" HTTPS://jaeger.example.org/jaeger/ ", "https://jaeger.example.org/jaeger"),
        ("http://[::1]:3200", "http://[::1]:3200"),
    ],
)
def test_an_address_of_a_server(text: str, target: str) -> None:
    assert (parse_jaeger(text).target, parse_jaeger(text).setting) == (target, "jaeger")
    assert (parse_tempo(text).target, parse_tempo(text).setting) == (target, "tempo")


@pytest.mark.parametrize(
    "text", ["", "host:1", "ftp://h", "http://", "http://h?x=1", "http://h/a b", "http:///x"]
)
def test_what_is_no_address_of_a_server(text: str) -> None:
    with pytest.raises(ValueError, match="expected http://host:port"):
        parse_jaeger(text)


def test_a_login_in_an_address_is_not_taken_and_not_repeated() -> None:
    with pytest.raises(ValueError, match="JOBTUI_TEMPO_BASIC") as raised:
        parse_tempo("http://ann:s3cr3t@host")
    assert "s3cr3t" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "place", "is_here"),
    [
        ("4318", ("127.0.0.1", 4318), True),
        (":9", ("127.0.0.1", 9), True),
        (":", ("127.0.0.1", 4318), True),
        ("localhost:0", ("localhost", 0), True),
        ("[::1]:4318", ("::1", 4318), True),
        ("0.0.0.0:4318", ("0.0.0.0", 4318), False),
        ("*:4318", ("*", 4318), False),
        ("host.example.org:1", ("host.example.org", 1), False),
    ],
)
def test_an_address_to_listen_at_is_on_loopback_unless_it_says_otherwise(
    text: str, place: tuple[str, int], is_here: bool
) -> None:
    found = listen_place(parse_otlp_listen(text).target)
    assert found == place
    assert is_loopback(found[0]) is is_here


@pytest.mark.parametrize("text", ["", "host", "host:99999", "http://h:1", "a b:1", ":x", "\0:1"])
def test_what_is_no_address_to_listen_at(text: str) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        parse_otlp_listen(text)


@pytest.mark.parametrize(
    ("text", "label", "path"),
    [
        ("/srv/a", "", "/srv/a"),
        ("huppel=/srv/a", "huppel", "/srv/a"),
        ("my-cluster.2=/srv/a=b", "my-cluster.2", "/srv/a=b"),
        ("./a=b", "", "./a=b"),
        ("/srv/a=b", "", "/srv/a=b"),
    ],
)
def test_a_directory_may_have_the_label_of_its_cluster(text: str, label: str, path: str) -> None:
    assert parse_archive(text) == SourceSpec("archive", path, label=label)


@pytest.mark.parametrize("text", ["", "huppel=", " ", "a\0b"])
def test_what_is_no_directory(text: str) -> None:
    with pytest.raises(ValueError, match="directory"):
        parse_archive(text)


@pytest.mark.parametrize("text", ["https://es:9200/sarchive", "http://es/path/to/index/"])
def test_an_index_is_the_end_of_an_address(text: str) -> None:
    assert parse_elastic(text).target == text.rstrip("/")


@pytest.mark.parametrize("text", ["https://es:9200", "es:9200/x", "ftp://es/x", "https://u:p@es/x", ""])
def test_what_is_no_index(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_elastic(text)


@pytest.mark.parametrize("text", ["k1:9092/jobs", "k1:9092,k2:9092/sarchive.v1", "[::1]:9092/t"])
def test_a_topic_stands_behind_its_brokers(text: str) -> None:
    assert parse_kafka(text).target == text


@pytest.mark.parametrize("text", ["k1:9092", "/t", "k1/", "k 1/t", "k1/a/b"])
def test_what_is_no_topic(text: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        parse_kafka(text)


def test_paths_of_the_file_are_relative_to_it_and_logins_come_from_it(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        'archive = ["my-cluster=scripts"]\nelastic = ["https://es/x"]\nkafka = ["k:1/t"]\n'
        'kafka_config = "k.properties"\n'
        '[servers."https://es/x"]\nuser = "reader"\npassword = "$ES_PASSWORD"\n'
    )
    config = load({"config": (str(file),)}, {"ES_PASSWORD": "hunter2"})
    found = {spec.setting: spec for spec in config.sources}
    assert (found["archive"].label, found["archive"].target) == ("my-cluster", str(tmp_path / "scripts"))
    assert (found["elastic"].access.user, found["elastic"].access.password) == ("reader", "hunter2")
    assert found["kafka"].options == str(tmp_path / "k.properties")
    assert "hunter2" not in repr(config)


def test_flags_are_spelled_so_that_they_hold_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = load({"archive": ("my-cluster=scripts",)}, {})
    assert spelled(config, config.sources) == ("--archive", f"my-cluster={tmp_path / 'scripts'}")
    assert of_specs(config.sources) == ("--archive", f"my-cluster={tmp_path / 'scripts'}")
