"""`bundle`, `record` and `replay`: what was kept answers as the systems did, when they are gone."""

import json
import re
import shutil
import signal
import sqlite3
import stat
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from jobtui.backends.base import Batch
from jobtui.backends.registry import OTLP
from jobtui.commands.open import of_specs
from jobtui.config import Config
from jobtui.demo.incidents import INCIDENTS
from jobtui.demo.live import LiveDemo
from jobtui.model.clock import to_rfc3339
from jobtui.model.specs import SourceSpec
from jobtui.recording.database import About, What, unpacked
from jobtui.recording.recorder import RecordingWriter
from tests.analysis.captured import expected
from tests.analysis.explain.cases import played
from tests.backends.recording.files import NOW
from tests.commands.running import AT, CAPTURES, TRUE_CAPTURES, Runner, sources_of, started
from tests.demo.sites import DriverName
from tests.jaeger_server import Jaeger
from tests.loopback import served
from tests.rows import ROWS
from tests.trace_servers import Site, Spans
from tests.tracing import a_span
from tests.waiting import wait_for

PLAYED_S = 420
ASKED = ("explain", "timeline", "show", "logs")


def moved(capture: str, tmp_path: Path) -> list[str]:
    """The flags of a capture that lies where it can be taken away."""
    shutil.copytree(CAPTURES / capture, tmp_path / capture)
    return [word.replace(str(CAPTURES / capture), str(tmp_path / capture)) for word in sources_of(capture)]


def bundled(capture: str, tmp_path: Path, run: Runner) -> tuple[str, Path]:
    """A job of a capture, and a bundle of it."""
    jid, file = sorted(expected(capture)["jobs"])[0], tmp_path / "one.jobtui"
    assert run("bundle", jid, "-o", file, "--at", AT, *sources_of(capture)).code == 0
    return jid, file


@pytest.mark.parametrize("capture", TRUE_CAPTURES)
def test_a_bundle_answers_as_the_system_did_when_that_is_gone(
    capture: str, tmp_path: Path, run: Runner
) -> None:
    flags = moved(capture, tmp_path)
    jid = sorted(expected(capture)["jobs"])[0]
    live = {command: run(command, jid, "--json", "--at", AT, *flags) for command in ASKED}
    file = tmp_path / "one.jobtui"
    assert run("bundle", jid, "-o", file, "--at", AT, *flags).code == 0
    shutil.rmtree(tmp_path / capture)
    for command in ASKED:
        again = run("replay", file, command, jid, "--json")
        if command == "show":  # it tells which paths there are on this machine
            assert again.json["job"] == live[command].json["job"]
            assert again.json["history"] == live[command].json["history"]
        else:
            assert again.out == live[command].out, command
        assert again.code == live[command].code
    log = tmp_path / capture / "supervisor.log"  # another file, where one that was read was
    log.parent.mkdir()
    log.write_text("of another kind\n" * 99)
    told = run("replay", file, "doctor").out
    assert ("as it was recorded" in told, "no known shape" in told) == (True, False)


@pytest.mark.parametrize("incident", INCIDENTS)
def test_each_incident_has_the_same_verdict_byte_for_byte(incident: str, tmp_path: Path, run: Runner) -> None:
    site = tmp_path / "site"
    happened = played(incident, 5, DriverName.LOCAL, PLAYED_S)
    jid, flags = happened.jid, [*happened.write(site), "--at", to_rfc3339(happened.now)]
    live = run("explain", jid, "--json", *flags)
    file = tmp_path / "one.jobtui"
    assert run("bundle", jid, "-o", file, *flags).code == 0
    shutil.rmtree(site)
    again = run("replay", file, "explain", jid, "--json")
    assert again.out == live.out
    assert again.code == live.code
    assert again.json["verdict"] == INCIDENTS[incident].verdict


def test_going_back_shows_the_job_as_it_was(tmp_path: Path, run: Runner) -> None:
    jid, file = "DJouDZ9T-1O1o56MF-activityAnimation", tmp_path / "one.jobtui"
    run("bundle", jid, "-o", file, "--at", AT, *sources_of("local"))

    def status(at: str) -> str | None:
        jobs = run("replay", file, "--at", at, "jobs", "--json").json["jobs"]
        return next((job["status"] for job in jobs if job["id"] == jid), None)

    assert status("2026-11-20T20:34:51Z") is None
    assert status("2026-11-20T20:34:54Z") == "pending"
    assert status("2026-11-20T20:35:04.5Z") == "running"
    assert status("2026-11-20T20:36:00Z") == "completed"


def entries(file: Path) -> Iterator[str]:
    """Everything that is in a bundle, as text."""
    for (body,) in sqlite3.connect(file).execute("SELECT body FROM entry"):
        yield zlib.decompress(body).decode()
    yield from (value for (value,) in sqlite3.connect(file).execute("SELECT value FROM about"))


def test_no_secret_gets_into_a_bundle(tmp_path: Path, run: Runner) -> None:
    _, file = bundled("docker", tmp_path, run)
    agents = {
        word
        for log in (CAPTURES / "docker").glob("*.log")
        for word in re.findall(r"agent_?[iI]d['\"]?[=:] ?['\"]?(\w{32})", log.read_text())
    }
    assert agents, "the capture has none, so this shows nothing"
    text = "\n".join(entries(file))
    assert not [agent for agent in agents if agent in text]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_bundle_says_what_could_not_be_read(tmp_path: Path, run: Runner) -> None:
    file = tmp_path / "one.jobtui"
    jid = sorted(expected("local")["jobs"])[0]
    made = run(
        "bundle", jid, "-o", file, "--at", AT, *sources_of("local")[:2], "--log", tmp_path / "gone.log"
    )
    assert made.code == 0
    assert "gone.log: no such file" in run("replay", file, "explain", jid).err
    assert "gone.log: no such file" in str(run("replay", file, "explain", jid, "--json").json["sources"])


def test_a_file_is_never_written_over(tmp_path: Path, run: Runner) -> None:
    file = tmp_path / "one.jobtui"
    file.write_text("mine")
    jid = sorted(expected("local")["jobs"])[0]
    ran = run("bundle", jid, "-o", file, "--at", AT, *sources_of("local"))
    assert ran.code == 5
    assert "File exists" in ran.err
    assert file.read_text() == "mine"
    assert [*tmp_path.iterdir()] == [file]


def test_what_is_damaged_is_one_clear_line(tmp_path: Path, run: Runner) -> None:
    (tmp_path / "x.jobtui").write_bytes(b"SQLite format 3\0" + b"\xff" * 2000)
    ran = run("replay", tmp_path / "x.jobtui", "jobs")
    assert (ran.code, ran.err.count("\n"), "damaged" in ran.err) == (5, 1, True)


def test_a_damaged_entry_costs_that_entry_and_is_told(tmp_path: Path, run: Runner) -> None:
    jid, file = bundled("local", tmp_path, run)
    with sqlite3.connect(file) as db:
        ((source,),) = db.execute("SELECT id FROM source WHERE name LIKE '%supervisor.log'")
        ((last,),) = db.execute("SELECT max(seq) FROM entry WHERE what = 'batch' AND source = ?", (source,))
        db.execute("UPDATE entry SET body = x'00ff' WHERE seq = ?", (last,))
    ran = run("replay", file, "explain", jid, "--json")
    assert ran.json["job"]["id"] == jid
    assert "1 entry is damaged" in ran.err


@pytest.mark.parametrize(("words", "said"), ROWS["no sense on a recording"])
def test_what_makes_no_sense_on_a_recording(words: list[str], said: str, tmp_path: Path, run: Runner) -> None:
    _, file = bundled("local", tmp_path, run)
    ran = run("replay", file, *words)
    assert ran.code == 2
    assert said in ran.err


def test_a_recorder_ends_when_it_is_told_and_says_what_it_kept(tmp_path: Path, run: Runner) -> None:
    place = tmp_path / "kept"
    ran = run(*sources_of("local"), "record", place, "--for", "1s")
    assert ran.code == 0, ran.err
    assert "records kept" in ran.err
    live, replayed = (
        run(*flags, "jobs", "--json").json["jobs"] for flags in (sources_of("local"), ("replay", place))
    )
    assert {job["id"]: job["status"] for job in replayed} == {job["id"]: job["status"] for job in live}
    assert [path.name for path in place.iterdir()] == ["recording.jobtui"]
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_what_a_recording_replays_is_valid_json_on_every_command(tmp_path: Path, run: Runner) -> None:
    jid, file = bundled("sbatch", tmp_path, run)
    for words in (["jobs"], ["agents"], ["incidents"], ["find", jid], ["compare", jid], ["status"], ["seen"]):
        ran = run("replay", file, *words, "--json")
        assert json.loads(ran.out)["schema"].startswith("jobtui/"), words


def test_script_and_trace_of_a_job_on_a_cluster_are_in_its_bundle(tmp_path: Path, run: Runner) -> None:
    site = tmp_path / "site"
    site.mkdir()
    demo = LiveDemo(site, seed=4)
    demo.prepare()
    flags = [*of_specs(demo.specs), "--at", to_rfc3339(demo.world.kernel.now)]
    jobs = run("jobs", "--json", *flags).json["jobs"]
    jid = next(job["id"] for job in jobs if job["mode"] == "sbatch" and job["status"] == "completed")
    live = {command: run(command, jid, "--json", *flags) for command in ("script", "trace", "compare")}
    file = tmp_path / "one.jobtui"
    assert run("bundle", jid, "-o", file, *flags).code == 0
    shutil.rmtree(site)
    for command in ("script", "trace"):
        assert run("replay", file, command, jid, "--json").out == live[command].out
    again = run("replay", file, "compare", jid, "--json").json
    assert again["steps"] == live["compare"].json["steps"]
    kept = [unpacked(What.SCRIPT, body).script for body in bodies(file, What.SCRIPT)]
    tokens = [line for one in kept if one for line in one.script.splitlines() if b"TOKEN" in line]
    assert tokens
    assert all(line.endswith(b"=***") or line.endswith(b"='***'") for line in tokens)


def bodies(file: Path, what: What) -> list[bytes]:
    return [
        body for (body,) in sqlite3.connect(file).execute("SELECT body FROM entry WHERE what = ?", (what,))
    ]


SECRET = "s3cr3t-t0k3n-of-an-operator"
JID = "DJouDZ9T-1O1o56MF-activityAnimation"
SERVERS = ("[servers.\"{url}\"]\nbearer = \"{secret}\"\nheaders = {{ X-Key = \"{secret}\" }}\n")  # fmt: skip


def contents(path: Path) -> Iterator[bytes]:
    """A file as it is, and every value of a database, unpacked where it is packed."""
    yield path.read_bytes()
    with closing(sqlite3.connect(path)) as db:
        tables = [name for (name,) in db.execute("select name from sqlite_master where type = 'table'")]
        for table in tables:
            for row in db.execute(f'select * from "{table}"'):
                yield from map(_unpacked, row)


def _unpacked(value: object) -> bytes:
    raw = value if isinstance(value, bytes) else str(value).encode()
    try:
        return zlib.decompress(raw)
    except zlib.error:
        return raw


def test_a_bundle_holds_none(run: Runner, tmp_path: Path) -> None:
    config, file = tmp_path / "config.toml", tmp_path / "one.jobtui"
    site = Site(Jaeger(Spans()))
    site.login = f"Bearer {SECRET}"
    with served(site) as url:
        config.write_text(SERVERS.format(url=url, secret=SECRET))
        flags = ["--jaeger", url, "--config", config, "--at", AT, *sources_of("local")]
        assert run("bundle", JID, "-o", file, *flags).code == 0
    held = list(contents(file))
    assert any(url.encode() in one for one in held)
    assert not [one for one in held if SECRET.encode() in one]
    assert run("replay", file, "show", JID, "--json").code == 0


def test_spans_that_were_sent_are_asked_for_by_their_trace(tmp_path: Path, run: Runner) -> None:
    spec = SourceSpec(OTLP.setting, "127.0.0.1:4318")
    config = msgspec.to_builtins(Config({}, sources=(spec,)))
    writer = RecordingWriter(tmp_path / "r", About(version="0", made_at=NOW, at=NOW, config=config), 1 << 20)
    writer.put("otlp", spec.target, What.BATCH, Batch(spans=(span := a_span(1, error=True),)), NOW)
    writer.close()
    ran = run("replay", tmp_path / "r", "trace", span.trace_id, "--json")
    assert (ran.code, ran.json["spans"]) == (1, 1)


def test_a_recording_holds_none(tmp_path: Path) -> None:
    site = Site(Jaeger(Spans()))
    with served(site) as url:
        words = ("record", tmp_path / "kept", "--jaeger", url, *sources_of("local"))
        with started(out := tmp_path / "out", *words, JOBTUI_JAEGER_BEARER=SECRET) as program:
            wait_for(lambda: site.requests)
            program.send_signal(signal.SIGINT)
            assert program.wait() == 0
    assert SECRET not in out.read_text()
    files = [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files for one in contents(path) if SECRET.encode() in one]
