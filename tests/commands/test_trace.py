"""`trace` on captured traces: what it names, its JSON, its exit codes."""

import pytest

from tests.commands.contract import check_document
from tests.commands.running import Runner, environment, jobtui
from tests.tracing import CAPTURES, EXPECTED, FORMATS, capture_file

LINE = next(
    line for line in (CAPTURES / "job-fail" / "job.out").read_text().splitlines() if "TRACEPARENT" in line
)
CLUSTER = ("--trace-file", str(capture_file("cluster-4", "otlp.pb")), "trace", "6b0404f2")
FILES = ["--trace-file", CAPTURES / "job-fail.otlp.pb", "--trace-file", CAPTURES / "job-fail.logs.json"]


def test_a_line_may_come_from_standard_input() -> None:
    ran = jobtui(*FILES, "trace", "-", "--json", stdin=LINE.encode() + b"\n")
    assert (ran.code, ran.json["trace_id"]) == (1, "212c891717bfbac28a34dec05b616f14")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", EXPECTED)
def test_the_json_of_every_capture_is_what_it_was(name: str, form: str, run: Runner) -> None:
    expected = EXPECTED[name]
    ran = run("--trace-file", capture_file(name, form), "trace", "--json", expected["traceID"])
    found = ran.json
    check_document(found, "trace")
    for key in ("spans", "services", "roots", "missing_parents", "error_spans"):
        assert found[key] == expected[key]
    assert sorted(cause["span_id"] for cause in found["root_causes"]) == sorted(expected["deepest_errors"])
    assert abs(found["duration_s"] - expected["duration_ns"] / 1e9) < 2.1e-6
    for which in ("jaeger", "whole"):
        if f"critical_path_{which}" in expected:
            path, true = found["critical_path"][which], expected[f"critical_path_{which}"]
            assert [(step["span_id"], step["name"], step["wait"]) for step in path] == [
                (step["spanID"], step["name"], step.get("wait", False)) for step in true
            ]
            for step, told in zip(path, true, strict=True):
                for edge in ("from", "to"):
                    assert abs(step[f"{edge}_s"] - told[f"{edge}_ns"] / 1e9) < 2.1e-6


def test_what_an_encoding_lacks_of_a_bar_is_drawn_in_ascii() -> None:
    ran = jobtui(*CLUSTER, env=environment(PYTHONIOENCODING="latin-1"))
    row = next(line for line in ran.out.splitlines() if line.startswith("xA "))
    assert row.split()[2:4] == [":", "==x"]


@pytest.mark.parametrize("form", ["otlp.json", "otlp.pb", "jaeger.json"])
def test_a_file_of_spans_is_source_enough_and_nothing_of_it_is_skipped(
    form: str, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobtui.commands.reader.configured", lambda context: ())
    ran = run("trace", CAPTURES / f"job-fail.{form}")
    assert ran.code == 1
    assert "step 7 of 10" in ran.out
    assert ran.err == ""
