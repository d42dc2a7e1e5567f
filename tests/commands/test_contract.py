"""Every command's JSON keeps the contract, on every capture."""

import csv
import io

import pytest

from jobtui.commands.printing import print_csv
from tests.commands.contract import check_document
from tests.commands.running import AT, CAPTURES, Runner, sources_of

ALL_CAPTURES = sorted(path.name for path in CAPTURES.iterdir() if path.is_dir())


def jids_of(capture: str) -> list[str]:
    return sorted(path.stem for path in (CAPTURES / capture / "supervisor-job").glob("*.json"))


@pytest.mark.parametrize("capture", ALL_CAPTURES)
def test_jobs_show_and_find(capture: str, run: Runner) -> None:
    ran = run("jobs", "--json", "--at", AT, *sources_of(capture))
    assert ran.code == 0
    check_document(ran.json, "jobs")
    shown = {job["id"] for job in ran.json["jobs"]}
    assert shown == {jid for jid in jids_of(capture) if "_1_st" not in jid}
    for jid in jids_of(capture)[:3]:
        ran = run("show", jid, "--json", "--at", AT, *sources_of(capture))
        check_document(ran.json, "show", ["runs", "places"])
        assert ran.json["job"]["id"] == jid
        assert ran.json["job"]["native"]["computeJid"] == jid
    ran = run("find", jids_of(capture)[0], "--json", "--at", AT, *sources_of(capture))
    check_document(ran.json, "find")
    assert ran.json["candidates"][0]["id"] == jids_of(capture)[0]


@pytest.mark.parametrize("capture", ALL_CAPTURES)
def test_timeline_and_logs(capture: str, run: Runner) -> None:
    for jid in jids_of(capture)[:3]:
        timeline = run("timeline", jid, "--json", "--at", AT, *sources_of(capture))
        check_document(timeline.json, "timeline", ["dropped"])
        logs = run("logs", jid, "--json", "--at", AT, *sources_of(capture))
        check_document(logs.json, "logs")
        assert logs.code == 0
        steps = {(s["source"], s["line"]) for op in timeline.json["ops"] for s in op["steps"]}
        assert steps <= {(line["source"], line["line"]) for line in logs.json["lines"]}


def test_doctor_and_config(run: Runner) -> None:
    check_document(run("doctor", "--json", *sources_of("local")).json, "doctor", ["checks"])
    check_document(run("config", "--json", *sources_of("local")).json, "config", ["settings"])


def test_a_text_in_csv_is_no_formula_and_a_number_stays_one(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("a", "b", "c", "d", "e", "f")
    texts = ["=1+1", "+cmd", "-cmd", "@SUM(A1)", " =1", ["=x", "y"]]
    print_csv(names, [dict(zip(names, texts, strict=True)), {"a": -1.5, "b": "-1.5", "c": "a=b", "d": -3}])

    _, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    assert rows[0] == ["'=1+1", "'+cmd", "'-cmd", "'@SUM(A1)", "' =1", "'=x y"]
    assert rows[1] == ["-1.5", "-1.5", "a=b", "-3", "", ""]


@pytest.mark.parametrize("sign", "\uff1d\uff0b\uff0d\uff20")
def test_a_wide_sign_begins_a_formula_too(sign: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_csv(("a",), [{"a": f"{sign}1+1"}, {"a": f"\t{sign}1"}], head=False)
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"'{sign}1+1"
    assert not second.startswith(sign)
