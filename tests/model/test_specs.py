"""How sources and servers are named, and how they want to be asked."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.backends.registry import told_apart
from jobtui.commands.open import of_specs, spelled
from jobtui.config import load
from jobtui.config.access import access_of_environment, access_of_table, accesses_of, holds_secrets, merged
from jobtui.model.clock import from_seconds
from jobtui.model.ids import JobId, answers_to, labels_of, meant_by, named, numbered, system_job_id
from jobtui.model.job_reader import SbatchStatus, sbatch_status
from jobtui.model.specs import (
    Access,
    SourceSpec,
    is_loopback,
    listen_place,
    parse_archive,
    parse_balsam,
    parse_elastic,
    parse_jaeger,
    parse_kafka,
    parse_otlp_listen,
    parse_tempo,
)
from tests.analysis.captured import ROOT


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


SECRET = "s3cr3t-t0k3n"


@pytest.mark.parametrize(
    ("table", "access"),
    [
        ({}, Access()),
        ({"bearer": SECRET}, Access(bearer=SECRET)),
        ({"bearer": "$TOKEN"}, Access(bearer="of-the-environment")),
        ({"user": "ann", "password": "p:w"}, Access(user="ann", password="p:w")),
        ({"bearer_file": "/token", "ca_file": "/ca"}, Access(bearer_file="/token", ca_file="/ca")),
        ({"headers": {"X-Scope-OrgID": "t1", "X-Key": "$TOKEN"}},
         Access(headers=(("X-Scope-OrgID", "t1"), ("X-Key", "of-the-environment")))),
    ],
)  # fmt: skip
def test_a_table_says_how_a_server_wants_to_be_asked(table: object, access: Access) -> None:
    assert access_of_table(table, {"TOKEN": "of-the-environment"}) == access


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("x", "expected a table"),
        ({"baerer": SECRET}, 'unknown key "baerer", there is bearer'),
        ({"bearer": 7}, "bearer: expected a text"),
        ({"bearer": ""}, "bearer: expected a text"),
        ({"bearer": f"{SECRET}\r\nX: y"}, "bearer: has characters that cannot be sent"),
        ({"bearer": "$NOT_SET"}, "bearer: the environment variable NOT_SET is not set"),
        ({"bearer": SECRET, "user": "ann"}, "bearer and user are given, only one can be sent"),
        ({"user": "an:n", "password": SECRET}, "user: has a colon in it"),
        ({"headers": [SECRET]}, "headers: expected a table"),
        ({"headers": {"X-Key": f"{SECRET}\n"}}, "X-Key: has characters that cannot be sent"),
        ({"headers": {"X Key": SECRET}}, "a header has a name that is none"),
        ({"J_BASIC": SECRET}, "J_BASIC: expected USER:PASSWORD"),
        ({"J_HEADERS": SECRET}, "expected NAME: VALUE"),
        ({"J_BEARER": f"{SECRET} {SECRET}\x7f"}, "J_*: bearer: has characters"),
    ],
)
def test_a_table_or_variable_that_is_wrong_is_told_without_its_value(table: Any, words: str) -> None:
    of_variables = "J_" in str(table)
    with pytest.raises(ValueError, match=r".") as raised:
        access_of_environment("J", table) if of_variables else access_of_table(table, {})
    assert words in str(raised.value)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("environ", "access"),
    [
        ({}, Access()),
        ({"JOBTUI_JAEGER_BEARER": SECRET}, Access(bearer=SECRET)),
        ({"JOBTUI_JAEGER_BASIC": f"ann:{SECRET}:x"}, Access(user="ann", password=f"{SECRET}:x")),
        ({"JOBTUI_JAEGER_HEADERS": "X-A: 1; X-B:2"}, Access(headers=(("X-A", "1"), ("X-B", "2")))),
        ({"JOBTUI_TEMPO_BEARER": SECRET}, Access()),
    ],
)
def test_variables_say_the_same(environ: dict[str, str], access: Access) -> None:
    assert access_of_environment("JOBTUI_JAEGER", environ) == access


def test_what_is_said_above_wins_and_one_login_is_sent() -> None:
    file = Access(bearer_file="/token", headers=(("X-A", "1"),), ca_file="/ca.pem")
    assert merged(file, Access(user="ann", password="p")) == Access(
        user="ann", password="p", headers=(("X-A", "1"),), ca_file="/ca.pem"
    )
    assert merged(file, Access(ca_file="/other.pem")) == file._replace(ca_file="/other.pem")


def test_tables_are_by_address_and_their_files_beside_the_configuration() -> None:
    tables = {"HTTPS://Jaeger.example.org/x/": {"bearer_file": "token", "ca_file": "/ca.pem"}}
    assert accesses_of(tables, "/etc/jobtui", {}) == {
        "https://Jaeger.example.org/x": Access(bearer_file="/etc/jobtui/token", ca_file="/ca.pem")
    }
    wrong: object
    for wrong in ("x", {"no address": {}}, {f"https://u:{SECRET}@host": {}}, {"https://h": {"x": 1}}):
        with pytest.raises(ValueError, match=r"^[^\n]+$") as raised:
            accesses_of(wrong, "/", {})
        assert SECRET not in str(raised.value)


def test_secrets_are_not_in_a_representation_and_their_place_is_known() -> None:
    assert SECRET not in repr(Access(SECRET, "", "", SECRET, (("X", SECRET),)))
    assert holds_secrets({"https://h": {"bearer": SECRET}})
    assert holds_secrets({"https://h": {"headers": {"X": SECRET}}})
    assert not holds_secrets({"https://h": {"bearer": "$X", "headers": {"X": "$Y"}, "bearer_file": "/f"}})


HOSTS = ("https://balsam-dev.alcf.anl.gov", "https://balsam-prod.alcf.anl.gov")


@pytest.mark.parametrize(
    ("urls", "labels"),
    [
        ([], []),
        (["http://one.example.org:8000"], [""]),
        (HOSTS, ["balsam-dev", "balsam-prod"]),
        (["http://b.one.org", "http://b.two.org"], ["b.one.org", "b.two.org"]),
        (["http://127.0.0.1:8000", "http://127.0.0.2:8000"], ["127.0.0.1", "127.0.0.2"]),
        (["http://h:8000", "http://h:8001"], ["h:8000", "h:8001"]),
        (["http://h/a", "http://h/b"], ["h-a", "h-b"]),
        (["http://h", "https://h"], ["http:h", "https:h"]),
        (["http://[::1]:8000", "http://[::1]:8001"], ["::1-:8000", "::1-:8001"]),
    ],
)
def test_the_shortest_label_by_which_they_differ(urls: list[str], labels: list[str]) -> None:
    assert list(labels_of(urls).values()) == labels


ADDRESSES = st.from_regex(r"https?://[a-z0-9.]{1,8}(:[0-9]{1,4})?(/[a-z~%+]{1,6})?", fullmatch=True)


@given(st.lists(ADDRESSES, min_size=2, max_size=6, unique=True))
def test_no_two_have_the_same_and_ids_with_them_are_understood(urls: list[str]) -> None:
    labels = labels_of(urls)
    assert len(set(labels.values())) == len(urls)
    for url, label in labels.items():
        job_id = system_job_id(named("balsam", label), 7)
        assert numbered(job_id) == ("balsam", label, "7")
        assert job_id in meant_by(job_id, labels, "balsam")
        assert answers_to(url, label) or label.rpartition("-")[0]


@pytest.mark.parametrize(
    ("thing", "ids"),
    [
        ("balsam/12", ["balsam@balsam-dev/12", "balsam@balsam-prod/12"]),
        ("balsam@balsam-dev/12", ["balsam@balsam-dev/12"]),
        ("balsam@balsam-dev.alcf.anl.gov/12", ["balsam@balsam-dev/12"]),
        ("balsam@elsewhere/12", ["balsam@elsewhere/12"]),
        ("slurm/12", ["slurm/12"]),
        ("vn9mTZvN-WTIZYtEW-animation", ["vn9mTZvN-WTIZYtEW-animation"]),
    ],
)
def test_which_servers_an_id_means(thing: str, ids: list[str]) -> None:
    assert meant_by(thing, labels_of(HOSTS), "balsam") == ids


def test_the_only_server_is_meant_by_any_of_its_names() -> None:
    assert meant_by("balsam@balsam-dev/3", {HOSTS[0]: ""}, "balsam") == [JobId("balsam/3")]
    assert meant_by("balsam@other/3", {HOSTS[0]: ""}, "balsam") == [JobId("balsam@other/3")]


def test_sources_are_told_apart_and_none_comes_twice() -> None:
    one, other = map(parse_balsam, HOSTS)
    log = SourceSpec("log", "/var/log/x")
    assert [spec.label for spec in told_apart([one, log, other, one])] == ["balsam-dev", "", "balsam-prod"]
    assert told_apart([log, one, one]) == (log, one)


FILES = sorted((ROOT / "sbatch" / "scratch").rglob("sbatch_status.json"))


def test_real_ones() -> None:
    found = {
        status.slurm_id: status.state
        for path in FILES
        if (status := sbatch_status(json.loads(path.read_text())))
    }
    assert found == {"12": "completed", "13": "error", "14": "completed", "15": "canceled", "16": "canceled"}


def test_times_and_progress() -> None:
    document = {
        "job_cmd_state": "sbatch_run_status_stop", "sbatch_id": 7, "computeJobSerial": 1795207669,
        "computeJobStart": None, "parallelStatus": {"percentComplete": 41.5},
    }  # fmt: skip
    assert sbatch_status(document) == SbatchStatus(
        "sbatch_run_status_stop", "7", from_seconds(1795207669), None, 41.5
    )
    message = {"py": {"percentComplete": 3}, "json": "{}"}
    status = sbatch_status({"job_cmd_state": "running", "parallelStatus": message})
    assert status is not None
    assert status.percent == 3.0


@pytest.mark.parametrize("slurm_id", ["", "12; rm", None, [], {}])
def test_an_odd_id_is_none(slurm_id: object) -> None:
    status = sbatch_status({"job_cmd_state": "running", "sbatch_id": slurm_id})
    assert status is not None
    assert status.slurm_id is None


@pytest.mark.parametrize("document", [None, [], 3, {}, {"job_cmd_state": 3}, {"sbatch_id": 7}])
def test_what_tells_no_state_is_none(document: object) -> None:
    assert sbatch_status(document) is None
