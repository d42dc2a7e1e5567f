import gzip
import os
import random
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.backends.journal.records import StreamNames, Wanted
from jobtui.logs import search as log_search
from jobtui.logs import search as search_program
from jobtui.logs.journal import JournalPages, Selection
from jobtui.logs.merged import MergedLog
from jobtui.logs.pages import LogPages
from jobtui.logs.search import FileSearch, ripgrep
from jobtui.model.pages import Hits, Log, SearchState
from jobtui.model.secrets import MAY_BE_MASKED, mask_line
from tests.backends.log_reading import END, all_found, asked, searched
from tests.excerpts import FIXTURES
from tests.journal_memory import MemoryJournal

WORDS = ("alpha", "Beta", "gamma [x]", "ε Straße", "-e", "--pre=sh", "$(touch x)", "a.c", "\x1b[31m")

MASKED = tomllib.loads((FIXTURES / "masked_searches.toml").read_text())

with_and_without_ripgrep = pytest.mark.parametrize("installed", [True, False], ids=["rg", "own"])


@pytest.fixture(autouse=True)
def program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `installed` ripgrep is used for everything it can be, without it never."""
    installed = getattr(request.node, "callspec", None) and request.node.callspec.params.get("installed")
    if installed and ripgrep() is None:
        pytest.skip("ripgrep is not installed here")
    if installed:
        monkeypatch.setattr(log_search, "PROGRAM_FROM_BYTES", 0)
    else:
        monkeypatch.setattr(log_search, "ripgrep", lambda: None)
        monkeypatch.setattr(search_program, "ripgrep", lambda: None)


def write(pages: LogPages, data: bytes, mode: str = "wb") -> None:
    with Path(pages.name).open(mode) as file:
        file.write(data)


def a_log(pages: LogPages) -> list[str]:
    rng = random.Random(1)
    lines = [f"{n} {rng.choice(WORDS)} {rng.choice(WORDS)}" for n in range(200)]
    Path(pages.name).write_text("\n".join(lines))
    return lines


@with_and_without_ripgrep
@pytest.mark.parametrize("typed", ["alpha", "BETA", "-e", "$(touch", "a.c", "straße"])
@pytest.mark.parametrize("around", [1_000, 1 << 40])
async def test_a_text_is_found_as_it_stands(
    pages: LogPages, tmp_path: Path, installed: bool, typed: str, around: int
) -> None:
    lines = a_log(pages)
    fold = str.casefold if typed == typed.lower() else str
    search = await searched(pages, typed, around)
    assert search.state is SearchState.DONE
    assert await all_found(pages, search) == [line for line in lines if fold(typed) in fold(line)]
    assert os.listdir(tmp_path) == ["x.log"]


@with_and_without_ripgrep
@pytest.mark.parametrize("typed", ["~^1.*alpha", r"~\bbeta$", "~ALPHA", "~[xyz", "~a|beta"])
async def test_an_expression_is_searched_for(pages: LogPages, installed: bool, typed: str) -> None:
    lines = a_log(pages)
    search = await searched(pages, typed)
    try:
        flags = re.IGNORECASE if asked(typed).ignores_case else 0
        wanted = [line for line in lines if re.search(asked(typed).text, line, flags)]
    except re.error:
        assert search.state is SearchState.FAILED
        assert search.problem
        return
    assert await all_found(pages, search) == wanted


@with_and_without_ripgrep
@pytest.mark.parametrize("kind", ["file", "packed", "merged", "journal"])
@pytest.mark.parametrize("typed", MASKED["found"])
async def test_what_is_masked_is_not_found(tmp_path: Path, installed: bool, kind: str, typed: str) -> None:
    lines = MASKED["lines"]
    text = "".join(f"{line}\n" for line in lines).encode()
    path = tmp_path / ("x.log.gz" if kind == "packed" else "x.log")
    path.write_bytes(gzip.compress(text) if kind == "packed" else text)
    log: Log = LogPages(path)
    if kind == "merged":
        log = MergedLog({"x": LogPages(path)})
    if kind == "journal":
        journal = MemoryJournal()
        for line in lines:
            journal.write(line, unit="sirepo_job_supervisor.service", host="v3", pid=7)
        log = JournalPages("x", journal.reader, Selection(StreamNames("x"), Wanted(), None, ()))
    search = await searched(log, typed, END)
    assert search.state is SearchState.DONE
    assert [lines.index(line) for line in await all_found(log, search)] == MASKED["found"][typed]
    await log.aclose()


_PIECES = [
    "token", "=", "'", ":", " ", "Bearer ", "://", "u:pw@", "\x1b[1m", "\u200b", "agent", "_id",
    "srj-p-", "API-key", "sid", "_session", "csrf", "private", "é", "İ", "K",
]  # fmt: skip


@given(
    st.lists(
        st.sampled_from(_PIECES)
        | st.sampled_from(
            ["aB3" * 21, "aB3/" * 5, "x" * 32, "creDential", "\\", "--", "0123456789abcdef" * 2]
        ),
        max_size=8,
    ).map("".join)
)
def test_lines_that_masking_changes_are_handed_over(line: str) -> None:
    pattern = MAY_BE_MASKED.replace("(?-u:[^'\\n])", "[^'\\n]")
    pattern = re.sub(r"\\x\{([0-9a-f]+)\}", lambda found: f"\\u{int(found[1], 16):04x}", pattern)
    if mask_line(line) != line:
        assert re.search(pattern, line)


@with_and_without_ripgrep
async def test_bytes_that_are_no_text_do_not_end_a_search(pages: LogPages, installed: bool) -> None:
    write(pages, b"one\n\xff\xfe needle\r\n" + bytes(200_000) + b"needle\nend")
    search = await searched(pages, "needle")
    assert len(search.hits) == 2
    assert (await pages.after(search.hits.next_after(0) or 0, 1)).lines[0].text == "\ufffd\ufffd needle"


@with_and_without_ripgrep
@pytest.mark.parametrize("typed", ["needle", "~n.edle"])
async def test_what_is_written_is_searched_on(pages: LogPages, installed: bool, typed: str) -> None:
    write(pages, b"needle 1\nplain\nnee")
    await pages.look()
    search = pages.search(asked(typed), 0)
    await search.run()
    assert len(search.hits) == 1
    write(pages, b"dle 2\nplain\nneedle 3", "ab")
    await pages.look()
    await search.extend()
    assert await all_found(pages, search) == ["needle 1", "needle 2", "needle 3"]
    await search.extend()
    assert len(search.hits) == 3
    search.cancel()


@pytest.mark.parametrize("state", [SearchState.TIMED_OUT, SearchState.CANCELED])
async def test_an_expression_that_takes_for_ever_is_stopped(pages: LogPages, state: SearchState) -> None:
    write(pages, b"a" * 60 + b"b\n")
    await pages.look()
    search = FileSearch(lambda: pages.segments, asked("~^(a+)+$"))
    search.limit_s = 0.3
    if state is SearchState.CANCELED:
        search.cancel()
    await search.run()
    assert (search.state, len(search.hits)) == (state, 0)
    search.cancel()


async def test_no_more_is_kept_than_the_limit(pages: LogPages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_search, "HITS_KEPT", 100)
    monkeypatch.setattr(log_search, "CHUNK_BYTES", 256)
    write(pages, b"hit\n" * 1_000)
    search = await searched(pages, "hit")
    assert search.state is SearchState.FULL
    assert 100 <= len(search.hits) <= 100 + 256 // 4


@given(st.lists(st.integers(0, 1_000), unique=True), st.lists(st.integers(0, 1_001)), st.integers(0, 1_000))
def test_hits_are_found_on_both_sides(places: list[int], asked_at: list[int], around: int) -> None:
    hits = Hits(around)
    hits.add_above(sorted(place for place in places if place >= around), 1_001)
    hits.add_below(sorted((place for place in places if place < around), reverse=True), 0)
    for at in asked_at:
        assert hits.next_after(at) == min((place for place in places if place >= at), default=None)
        assert hits.last_before(at) == max((place for place in places if place < at), default=None)
        assert hits.rank(at) == sum(place < at for place in places)
