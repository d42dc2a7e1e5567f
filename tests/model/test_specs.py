"""How sources and servers are named, and how they want to be asked."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.backends.registry import with_labels
from jobtui.commands.context import of_specs, spelled
from jobtui.config import load
from jobtui.model.clock import from_seconds
from jobtui.model.ids import answers_to, labels_of, meant_by, named, numbered, system_job_id
from jobtui.model.job_reader import SbatchStatus, sbatch_status
from jobtui.model.specs import Access, SourceSpec, is_loopback, listen_host, parse_balsam, parse_otlp_listen
from tests.analysis.captured import ROOT
from tests.builders import some
from tests.offenders import each
from tests.rows import ROWS


@each(*ROWS["addresses to listen at"])
def test_an_address_to_listen_at_is_on_loopback_unless_it_says_otherwise(
    text: str, place: list[str | int], is_here: bool
) -> None:
    found = listen_host(parse_otlp_listen(text).target)
    assert [*found] == place
    assert is_loopback(found[0]) is is_here


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


def test_flags_are_written_to_work_in_any_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = load({"archive": ("my-cluster=scripts",)}, {})
    assert spelled(config, config.sources) == ("--archive", f"my-cluster={tmp_path / 'scripts'}")
    assert of_specs(config.sources) == ("--archive", f"my-cluster={tmp_path / 'scripts'}")


SECRET = "s3cr3t-t0k3n"


def test_repr_shows_no_secret() -> None:
    assert SECRET not in repr(Access(SECRET, "", "", SECRET, (("X", SECRET),)))


HOSTS = ("https://balsam-dev.alcf.anl.gov", "https://balsam-prod.alcf.anl.gov")

ADDRESSES = st.from_regex(r"https?://[a-z0-9.]{1,8}(:[0-9]{1,4})?(/[a-z~%+]{1,6})?", fullmatch=True)


@given(st.lists(ADDRESSES, min_size=2, max_size=6, unique=True))
def test_labels_differ_and_ids_with_labels_are_found(urls: list[str]) -> None:
    labels = labels_of(urls)
    assert len(set(labels.values())) == len(urls)
    for url, label in labels.items():
        job_id = system_job_id(named("balsam", label), 7)
        assert numbered(job_id) == ("balsam", label, "7")
        assert job_id in meant_by(job_id, labels, "balsam")
        assert answers_to(url, label) or label.rpartition("-")[0]


@each(*ROWS["whose numbers are those of one cluster"])
def test_only_an_index_of_the_same_cluster_shares_its_numbers(labels: list[str], sources: list[Any]) -> None:
    given = (SourceSpec(setting, target, profile=profile) for profile, setting, target in sources)
    found = with_labels(spec._replace(options="jobcomp") for spec in given)
    assert [spec.label for spec in found] == labels
    servers = {spec.target: spec.label for spec in found}
    assert len(meant_by("slurm/7", servers, "slurm")) == len(set(labels))


def test_each_source_has_its_own_name_and_comes_once() -> None:
    one, other = map(parse_balsam, HOSTS)
    log = SourceSpec("log", "/var/log/x")
    assert [spec.label for spec in with_labels([one, log, other, one])] == ["balsam-dev", "", "balsam-prod"]
    assert with_labels([log, one, one]) == (log, one)


FILES = sorted((ROOT / "sbatch" / "scratch").rglob("sbatch_status.json"))


def test_real_status_files_are_read() -> None:
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
    noted = SbatchStatus("sbatch_run_status_stop", "7", from_seconds(1795207669), None, 41.5)
    assert sbatch_status(document) == noted
    message = {"py": {"percentComplete": 3}, "json": "{}"}
    assert some(sbatch_status({"job_cmd_state": "running", "parallelStatus": message})).percent == 3.0


@each("", "12; rm", None, [], {})
def test_an_odd_id_is_none(slurm_id: object) -> None:
    assert some(sbatch_status({"job_cmd_state": "running", "sbatch_id": slurm_id})).slurm_id is None


@each(None, [], 3, {}, {"job_cmd_state": 3}, {"sbatch_id": 7})
def test_a_document_without_a_state_is_no_status(document: object) -> None:
    assert sbatch_status(document) is None
