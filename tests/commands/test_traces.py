"""`trace` and `doctor` on captured traces, trace servers and the receiver; where logins come from."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands.running import AT, Runner, check_document, environment, jobtui
from tests.loopback import served
from tests.trace_servers import Jaeger, Site, Spans, Tempo
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


def test_a_bar_is_drawn_in_ascii_where_the_encoding_lacks_it() -> None:
    ran = jobtui(*CLUSTER, env=environment(PYTHONIOENCODING="latin-1"))
    row = next(line for line in ran.out.splitlines() if line.startswith("xA "))
    assert row.split()[2:4] == [":", "==x"]


SECRET = "s3cr3t-t0k3n-of-an-operator"
ERROR_LINE = "Error: step failed. See TRACEPARENT 00-212c891717bfbac28a34dec05b616f14-ff9c35a8f8c0b21f-01"


@pytest.fixture(params=["jaeger", "tempo"])
def site(request: pytest.FixtureRequest) -> Site:
    return Site(Jaeger(Spans()) if request.param == "jaeger" else Tempo(Spans()), "/base")


@pytest.fixture
def flags(site: Site) -> Iterator[list[str]]:
    with served(site) as url:
        yield ["--jaeger" if isinstance(site.server, Jaeger) else "--tempo", url, "--at", AT]


def test_doctor_reports_the_state_of_each_server(site: Site, flags: list[str], run: Runner) -> None:
    ran = run(*flags, "--otlp-listen", "127.0.0.1:0", "doctor", "--json")
    server, receiver = ran.json["checks"]
    assert (ran.code, server["fine"], receiver["fine"]) == (0, True, True)
    words = "Jaeger v3, 3 services" if isinstance(site.server, Jaeger) else "Tempo; asked when needed"
    assert words in server["says"][0]
    assert re.fullmatch(r"listens at http://127\.0\.0\.1:\d+, for this machine only", receiver["says"][0])


def test_a_login_is_taken_from_the_environment_and_never_shown(
    site: Site, flags: list[str], run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.login = f"Bearer {SECRET}"
    monkeypatch.setenv(f"JOBTUI_{flags[0][2:].upper()}_BEARER", SECRET)
    for words in (["trace", ERROR_LINE], ["doctor"], ["config"], ["config", "--json"]):
        ran = run(*flags, *words)
        assert ran.code in (0, 1)
        assert SECRET not in ran.out + ran.err
        assert "unknown" not in ran.err


def test_a_login_is_taken_from_the_configuration_file(
    site: Site, flags: list[str], run: Runner, plain_environment: Path
) -> None:
    site.login = f"Bearer {SECRET}"
    path = plain_environment / ".config" / "jobtui" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(f'[servers."{flags[1]}/"]\nbearer = "{SECRET}"\n')
    path.chmod(0o644)
    ran = run(*flags, "trace", ERROR_LINE)
    assert ran.code == 1
    assert f"{path} may be read by others, and holds a login: `chmod 600 {path}`" in ran.err
    path.chmod(0o600)
    ran = run(*flags, "trace", ERROR_LINE)
    assert "may be read by others" not in ran.err
    assert SECRET not in ran.out + ran.err
