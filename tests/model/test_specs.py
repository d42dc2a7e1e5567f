"""What names a server of traces or an archive of scripts."""

from collections.abc import Callable
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


Parse = Callable[[str], SourceSpec]
TAKEN: tuple[tuple[Parse, str, SourceSpec], ...] = (
    *(
        (parse, text, SourceSpec(setting, target))
        for parse, setting in ((parse_jaeger, "jaeger"), (parse_tempo, "tempo"))
        for text, target in (
            ("http://localhost:16686", "http://localhost:16686"),
            (" HTTPS://jaeger.example.org/jaeger/ ", "https://jaeger.example.org/jaeger"),
            ("http://[::1]:3200", "http://[::1]:3200"),
        )
    ),
    (parse_archive, "/srv/a", SourceSpec("archive", "/srv/a")),
    (parse_archive, "huppel=/srv/a", SourceSpec("archive", "/srv/a", label="huppel")),
    (parse_archive, "my-cluster.2=/srv/a=b", SourceSpec("archive", "/srv/a=b", label="my-cluster.2")),
    (parse_archive, "./a=b", SourceSpec("archive", "./a=b")),
    (parse_archive, "/srv/a=b", SourceSpec("archive", "/srv/a=b")),
    (parse_elastic, "https://es:9200/sarchive", SourceSpec("elastic", "https://es:9200/sarchive")),
    (parse_elastic, "http://es/path/to/index/", SourceSpec("elastic", "http://es/path/to/index")),
    *(
        (parse_kafka, text, SourceSpec("kafka", text))
        for text in ("k1:9092/jobs", "k1:9092,k2:9092/sarchive.v1", "[::1]:9092/t")
    ),
)


@pytest.mark.parametrize(("parse", "text", "spec"), TAKEN)
def test_what_is_named_is_understood(parse: Parse, text: str, spec: SourceSpec) -> None:
    assert parse(text) == spec


NOT_TAKEN: tuple[tuple[Parse, str, tuple[str, ...]], ...] = (
    (parse_jaeger, "expected http://host:port",
     ("", "host:1", "ftp://h", "http://", "http://h?x=1", "http://h/a b", "http:///x", "http://[h", "http://h:99999")),
    (parse_tempo, "JOBTUI_TEMPO_BASIC", ("http://ann:s3cr3t@host",)),
    (parse_otlp_listen, "expected HOST:PORT",
     ("", "host", "host:99999", "http://h:1", "a b:1", ":x", "\0:1")),
    (parse_archive, "directory", ("", "huppel=", " ", "a\0b")),
    (parse_elastic, "", ("https://es:9200", "es:9200/x", "ftp://es/x", "https://u:p@es/x", "")),
    (parse_kafka, "host:port", ("k1:9092", "/t", "k1/", "k 1/t", "k1/a/b")),
)  # fmt: skip


@pytest.mark.parametrize(("parse", "words", "texts"), NOT_TAKEN)
def test_what_is_not_understood_is_said_without_a_login(
    parse: Parse, words: str, texts: tuple[str, ...]
) -> None:
    for text in texts:
        with pytest.raises(ValueError, match=r"\w") as raised:
            parse(text)
        assert words in str(raised.value)
        assert "s3cr3t" not in str(raised.value)


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
