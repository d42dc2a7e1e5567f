"""Finding places in a file by time and by text, and the raw lines around one."""

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.backends import file_search
from jobtui.backends.base import SourceMissing
from jobtui.backends.file_search import BackwardSearch, lines_around, offset_of_time
from jobtui.backends.logfile import LogFile
from jobtui.formats.parser import LogParser
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.lines import RawLine
from tests.backends.log_fakes import KeepingParser
from tests.backends.test_logfile_blocks import MemoryBytes

CAPTURES = Path(__file__).parent.parent / "fixtures" / "sirepo"


def time_of(line: bytes) -> Nanos | None:
    return KeepingParser("").time_of(line, Nanos(0))


def place_of(data: bytes, seconds: int) -> int | None:
    return offset_of_time(MemoryBytes(data), len(data), Nanos(seconds * SECOND), time_of)


FILLERS = st.sampled_from([b"", b"  no time here\n", b"\0" * 200, b"y" * 3000 + b"\n", b"z\n" * 50])


@given(st.lists(st.tuples(st.integers(0, 3), FILLERS), min_size=1, max_size=60), st.integers(0, 200))
@settings(max_examples=150, deadline=None)
def test_no_line_of_the_time_asked_for_is_before_the_place_found(
    steps: list[tuple[int, bytes]], wanted: int
) -> None:
    data, seconds, due = b"", 0, None
    for step, filler in steps:
        seconds += step
        if seconds >= wanted and due is None:
            due = len(data)
        data += b"@%d line\n" % seconds + filler
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_search, "PROBE_BYTES", 300)
        patch.setattr(file_search, "_WINDOW_BYTES", 64)
        found = place_of(data, wanted)
    assert found is not None
    assert found <= (len(data) if due is None else due)


def test_the_place_of_a_time_is_exact_where_lines_have_times() -> None:
    data = b"".join(b"@%d line\n  more of it\n" % (nth // 2) for nth in range(200_000))
    for wanted in (0, 1, 31_234, 99_999):
        found = place_of(data, wanted)
        assert found == data.index(b"@%d line" % wanted)
    assert place_of(data, 100_000) == len(data)


def test_a_file_without_times_has_no_place_for_one() -> None:
    assert place_of(b"line\n" * 1_000, 7) is None
    assert place_of(b"", 7) is None


def test_holes_and_lines_without_end_do_not_hide_a_time() -> None:
    junk = b"\0" * (3 << 20) + b"x" * (3 << 20) + b"\n" + b"no time\n" * 500_000
    data = b"@1 a\n" + junk + b"@2 b\n" + junk + b"@3 c\n"
    found = place_of(data, 3)
    assert found is not None
    assert data.index(b"@1") <= found <= data.index(b"@3")
    assert place_of(data, 1) == 0


async def test_the_place_of_a_time_in_a_captured_log() -> None:
    path = CAPTURES / "local" / "supervisor.log"
    log = LogFile(path)
    text = path.read_bytes()
    parser = LogParser(str(path))
    newest = Nanos(path.stat().st_mtime_ns)
    times = [parser.time_of(line, newest) for line in text.splitlines()]
    known = sorted(time for time in times if time is not None)
    for at in (known[0], known[len(known) // 2], known[-1]):
        offset = await log.offset_at(at)
        assert offset is not None
        earlier = [parser.time_of(line, newest) for line in text[:offset].splitlines()]
        assert all(time < at for time in earlier if time is not None)


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[LogFile]:
    path = tmp_path / "supervisor.log"
    path.write_bytes(b"".join(b"line %d\n" % nth for nth in range(1, 1_001)))
    source = LogFile(path)
    yield source
    await source.aclose()


def at(path: Path, text: bytes) -> int:
    return path.read_bytes().index(text)


async def test_the_lines_around_a_line(log: LogFile) -> None:
    offset = at(Path(log.name), b"line 500\n")
    found = await log.lines_around(offset, 2, 1, line=500)
    assert [(raw.line, raw.text) for raw in found] == [
        (498, "line 498"),
        (499, "line 499"),
        (500, "line 500"),
        (501, "line 501"),
    ]
    assert found[2].offset == offset
    assert not any(raw.cut for raw in found)


async def test_the_lines_around_the_first_and_the_last(log: LogFile) -> None:
    assert [raw.text for raw in await log.lines_around(0, 5, 1)] == ["line 1", "line 2"]
    last = at(Path(log.name), b"line 1000\n")
    assert [raw.text for raw in await log.lines_around(last, 1, 5)] == ["line 999", "line 1000"]
    assert [raw.line for raw in await log.lines_around(last, 0, 0)] == [None]


async def test_many_lines_around_a_line(log: LogFile) -> None:
    offset = at(Path(log.name), b"line 500\n")
    found = await log.lines_around(offset, 10_000, 10_000, line=500)
    assert [raw.line for raw in found] == list(range(1, 1_001))
    assert all(raw.text == f"line {raw.line}" for raw in found)


async def test_lines_that_are_no_longer_those_asked_for_are_not_given(log: LogFile) -> None:
    offset = at(Path(log.name), b"line 500\n")
    assert await log.lines_around(offset, 1, 1, expect="line 500")
    assert await log.lines_around(offset, 1, 1, expect="line 501") == ()
    assert await log.lines_around(1 << 40, 1, 1, expect="line") == ()


async def test_lines_around_in_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing):
        await LogFile(tmp_path / "none").lines_around(0, 1, 1)


def test_raw_lines_are_cut_decoded_and_freed_of_nuls() -> None:
    data = b"x" * (6 << 20) + b"\n" + b"\0" * 1000 + b"bad \xff byte\r\n" + b"y" * (6 << 20)
    offset = data.index(b"bad")
    before, here, after = lines_around(MemoryBytes(data), offset, 1, 1)
    assert (here.text, here.offset, here.cut) == ("bad \ufffd byte", offset, False)
    assert len(after.text) == file_search.RAW_LINE_BYTES
    assert before.cut
    assert after.cut


def test_lines_before_a_hole_keep_their_numbers() -> None:
    data = b"one\ntwo\nth" + b"\0" * 100 + b"ree\nfour\n"
    found = lines_around(MemoryBytes(data), data.index(b"ree"), 2, 1, line=3)
    assert [(raw.line, raw.text) for raw in found] == [(2, "two"), (3, "th"), (3, "ree"), (4, "four")]
    assert not any(raw.cut for raw in found)


async def search(log: LogFile, *needles: bytes, end: int | None = None) -> list[RawLine]:
    return [raw async for raw in log.search_back(needles, end=end)]


async def test_searching_backwards_gives_the_last_first(log: LogFile) -> None:
    found = await search(log, b"99", b"line 1000", b"line 5\n"[:-1])
    assert [raw.text for raw in found][:4] == ["line 1000", "line 999", "line 998", "line 997"]
    assert len({raw.offset for raw in found}) == len(found)
    assert await search(log, b"nothing such") == []


async def test_searching_before_a_byte(log: LogFile) -> None:
    end = at(Path(log.name), b"line 500\n")
    found = await search(log, b"line 4", end=end)
    assert found[0].text == "line 499"


async def test_a_search_can_be_left(log: LogFile) -> None:
    searching = log.search_back([b"line"])
    assert (await anext(searching)).text == "line 1000"
    await searching.aclose()


@pytest.mark.parametrize("needles", [[], [b""], [b"a\nb"]])
async def test_a_search_for_nothing_is_an_error(log: LogFile, needles: list[bytes]) -> None:
    with pytest.raises(ValueError, match="search"):
        [raw async for raw in log.search_back(needles)]


async def test_searching_tells_how_much_is_left(log: LogFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_search, "SEARCH_BYTES", 1_000)
    told: list[int] = []
    found = [raw.text async for raw in log.search_back([b"line"], progress=told.append)]
    assert found == [f"line {nth}" for nth in range(1_000, 0, -1)]
    assert told == sorted(told, reverse=True)
    assert told[-1] == 0


async def test_searching_a_packed_file(tmp_path: Path) -> None:
    path = tmp_path / "supervisor.log.1.gz"
    path.write_bytes(gzip.compress(b"".join(b"line %d\n" % nth for nth in range(1_000_000))))
    found = await search(LogFile(path), b"line 99999", b"line 5 ", b"line 0")
    assert [raw.text for raw in found][:2] == ["line 999999", "line 999998"]
    assert found[-1].text == "line 0"
    assert found[-1].offset == 0


@given(
    st.lists(st.sampled_from([b"needle", b"need", b"le", b"\n", b"\n\n", b"x" * 50, b"\0"])).map(b"".join),
    st.sampled_from([(b"needle",), (b"le\n"[:-1], b"x" * 20), (b"nee", b"edl")]),
)
@settings(max_examples=200, deadline=None)
def test_a_search_finds_what_looking_at_every_line_finds(data: bytes, needles: tuple[bytes, ...]) -> None:
    expected = [line for line in data.split(b"\n") if any(needle in line for needle in needles)]
    search = BackwardSearch(MemoryBytes(data), len(data), needles)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_search, "SEARCH_BYTES", 400)
        found: list[RawLine] = []
        while search.left:
            found += search.step()
    if not any(raw.cut for raw in found):
        texts = [line.lstrip(b"\0").decode() for line in expected]
        assert [raw.text for raw in reversed(found)] == texts
    assert bool(found) == bool(expected)
