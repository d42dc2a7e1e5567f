"""What names an archive of scripts, on the command line, in the file, and spelled again."""

from pathlib import Path

import pytest

from jobtui.commands.spelled import of_specs, spelled
from jobtui.config import load
from jobtui.model.script_specs import parse_archive, parse_elastic, parse_kafka
from jobtui.model.specs import SourceSpec


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
