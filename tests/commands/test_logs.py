"""`logs`: the lines of a job, chosen, merged and followed, also out of engines."""

import asyncio
import contextlib
import json
import os
import re
import select
import shutil
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from msgspec.structs import replace

from jobtui.analysis.timeline import JobLine
from jobtui.backends.journal.source import Journal
from jobtui.backends.sirepo.source import SirepoDb
from jobtui.commands import logs, reader
from jobtui.model.clock import SECOND, Nanos, latest, time_of_iso, to_rfc3339
from jobtui.model.ids import JobId
from jobtui.model.secret_words import MASK
from jobtui.model.secrets import mask_text
from jobtui.render.json_output import line_record
from jobtui.render.log_lines import Tags, job_line
from tests.backends.archive.elastic_server import StrictElastic
from tests.backends.engines.loki_server import StrictLoki
from tests.backends.engines.rigs import journal_line, journald_document
from tests.backends.log_fakes import append
from tests.balsam_server import TOKEN, RecordedBalsam, write_login
from tests.commands.running import AT, CAPTURES, FAILED, Ran, Runner, shown, sources_of, started
from tests.condor import CONDOR
from tests.hostile.records import hostile
from tests.loopback import response, served
from tests.rows import ROWS
from tests.screens import captured
from tests.slurm_stand_in import StandIn
from tests.waiting import wait_for

JID = "DJouDZ9T-3mJbMh8p-activityAnimation"
NEW_LINE = (
    f"Nov 20 20:40:00 30699     0 sirepo/job_supervisor.py:254:receive ServerReq(api_runSimulation, {JID})\n"
)


def lines_of(run: Runner, *flags: object, jid: str = JID, capture: str = "local") -> list[dict[str, Any]]:
    ran = run("logs", jid, "--json", *flags, *sources_of(capture))
    assert ran.code == 0, ran.err
    lines: list[dict[str, Any]] = ran.json["lines"]
    return lines


def test_lines_are_as_in_their_files_by_time_with_what_continues_them(run: Runner) -> None:
    lines = lines_of(run)
    times = [line["at"] for line in lines]
    assert times == sorted(times)
    assert {Path(line["source"]).name for line in lines} == {"server.log", "supervisor.log"}
    for source in {line["source"] for line in lines}:
        numbers = [line["line"] for line in lines if line["source"] == source]
        assert numbers == sorted(numbers)
    for line in lines:
        written = Path(line["source"]).read_bytes().split(b"\n")[line["line"] - 1].decode()
        assert line["text"] in mask_text(written)
    started = next(i for i, line in enumerate(lines) if "stdin=b" in line["text"])
    following = lines[started + 1 : started + 20]
    assert all(line["continues"] and line["certainty"] == "adjacent" for line in following)
    assert following[0]["line"] == lines[started]["line"] + 1
    assert not any(line["text"].startswith("Nov ") for line in lines)


def test_op_agent_expression_and_time_select_lines(run: Runner) -> None:
    every = lines_of(run)
    of_run = lines_of(run, "--op", "7Osx")
    assert {line["ids"]["op"] for line in of_run} == {"7Osx"}
    assert 0 < len(of_run) < len(every)
    of_agent = lines_of(run, "--agent", "dj5k")
    assert {line["ids"]["agent"] for line in of_agent} == {"dj5k"}
    found = lines_of(run, "--grep", r"new status=\w+")
    assert found
    assert all("new status=" in line["text"] for line in found)
    bounded = lines_of(run, "--since", "2026-11-20T20:35:45Z", "--until", "2026-11-20T20:35:45Z")
    assert {line["at"] for line in bounded} == {"2026-11-20T20:35:45Z"}


def test_lines_that_were_not_kept_are_reported(run: Runner, tmp_path: Path) -> None:
    whole = (CAPTURES / "local" / "supervisor.log").read_text()
    (line,) = re.findall(rf".*new status=running _ComputeJob\({JID}.*\n", whole)
    (log := tmp_path / "supervisor.log").write_text(whole.replace(line, 300 * line))
    for flags, is_told in (((), True), (("--grep", "new status"), True), (("-n", "20"), False)):
        said = run("logs", JID, *flags, "--srdb", CAPTURES / "local", "--log", log).err
        assert (f"for more: jobtui logs {log} --grep " in said) is is_told, said

    async def on_its_tab() -> None:
        dashboard = captured.app_on(SirepoDb(CAPTURES / "local"), log, at=JobId(JID))
        async with captured.shown(dashboard) as (app, pilot):
            await pilot.press("l")
            await captured.until(app, pilot, "others were not kept: enter opens the whole log")

    asyncio.run(on_its_tab())


@pytest.mark.parametrize("flags", [(), ("--grep", "hunter|[*]{3}")])
def test_a_secret_in_a_line_below_is_masked(run: Runner, tmp_path: Path, flags: tuple[str, ...]) -> None:
    log = tmp_path / "supervisor.log"
    log.write_text(
        (CAPTURES / "local" / "supervisor.log").read_text() + NEW_LINE + "password:\nhunter2\nplain\n"
    )
    ran = run("logs", JID, "--json", *flags, "--srdb", CAPTURES / "local", "--log", log)
    texts = [line["text"] for line in ran.json["lines"]]
    assert texts[-1 if flags else -2] == MASK
    assert "hunter2" not in ran.out


@pytest.mark.parametrize(("thing", "kind", "jobs"), ROWS["things of several jobs"])
def test_a_container_an_agent_and_a_user_have_the_lines_of_their_jobs(
    thing: str, kind: str, jobs: int, run: Runner
) -> None:
    ran = run("logs", thing, "--json", *sources_of("docker"))
    assert ran.code == 0
    assert f"{kind} {thing}: lines of {jobs} jobs" in ran.err
    lines = ran.json["lines"]
    assert lines
    assert all(line["ids"]["job"].startswith("VUlhaMOD-") for line in lines)
    whole = lines_of(run, jid="VUlhaMOD", capture="docker")
    assert {(line["source"], line["line"]) for line in lines} <= {
        (line["source"], line["line"]) for line in whole
    }
    assert len(lines) == len({(line["source"], line["line"], line["text"]) for line in lines})


@pytest.mark.parametrize("thing", ["DJouDZ9T-4F4EUZjI-heightWeightReport", "DJouDZ9T", "dj5k", "4F4E"])
def test_logs_end_with_what_the_program_wrote(thing: str, run: Runner) -> None:
    ran = run("logs", thing, "--json", "--at", AT, *sources_of("local"))
    last = ran.json["lines"][-1]
    assert (last["text"], last["line"]) == ("RuntimeError: error exit(1)", 48)
    assert last["source"].endswith("/user/DJouDZ9T/myapp/4F4EUZjI/heightWeightReport/run.log")
    assert ("removed, and 1 more are not read" in ran.err) is (thing in ("DJouDZ9T", "dj5k"))


def test_only_the_last_lines_and_of_a_long_one_its_length(run: Runner, tmp_path: Path) -> None:
    assert lines_of(run, "-n", "3") == lines_of(run)[-3:]
    assert lines_of(run, "-n0") == []
    (log := tmp_path / "long.log").write_text("y" * 300_000 + "\n")
    assert run("logs", "long", "--log", log).out.endswith("y (300,000 bytes in this line)\n")
    log.write_bytes(b"short\r\n")
    assert run("logs", "long", "--log", log).out.endswith("  short\n")


def test_text_has_the_source_in_front_and_csv_has_columns(run: Runner) -> None:
    plain = run("logs", JID, "--plain", "--op", "7Osx", *sources_of("local")).out.splitlines()
    assert plain[0].startswith("2026-11-20 20:35:43Z  server.log:230")
    table = run("logs", JID, "--csv", "--op", "7Osx", *sources_of("local")).out.splitlines()
    assert table[0].startswith("at,source,line,component,op")


@pytest.mark.parametrize("end", ["aB3dE5fG7hI9jK1lM3nO5p", "Zm9vYmFyQmF6MTIzNDU2=="])
def test_the_last_line_of_a_key_is_masked(end: str) -> None:
    line = replace(hostile(JobLine, "x"), text=end)
    shown = "".join(span.text for span in job_line(line, Tags({}, 8), 120))
    assert line_record(line)["text"] == MASK
    assert MASK in shown
    assert end not in shown


def test_a_large_log_is_read_of_the_last_run(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "WHOLE_BYTES", 1000)
    monkeypatch.setattr(reader, "SLACK_S", 5)
    for at in ((), ("--at", "2026-11-20T21:00:00Z")):
        ran = run("logs", JID, "--json", *at, *sources_of("local"))
        notes = [log["note"] for log in ran.json["sources"] if log["kind"] == "logfile"]
        assert all("anything earlier was not read" in note for note in notes)
        assert any("nothing after" in note for note in notes)
        assert any("new status=completed" in line["text"] for line in ran.json["lines"])
    asked = run("logs", JID, "--json", "--until", "2026-11-20T20:50:00Z", *sources_of("local"))
    assert not any("nothing after 2026-11-20T20:3" in (log["note"] or "") for log in asked.json["sources"])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of the captured supervisor that may grow."""
    return Path(shutil.copy(CAPTURES / "local" / "supervisor.log", tmp_path / "supervisor.log"))


def test_new_lines_are_printed_as_they_come(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("--log", f"supervisor={log}", "--srdb", CAPTURES / "local", "logs", JID, "-f", "--json")
    with started(out, *words, "-n", "2") as process:
        wait_for(lambda: out.read_text().count("\n") == 2)
        append(log, NEW_LINE)
        wait_for(lambda: out.read_text().count("\n") == 3)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    document = json.loads(out.read_text().splitlines()[2])
    assert [*document][:: len(document) - 1] == ["schema", "sources"]
    assert "ServerReq(api_runSimulation" in document["text"]


@pytest.mark.parametrize("setting", ["elastic-logs", "loki"])
def test_lines_that_match_are_looked_for_as_far_as_is_said(
    setting: str, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobtui.commands.logs.LAST_LINES", 100)
    texts = [f"line {n}" for n in range(900)]
    texts[0], texts[399:401] = "needle", ("password:", "hunter2hunter2")  # a page begins between them
    documents = {f"d{n:04}": journald_document(n / 10, one) for n, one in enumerate(texts)}
    lines = [journal_line(n / 10, one) for n, one in enumerate(texts)]
    server: Any = StrictLoki(lines) if setting == "loki" else StrictElastic(documents, keywords=True)
    with served(server) as url:
        ask = partial(run, "logs", "sirepo_job_supervisor", "--at", AT, f"--{setting}={url}")
        for pattern, found in (("needle", "needle"), ("hunter|[*]{3}", MASK), (r"line \d", "line 899")):
            ran = ask("--grep", pattern)
            assert found in ran.out.splitlines()[-1]
            assert ("looked" in ran.err, "hunter2" in ran.out) == (False, False)
        monkeypatch.setattr("jobtui.commands.logs.MOST_LINES", 300)
        ran, since = ask("--grep", "needle"), "--since=2026-11-20T00:00:00Z"
        assert (ran.out, "only its last 300 lines were searched, back to 2026" in ran.err) == ("", True)
        assert "needle" in ask("--grep", "needle", since).out
        assert ask(since).err.count("only its last 300 lines") == 1


async def test_what_a_journal_lacks_is_reported_once_while_it_fails(capsys: Any) -> None:
    line, unread, journal = (
        replace(hostile(JobLine, "x"), source="v3", cursor="c"),
        set[str](),
        AsyncMock(Journal),
    )
    told, found = [], {"c": list[str]()}
    for journal.continuations.return_value in ({}, {}, found, {}):
        await logs._in_journals(Mock(sources=[journal]), [line], unread)
        told.append("were not read: 1" in capsys.readouterr().err)
    assert told == [True, False, False, True]


def test_following_ends_when_its_reader_goes_away(log: Path, tmp_path: Path) -> None:
    os.mkfifo(out := tmp_path / "out")
    reader = os.open(out, os.O_RDONLY | os.O_NONBLOCK)
    with started(out, "logs", JID, "-f", "--log", log) as process:
        wait_for(lambda: select.select([reader], [], [], 0)[0])
        os.close(reader)
        with log.open("a", buffering=1) as file:
            wait_for(lambda: file.write(NEW_LINE) and process.poll() is not None, step_s=0.2)
        assert process.returncode == 0


@pytest.mark.parametrize("system", ["slurm", "pending", "condor", "balsam"])
def test_the_output_of_a_job_of_another_system_is_followed(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.ExitStack() as held:
        output = tmp_path / "job.out"
        if system in ("slurm", "pending"):
            cluster, text = StandIn(tmp_path).captured(), shown(31, tmp_path, "job.out", "job.err")
            if system == "pending":
                cluster.queue({"%i": "31", "%A": "31", "%F": "31", "%T": "PENDING"})
                text = re.sub(r"(?m)^ *(?:Start|End)Time.*\n", "", text).replace("=FAILED", "=PENDING")
            cluster.show("31", text)
            monkeypatch.setenv("PATH", cluster.search_path)
            words = ["slurm/31", "--slurm=local"]
        elif system == "condor":
            ad = f'{(CONDOR / "job.ad").read_text()}Iwd = "{tmp_path}"\nOut = "job.out"\n'
            (tmp_path / "job.ad").write_text(ad)
            words = ["81422934.0", f"--condor-log={tmp_path}/job.ad"]
        else:
            balsam = RecordedBalsam()
            write_login(tmp_path / ".balsam" / "client.yml", url := held.enter_context(served(balsam)), TOKEN)
            balsam.sites[0]["path"] = str(tmp_path)
            (row,) = (row for row in balsam.jobs if row["id"] == 7)
            output = tmp_path / "data" / row["workdir"] / "job.out"
            output.parent.mkdir(parents=True)
            words = ["balsam/7", f"--balsam={url}", "--since=2026-11-20T12:00:00Z"]
        output.write_text("turn 1\n")
        out = tmp_path / "printed"
        words += ["logs", "-f", "--json"]
        held.enter_context(started(out, *words[1:], words[0], HOME=str(tmp_path)))
        if system == "pending":
            wait_for(lambda: "does not exist yet: slurm/31 is pending" in out.read_text())
            cluster.show("31", shown(31, tmp_path, "job.out").replace("=FAILED", "=RUNNING"))
            cluster.queue({"%i": "31", "%A": "31", "%F": "31"})
        wait_for(lambda: '"turn 1"' in out.read_text())
        append(output, "turn 2\n")
        wait_for(lambda: '"turn 2"' in out.read_text())
        assert out.read_text().count('"turn 1"') == 1


LINE = re.compile(r"([A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d) +(\d+)")


def entries() -> Iterator[tuple[Nanos, int, str]]:
    """The lines of the supervisor's log with their times and processes, those of one record as one."""
    begun: tuple[Nanos, int, str] | None = None
    for text in (CAPTURES / "local" / "supervisor.log").read_text().splitlines():
        found = LINE.match(text)
        at = latest(found[1], time_of_iso(AT) or Nanos(0)) if found else None
        if found is None or at is None:
            begun = begun and (begun[0], begun[1], f"{begun[2]}\n{text}")
            continue
        if begun is not None:
            yield begun
        begun = at, int(found[2]), text
    if begun is not None:
        yield begun


def put(server: Any, at: Nanos, pid: int, text: str) -> None:
    if isinstance(server, StrictLoki):
        server.lines.append((at + len(server.lines), journal_line(0, "", pid=str(pid))[1], text))
        return
    one = {"@timestamp": to_rfc3339(at), "process": {"pid": pid}, "journald": {"pid": pid}}
    server.documents[f"d{len(server.documents):06}"] = journald_document(0, text, **one)


@pytest.fixture(params=["elastic-logs", "loki"])
def engine(request: pytest.FixtureRequest) -> Iterator[tuple[Any, str]]:
    """An engine that has these lines, and the flag that names it."""
    is_loki = request.param == "loki"
    server: Any = StrictLoki([]) if is_loki else StrictElastic({}, index="logs", keywords=True)
    server.refusal = response(404)
    for line in entries():
        put(server, *line)
    with served(server) as url:
        yield server, f"--{request.param}={url}"


def test_a_job_is_explained_as_out_of_the_log_file(
    engine: tuple[Any, str], run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobtui.commands.doctor.LAST_ENTRIES", 100)
    ask = partial(run, "explain", "--json", "--at", AT, "--srdb", CAPTURES / "local")
    of_file = ask(FAILED, "--log", f"supervisor={CAPTURES / 'local' / 'supervisor.log'}").json
    told = (ran := ask(FAILED, engine[1])).json
    assert "names the job or its ops, its agents or a start of the supervisor were read" in ran.err
    doctor = run("doctor", "--json", "--at", AT, engine[1]).json["checks"]
    unit = run("logs", "sirepo_job_supervisor", "-n", "2", "--json", "--at", AT, engine[1]).json
    assert (len(unit["lines"]), unit["sources"], doctor[0]["records"]) == (2, [], 100)  # no more is read
    assert (told["verdict"], told["confidence"]) == (of_file["verdict"], of_file["confidence"])
    same = [[one["text"] for one in document["evidence"]] for document in (told, of_file)]
    assert same[0] == same[1]
    assert [(one["state"], one["unknown_share"]) for one in doctor] == [("ok", 0.0)]
    monkeypatch.setattr("jobtui.commands.reader.SINCE_ENTRIES", 3)
    cut = ask("DJouDZ9T-8ll2VWdK-heightWeightReport", engine[1], "--since", "2026-11-20T00:00:00Z")
    assert "of the rows since then, only the last 3 were read" in cut.err
    assert cut.json["confidence"] < 0.5  # all rows say that it could not be prepared
    assert any("the run began before" in one for one in cut.json["blind_spots"])


def test_the_last_lines_of_an_engine_that_name_a_job_or_its_ops_are_read(
    engine: tuple[Any, str], run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = partial(run, "logs", "--json", "--at", AT, "--srdb", CAPTURES / "local")

    def texts(ran: Ran) -> list[str]:
        lines = [one for one in ran.json["lines"] if one["ids"]["op"] and not one["continues"]]
        firsts = [(one["text"].partition("\n")[0], one["ids"]["op"]) for one in lines]
        return [*dict.fromkeys(text for text, op in firsts if re.search(rf"\b(3mJbMh8p|{op})\b", text))]

    whole, file = ask(JID, engine[1]), ask(JID, "--log", CAPTURES / "local" / "supervisor.log")
    assert "only rows with a word that names the job or its ops were read" in whole.err
    assert texts(whole) == texts(file) == texts(ask(JID, engine[1], "-n", "20000"))
    monkeypatch.setattr("jobtui.commands.logs.SINCE_ROWS", 40)
    assert "only the last 40 were read" in ask(JID, engine[1], "--since", "2026-11-20T20:34:00Z").err
    monkeypatch.setattr("jobtui.commands.logs.LAST_ROWS", 30)
    newest = texts(last := ask(JID, engine[1]))
    assert "only the last 30 were read" in last.err
    assert {*newest[-5:]} == {*texts(whole)[-5:]} < {*newest} < {*texts(whole)}
    unnamed = ask("VUlhaMOD-slPcrZWi-heightWeightReport", engine[1], "--srdb", CAPTURES / "docker")
    assert "no row has the word slPcrZWi" in unnamed.err


@pytest.mark.parametrize("thing", [JID, "*supervisor@v3"])
def test_an_engine_is_followed_from_its_end_and_all_that_comes_is_given(
    engine: tuple[Any, str], thing: str, tmp_path: Path
) -> None:
    (server, flag), out, at = engine, tmp_path / "out", time_of_iso("2026-11-20T20:50:00Z") or Nanos(0)
    said = "Nov 20 20:50:0{} 30699     0 sirepo/job_supervisor.py:1276:{}"
    run_dir = f"runDir=/srv/sirepo/dev/db/user/{JID.replace('-', '/myapp/', 1).replace('-', '/')}"
    assigned = "prepare_send assigned driver=LocalDriver(a=dj5k k=sequential u=DJou [])"
    runs = f"_process_run_status_update new status=running _ComputeJob({JID} u=DJou running [_Op(run, zZ9a)])"
    with started(out, "logs", thing, "-fn2", "--srdb", CAPTURES / "local", flag) as ran:
        wait_for(lambda: out.read_text().count("supervisor@v3  ") == 2)
        put(server, at, 30699, said.format(0, f"__init__ _Op(analysis, zZ9a) {run_dir}"))
        put(server, at, 30699, said.format(0, "__init__ _Op(analysis, othr) runDir=/elsewhere"))
        put(server, Nanos(at + SECOND), 30699, said.format(1, f"{assigned} to op=_Op(analysis, zZ9a)"))
        for nth in range(300):  # more than are kept of an op
            put(server, Nanos(at + SECOND), 30699, said.replace("1276", str(nth)).format(1, runs))
        wait_for(lambda: out.read_text().count("zZ9a") == 302)
        ran.send_signal(signal.SIGINT)
        assert ran.wait(20) == 0
    assert out.read_text().count("supervisor@v3  ") == (304 if thing == JID else 305)
    assert all("terms" in json.dumps(body) for body in getattr(server, "bodies", ()) if body.get("size"))
