"""Labels of several servers and which of them an id means, and what an agent on a cluster notes of a run."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.backends.registry import told_apart
from jobtui.model.clock import from_seconds
from jobtui.model.ids import JobId, answers_to, labels_of, meant_by, named, numbered, system_job_id
from jobtui.model.job_reader import SbatchStatus, sbatch_status
from jobtui.model.specs import SourceSpec, parse_balsam
from tests.analysis.captured import ROOT

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
