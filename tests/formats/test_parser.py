"""Lines of logs and their times, whole, damaged, glued and cut, and the files of their shapes."""

import re
import time
import tomllib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.formats import parser as formats
from jobtui.formats import schema
from jobtui.formats.job_output import read_date
from jobtui.formats.parser import SHAPE as DAMAGED
from jobtui.formats.parser import LogParser
from jobtui.formats.schema import FormatError, LogFormat, load, read_format
from jobtui.model.clock import MONTHS, SECOND, SKEW, Nanos, latest, to_rfc3339
from jobtui.model.logs import LogRecord
from jobtui.model.tables import tables_of
from tests.builders import some
from tests.offenders import each
from tests.rows import CAPTURES, FIXTURES, ROWS, table

LOGS = sorted(path for path in CAPTURES.rglob("*.log") if "user" not in path.parts)
"""Every log of a supervisor, server, container or agent; not what programs wrote into run directories."""
NEWEST = Nanos(1_795_300_000 * SECOND)
"""A day after the captures were taken."""


def name_of(path: Path) -> str:
    return str(path.relative_to(CAPTURES))


def records_of(data: bytes, parser: LogParser | None = None) -> list[LogRecord]:
    return (parser or LogParser("log")).parse(data, 0, 1, NEWEST).records


def records_of_blocks(blocks: Iterable[bytes], parser: LogParser) -> list[LogRecord]:
    found: list[LogRecord] = []
    offset, line = 0, 1
    for block in blocks:
        parsed = parser.parse(block, offset, line, NEWEST)
        found += parsed.records
        offset += len(block)
        line += parsed.lines
    return found


HEAD = "Nov 20 20:34:30 30699     0 "
SUPERVISOR = "../../venv/lib/python3.11/site-packages/sirepo/job_supervisor.py:1276:__init__ "
AGENT = "/srv/sirepo/venv/lib/python3.11/site-packages/sirepo/pkcli/job_agent.py:487:_op "
RUN_DIR = "/srv/sirepo/db/user/VUlhaMOD/myapp/HrCJ26rQ/activityAnimation"
CREATED = f"_Op(run, 5N6c) runDir={RUN_DIR}"
AT = Nanos(1_795_206_870 * SECOND)
"""Nov 20 20:34:30 of 2026."""


def one(text: str) -> LogRecord:
    found = records_of(text.encode() + b"\n")
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    ("head", "at", "pid"),
    [
        (HEAD, AT, 30699),
        ("Nov 20 20:34:30     7 12345 ", AT, 7),
        ("Nov 20 20:34:30 123456789 140000000000000 ", AT, 123456789),
        ("Nov  2 20:34:30 30699     0 ", Nanos(AT - 18 * 86_400 * SECOND), 30699),
        (f"Nov 20 20:34:30 {'7' * 5_000}     0 ", AT, None),
        ("Nov 31 20:34:30 30699     0 ", None, 30699),  # no such day
        ("", None, None),
    ],
)
@pytest.mark.parametrize(
    "site",
    [
        SUPERVISOR,
        "sirepo/job_supervisor.py:1:__init__ ",
        "/home/v/.pyenv/versions/3.7/lib/sirepo/job_supervisor.py:640:<lambda> ",
    ],
)
def test_a_line_has_its_head_or_none(head: str, site: str, at: Nanos | None, pid: int | None) -> None:
    record = one(f"{head}{site}{CREATED}")
    assert (record.at, record.pid, record.shape, record.text) == (at, pid, "op_created", CREATED)
    assert record.fields["run_dir"] == RUN_DIR
    assert record.container is None


@each("\r", "\r\r")
def test_lines_may_end_in_crlf(ending: str) -> None:
    record = one(f"{HEAD}{SUPERVISOR}{CREATED}{ending}")
    assert (record.text, record.fields["run_dir"]) == (CREATED, RUN_DIR)


@each(*ROWS["what is no line of its own"])
def test_a_line_that_belongs_to_another_gives_no_record(line: str) -> None:
    assert records_of(line.encode() + b"\n") == []


def test_a_very_long_line_and_bytes_that_are_not_text_are_kept_in_part() -> None:
    failed = b"_ComputeJob(VUlhaMOD-HrCJ26rQ-x u=VUlhaMOD running []) exception="
    data = HEAD.encode() + SUPERVISOR.encode() + failed + b"\xff\x00\xe2\x82 end\n"
    record, damage = records_of(data)
    assert record.fields["error"] == "\ufffd\x00\ufffd end"
    assert (damage.shape, damage.offset) == (DAMAGED, data.index(b"\xff"))
    line = f"{HEAD}{SUPERVISOR}_ComputeJob(VUlhaMOD-HrCJ26rQ-x u=VUlhaMOD running []) exception=".encode()
    data = line + b"x" * 1_000_000 + b"\n" + f"{HEAD}{SUPERVISOR}{CREATED}\n".encode()
    before = time.process_time()
    long, after = records_of(data)
    assert time.process_time() - before < 1.0
    assert len(long.text) == formats.TEXT_LIMIT
    assert (after.line, after.offset) == (2, data.index(b"\n") + 1)


@each(
    (b"plain text\n", []),
    ("text of all languages: \u00e9\u4e2d\n".encode(), []),
    (b"one \0\0\0 two\n", [4]),
    (b"one \xff two \0\n", [4]),
    ("\u00e9 \0\n".encode(), [3]),
    (b"\0" + b"x" * formats.STRIDE + b"\0", [0, formats.STRIDE + 1]),
    (b"\0" * 3 * formats.STRIDE, [0, formats.STRIDE, 2 * formats.STRIDE]),
)
def test_damaged_offsets_of_a_block(block: bytes, offsets: list[int]) -> None:
    assert list(formats.damaged_offsets(block)) == offsets


@pytest.mark.parametrize("path", LOGS, ids=name_of)
def test_line_numbers_and_offsets_lead_back_to_the_line(path: Path) -> None:
    data = path.read_bytes()
    lines = data.split(b"\n")
    for record in records_of(data):
        at_offset = data[record.offset :].partition(b"\n")[0]
        assert at_offset == lines[record.line - 1]
        text = at_offset.decode("utf-8", "replace")
        assert record.text in text or (record.container is not None and record.container in text)


@settings(max_examples=25)
@given(st.data())
def test_blocks_give_what_the_whole_gives(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(LOGS))
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(lines)), max_size=12)))
    blocks = [b"".join(lines[start:end]) for start, end in zip([0, *cuts], [*cuts, len(lines)], strict=True)]
    assert records_of_blocks(blocks, formats.LogParser("log")) == records_of(whole)


def arrived(op: str, second: int = 30) -> bytes:
    head = HEAD.replace("20:34:30", f"20:34:{second}")
    return f"{head}{AGENT}opName=run o={op} runDir={RUN_DIR}\n".encode()


CMD_STARTED = f"{HEAD}{AGENT}cmd=('/bin/bash', '-l') stdin=b\"source $HOME/.bashrc\n".encode()
WAITS = f"{HEAD}{SUPERVISOR}_Op(run, 5N6c) await _reply_q.get()\n".encode()


@each(
    ([arrived("S89I"), arrived("S89I", 31)] * 2, [1, 2]),
    # what names no op is known by the line before it
    ([arrived("S89I"), CMD_STARTED, arrived("wxyz"), CMD_STARTED] * 2, [1, 2, 3, 4]),
    ([WAITS] * 2, [1, 2]),
)
def test_repeated_lines_are_given_once(lines: list[bytes], given: list[int]) -> None:
    assert [record.line for record in records_of(b"".join(lines))] == given


def test_repeats_are_remembered_within_bounds() -> None:
    lines = [
        f"Nov 20 20:{i // 60:02}:{i % 60:02} {i}     0 {AGENT}opName=run o=S89I runDir={RUN_DIR}\n".encode()
        for i in range(3_000)
    ]
    parser = formats.LogParser("log")
    first = len(records_of_blocks([b"".join(lines)], parser))
    assert first == len(lines) < formats.REPEATS_KEPT
    others = [line.replace(b"S89I", b"%04d" % i) for i, line in enumerate(lines * 2)]
    records_of_blocks([b"".join(others)], parser)
    assert len(records_of_blocks([lines[0]], parser)) == 1


WRITE = "sirepo/job_driver/docker.py:483:_write "
REST = "sirepo/job_driver/docker.py:495:_log_output cmd=start cname="
A, B = "srj-s-VUlhaMOD", "srj-p-eGO70vz3"
JOB_AGENT = "/srv/sirepo/venv/lib/python3.11/site-packages/sirepo/pkcli/job_agent.py:"
PROD_DIR = "/srv/sirepo/prod/db/user/VUlhaMOD/myapp/slPcrZWi/heightWeightReport"
ARRIVED = f"Nov 20 20:49:21 10038     0 {JOB_AGENT}487:_op opName=run o=S89I runDir={PROD_DIR}"
STARTED = (
    f"Nov 20 20:49:21 10038     0 {JOB_AGENT}848:start cmd=('/bin/bash', '-l') stdin=b\"source $HOME/.bashrc"
)
CMD = f"_Cmd(a=9mgt jid=VUlhaMOD-slPcrZWi-heightWeightReport o=S89I job_cmd=compute run_dir={PROD_DIR})"
EXITED = f"Nov 20 20:49:24 10038     0 {JOB_AGENT}868:_on_exit _Process(pid=31 cmd={CMD}) returncode=0"

BOTH = [("op_arrived", "S89I"), ("job_cmd_started", None)]


def forwarded(*texts: str, container: str = A) -> bytes:
    return "".join(f"{WRITE}{container} {text}\n" for text in texts).encode()


def told(records: Iterable[LogRecord]) -> list[tuple[str, str | None]]:
    return [(record.shape, record.fields.get("o")) for record in records]


@each(
    (ARRIVED + STARTED,),
    ('"' + ARRIVED + STARTED,),
    ("'" + ARRIVED, STARTED),
    ("export A='/srv/si", "repo/prod'" + ARRIVED + STARTED),
    (ARRIVED, "set -e", STARTED, "set -e"),
    (ARRIVED + STARTED + EXITED,),
)
def test_glued_lines_are_taken_apart(texts: tuple[str, ...]) -> None:
    records = records_of(forwarded(*texts))
    whole = [*BOTH, ("job_cmd_exited", "S89I")]
    assert told(records) == whole[: 3 if EXITED in texts[0] else 2]
    assert records[0].fields["run_dir"] == PROD_DIR
    assert [record.at for record in records] == sorted(record.at or 0 for record in records)


IN_DIR = len(ARRIVED) - len(PROD_DIR)


def test_a_cut_line_is_joined_again_or_keeps_a_part_of_its_run_directory() -> None:
    for cut in (*range(1, ARRIVED.index("runDir=")), *range(IN_DIR + 1, len(ARRIVED))):
        quote = '"' if cut <= IN_DIR else ""
        records = records_of(forwarded(quote + ARRIVED[:cut], ARRIVED[cut:] + STARTED))
        assert told(records) == BOTH, cut
        assert PROD_DIR.startswith(records[0].fields["run_dir"] or "-"), cut
        assert cut > IN_DIR or records[0].fields["run_dir"] == PROD_DIR, cut


def test_a_process_line_cut_anywhere_is_read_as_before() -> None:
    like_a_kill = EXITED.index(" returncode")  # what is before it is a whole line itself
    for cut in {*range(1, len(EXITED) - 1)} - {like_a_kill}:
        records = records_of(forwarded(EXITED[:cut], EXITED[cut:]))
        assert told(records) == [("job_cmd_exited", "S89I")], cut


def test_the_number_of_kept_line_beginnings_is_limited() -> None:
    parser = formats.LogParser("log")
    for number in range(formats.CONTAINERS_KEPT + 1):
        records_of(forwarded(ARRIVED[:90], container=f"srj-s-{number:08}"), parser)
    assert records_of(forwarded(ARRIVED[90:], container="srj-s-00000000"), parser) == []
    assert told(records_of(forwarded(ARRIVED[90:], container="srj-s-00000001"), parser)) == [
        ("op_arrived", "S89I")
    ]


CONTAINER_LOGS = sorted(CAPTURES.rglob("container-*.log"))


def as_forwarded(printed: str, sizes: Iterable[int], container: str) -> bytes:
    """What a supervisor logs of a container's output when it comes in chunks of these sizes.

    The last line of a chunk that ends with a newline is put before the next chunk, without that newline.
    """
    logged: list[str] = []
    kept, at = "", 0
    for size in [*sizes, len(printed)]:
        chunk = kept + printed[at : at + size]
        at += size
        lines = chunk.splitlines()
        kept = lines.pop() if chunk.endswith("\n") and lines else ""
        logged += [f"{WRITE}{container} {line}" for line in lines]
    if kept:
        logged.append(f"{REST}{container} {kept}")
    return "".join(f"{line}\n" for line in logged).encode()


@settings(max_examples=80)
@given(st.data())
def test_nothing_is_lost_however_the_output_was_cut(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(CONTAINER_LOGS))
    container = path.stem.removeprefix("container-")
    sizes = data.draw(st.lists(st.integers(1, 1_000), max_size=40))
    whole = records_of(path.read_bytes())
    found = records_of(as_forwarded(path.read_text(), sizes, container))
    found = [record for record in found if record.shape != "container_rest"]
    assert [(r.at, r.pid) for r in found] == [(r.at, r.pid) for r in whole]
    for record, original in zip(found, whole, strict=True):
        if record.shape == original.shape and record.fields.get("o"):
            assert record.fields["o"] == original.fields["o"]
        cut, glued = original.text.startswith(record.text[:-2]), record.text.startswith(original.text)
        assert cut or glued, (record.text, original.text)


TABLES = table("times")


def nanos(text: str) -> Nanos:
    return of(datetime.fromisoformat(text).replace(tzinfo=UTC))


def of(at: datetime) -> Nanos:
    return Nanos(int(at.timestamp()) * SECOND)


def written(at: datetime) -> str:
    return f"{MONTHS[at.month - 1]} {at.day:02} {at:%H:%M:%S}"


@each(*TABLES["years"])
def test_the_year_comes_from_what_is_newest(text: str, newest: str, expected: str) -> None:
    assert latest(text, nanos(newest)) == nanos(expected)


@each(*TABLES["no_times"])
def test_text_that_is_not_a_time_has_none(text: str) -> None:
    assert latest(text, nanos("2026-11-20T21:00:00")) is None


MOMENTS = st.integers(631_152_000, 7_258_118_400).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
"""Whole seconds of 1990 to 2199."""


@given(MOMENTS, st.integers(0, 364 * 86_400 - 1))
def test_any_time_of_the_last_year_is_read_back(newest: datetime, age_s: int) -> None:
    at = newest - timedelta(seconds=age_s)
    assert latest(written(at), of(newest)) == of(at)


@given(MOMENTS, MOMENTS)
def test_no_time_is_further_ahead_than_clocks_may_differ(newest: datetime, at: datetime) -> None:
    assert some(latest(written(at), of(newest))) <= of(newest) + SKEW


@each(*TABLES["dates"])
def test_a_date_is_read(text: str, at: str, is_local: bool) -> None:
    moment = some(read_date(text))
    assert (to_rfc3339(moment.at), moment.is_local) == (at, is_local)


FOLDER = FIXTURES / "balsam" / "site_logs"


def records(name: str) -> list[LogRecord]:
    (path,) = FOLDER.glob(f"{name}*")
    parser = formats.SiteLogParser(str(path), "balsam@there")
    return parser.parse(path.read_bytes(), 0, 1, Nanos(0)).records


@each(*ROWS["lines that name a job"])
def test_lines_that_name_a_job_become_records(name: str, told: list[list[str]]) -> None:
    found = records(name)
    assert [[one.shape, one.fields["job"]] for one in found] == told
    assert {one.fields["jid"] for one in found} == {f"balsam@there/{job}" for _, job in told}
    lines = next(FOLDER.glob(f"{name}*")).read_text().splitlines()
    for one in found:
        assert lines[one.line - 1].endswith(one.text)
        assert one.at is not None
        assert one.at == formats.read_time(lines[one.line - 1][:23])


def test_local_times_are_those_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    at = []
    for zone in ("UTC", "America/Chicago"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        at.append(formats.read_time("2026-11-20 17:31:39.707") or 0)
    assert (at[1] - at[0]) / 3600e9 == 6


NAMES_A_JOB = re.compile(rb"[A-Za-z0-9]{8}-[A-Za-z0-9]{8}-\w+|/user/[A-Za-z0-9]{8}/\w+/[A-Za-z0-9]{8}/\w+")


@pytest.mark.parametrize("capture", ["docker-agents-never-start", "legacy-2020"])
def test_every_line_that_names_a_job_is_known(capture: str) -> None:
    paths = sorted((CAPTURES / capture).glob("*.log"))
    lines = [line for path in paths for line in path.read_bytes().splitlines() if NAMES_A_JOB.search(line)]
    assert lines
    found = formats.survey(lines)
    assert (found.unknown, found.examples) == (0, ())


@each(
    (forwarded(ARRIVED.partition("=S89I")[0] + "=S8"), 0),  # it may be cut
    (f"x.py:1:f {CMD} exit=0 stderr=\n".encode(), 0),
    (f"x.py:1:f {CMD} frobnicated\n".encode(), 1),  # only a catch-all takes it
)
def test_survey_lists_the_unknown_lines(line: bytes, unknown: int) -> None:
    assert formats.survey([line]).unknown == unknown


def test_examples_are_few_short_and_of_different_places() -> None:
    long = "x" * 1_000
    lines = [f"x.py:1:f{nth} frobnicated {long}\n".encode() for nth in range(formats.EXAMPLES_KEPT + 3)] * 3
    found = formats.survey(lines)
    assert (found.unknown, len(found.examples)) == (len(lines), formats.EXAMPLES_KEPT)
    assert {len(example) for example in found.examples} == {formats.EXAMPLE_LENGTH}


FORMATS = ("sirepo", "known")
SAMPLED = (*FORMATS, "condor", "jobsub", "balsam_site")


def first_word(message: str) -> str:
    word = re.match(r"\w*", message, re.ASCII)
    assert word is not None
    return word[0]


KEYS = {"name", "component", "heads", "funcs"}
MAY_HOLD: dict[str, set[str]] = {
    "": {"needles", "dense", "macros", "shape", "lines"},
    "shape": KEYS | {"step", "pattern", "catch_all", "sample"},
    "sample": {"text", "func", "fields"},
    "lines": KEYS | {"shapes"},
}


@each(*SAMPLED)
def test_every_shape_gives_its_samples_and_a_file_holds_nothing_else(name: str) -> None:
    document, log_format = tables_of("jobtui.formats", name), load(name)
    shapes, lines = document.get("shape", []), document.get("lines", [])
    samples = [entry["sample"] for entry in shapes]
    for kind, tables in (
        ("", [document]),
        ("shape", shapes),
        ("sample", [one for own in samples for one in own]),
        ("lines", lines),
    ):
        assert not set().union(*tables) - MAY_HOLD[kind]
    for entry in lines:
        func = next(iter(entry.get("funcs", ())), "")
        samples += [[{"text": text, "func": func}] for _, text in entry["shapes"]]
    for shape, own in zip(log_format.shapes, samples, strict=True):
        assert own, shape.name
        for sample in own:
            text, fields = sample["text"], sample.get("fields", {})
            matched = log_format.match(text, sample.get("func", ""), first_word(text))
            assert matched is not None, text
            assert matched[0] is shape, (text, matched[0].name)
            assert {key: matched[1][key] for key in fields} == fields
            assert shape.literal in text


def is_known(message: str, func: str) -> bool:
    matches = (load(name).match(message, func, first_word(message)) for name in FORMATS)
    return any(matched and not matched[0].catch_all for matched in matches)


@given(
    st.from_regex(r"[a-z]{3,9}( [a-z]{3,9}=\w{1,9}){1,4}", fullmatch=True), st.sampled_from(["_frob", "run"])
)
def test_made_up_messages_are_not_known(message: str, func: str) -> None:
    assert not is_known(f"frob {message}", func)


@pytest.mark.parametrize("path", LOGS, ids=name_of)
def test_searching_for_needles_misses_no_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = path.read_bytes()
    monkeypatch.setattr(schema, "BUSY", 0)
    quiet = records_of(data)
    monkeypatch.setattr(schema, "BUSY", 1_000_000)
    assert records_of(data) == quiet


GOOD, LINES = ROWS["formats"]


@each(*ROWS["faults of a format file"])
def test_a_fault_in_a_file_names_the_file_and_the_shape(old: str, new: str, why: str) -> None:
    text = next(one for one in (GOOD, LINES) if old in one)
    with pytest.raises(FormatError, match=rf"^made\.toml.*{why}"):
        read_format("made", tomllib.loads(text.replace(old, new, 1)))


def lines_of(pattern: str, heads: str = "") -> LogFormat:
    text = LINES.replace(r"widget=\d+", pattern).replace("shapes", f"{heads}\nshapes")
    return read_format("made", tomllib.loads(text))


@each(*ROWS["patterns that have a literal"])
def test_the_literal_is_in_every_match(pattern: str, message: str) -> None:
    shape = lines_of(pattern, 'heads = ["a"]').shapes[0]
    assert shape.pattern.fullmatch(message)
    assert shape.literal in message


LONGEST = 1_000_000


@pytest.mark.parametrize(("start", "again"), ROWS["hostile messages"])
def test_a_hostile_message_takes_bounded_time(start: str, again: str) -> None:
    message = start + again * (LONGEST // len(again)) + "~"
    before = time.process_time()
    is_known(message, "send")
    assert time.process_time() - before < 2.0
