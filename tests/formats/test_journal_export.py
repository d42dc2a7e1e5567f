from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.formats.journal_export import ENTRY_LIMIT, MESSAGE_LIMIT, ExportParser, Raw, entry_of_export
from tests.backends.journal.make import FIXTURES, entry, in_binary, in_text
from tests.builders import some
from tests.offenders import each

FEW = settings(max_examples=60, deadline=None)
HEAD = {"__CURSOR": b"s=1;i=1", "__REALTIME_TIMESTAMP": b"1700000000000000"}
NAMES = st.from_regex(r"[A-Z][A-Z0-9_]{0,20}", fullmatch=True)
VALUES = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=30).map(str.encode),
    st.sampled_from([b"", b"\n", b"\n\n", b"a\n\n__CURSOR=x\nB=c\n\n", b"NAME\n", b"=", b"x" * 300]),
)
ENTRIES = st.lists(st.lists(st.tuples(NAMES, VALUES, st.booleans()), max_size=8), min_size=1, max_size=6)


def in_chunks(data: bytes, size: int, parser: ExportParser | None = None) -> list[Raw]:
    parser = parser or ExportParser()
    return [raw for at in range(0, len(data), size) for raw in parser.feed(data[at : at + size])]


def encoded(fields: list[tuple[str, bytes, bool]]) -> tuple[bytes, dict[bytes, list[bytes]]]:
    out, wanted = b"", dict[bytes, list[bytes]]()
    for name, value, binary in [*((name, value, False) for name, value in HEAD.items()), *fields]:
        out += (in_binary if binary or b"\n" in value else in_text)(name, value)
        wanted.setdefault(name.encode(), []).append(value)
    return out + b"\n", wanted


@FEW
@given(ENTRIES, st.integers(1, 400))
def test_the_export_parser_reads_any_chunks(entries: list[list[tuple[str, bytes, bool]]], size: int) -> None:
    pairs = [encoded(fields) for fields in entries]
    parser = ExportParser()
    found = in_chunks(b"".join(text for text, _ in pairs), size, parser)
    lists = [{n: v if isinstance(v, list) else [v] for n, v in raw.items()} for raw in found]
    assert lists == [wanted for _, wanted in pairs]
    assert (parser.skipped, parser.pending) == (0, False)


DAMAGE = st.tuples(
    st.integers(0, 700),
    st.integers(0, 3),
    st.sampled_from([b"\0", b"a", b"=", b"\n", b"\n\n", b"X" * 70, b"B\n"]),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(DAMAGE, max_size=6), st.integers(1, 300))
def test_damage_loses_the_same_in_chunks_of_any_size(damage: list[tuple[int, int, bytes]], size: int) -> None:
    text = b"".join(entry(nth, f"message\n{nth}" if nth % 2 else f"message {nth}") for nth in range(4))
    for at, length, noise in damage:
        text = text[:at] + noise + text[at + length :]
    whole, parts = ExportParser(), ExportParser()
    assert in_chunks(text, size, parts) == whole.feed(text)
    assert parts.skipped == whole.skipped


def test_an_export_of_journald_is_read_and_its_long_messages_cut() -> None:
    parser = ExportParser()
    entries = [entry_of_export(raw) for raw in parser.feed((FIXTURES / "live-journald.export").read_bytes())]
    messages = [each.message for each in entries if each]
    assert len(messages) == 8
    assert "" in messages
    assert any("\n" in message for message in messages)
    assert any(len(message) >= 5000 for message in messages)
    assert any("\ufffd" in message for message in messages)
    assert any("\x1b[" in message for message in messages)
    (raw,) = in_chunks(entry(1, "x" * 2_000_000), 1 << 16)
    read = some(entry_of_export(raw))
    assert (len(read.message), read.size) == (MESSAGE_LIMIT, 2_000_000)


@each(in_binary, in_text)
def test_a_value_too_long_loses_only_its_entry(form: Callable[[str, bytes], bytes]) -> None:
    head = b"".join(in_text(name, value) for name, value in HEAD.items())
    within = b"\n\n" + entry(1, "made up") if form is in_binary else b""
    long = form("MESSAGE", b"x" * ENTRY_LIMIT + within + b"x")
    parser = ExportParser()
    found = in_chunks(head + long + b"\n" + entry(2, "next"), 1 << 16, parser)
    assert [raw[b"MESSAGE"] for raw in found] == [b"next"]
    assert parser.skipped == 1


@each(1_000_000, 50 << 20)
def test_a_plausible_wrong_length_is_noticed_at_its_end(length: int) -> None:
    parser = ExportParser()
    broken = entry(1, "x").removesuffix(b"\n") + b"BAD\n" + length.to_bytes(8, "little") + b"abcdef\n\n"
    found = in_chunks(entry(0, "before") + broken + entry(2, "swallowed"), 50, parser)
    assert parser.pending
    found += parser.feed(b"\0" * length + entry(3, "still") + entry(4, "end"))
    assert (found[0][b"MESSAGE"], found[-1][b"MESSAGE"]) == (b"before", b"end")
    assert parser.skipped >= 1


UNUSABLE = b"MESSAGE=x\n\n", b"__CURSOR=a\nMESSAGE=x\n\n", b"__CURSOR=a\n__REALTIME_TIMESTAMP=soon\n\n"


@each(
    (b"Welcome\n*** be careful ***\n" + entry(0, "first") + entry(1, "next"), [b"first", b"next"], 1),
    (b"<!DOCTYPE html>\n<html><a href='x=y'>\n\nplease log in\n" * 1000, [], None),
    (b"".join(UNUSABLE), [], 3),
)
def test_bytes_that_are_not_an_entry_are_skipped_and_not_held(
    text: bytes, messages: list[bytes], skipped: int | None
) -> None:
    parser = ExportParser()
    assert [found[b"MESSAGE"] for found in in_chunks(text, 30, parser)] == messages
    assert parser.skipped == skipped or (skipped is None and parser.skipped)


def test_the_record_has_what_the_fields_say() -> None:
    text = entry(
        3,
        "caf\u00e9",
        _SYSTEMD_UNIT="docker.service",
        CONTAINER_ID="d71202e0b703",
        CONTAINER_ID_FULL="d71202e0b703" + "0" * 52,
        _SOURCE_REALTIME_TIMESTAMP="1699999999999999",
        PRIORITY="3",
        _PID="812",
    )
    (raw,) = ExportParser().feed(text)
    read = some(entry_of_export(raw))
    assert (read.at, read.sent_at) == (1_700_000_003_000_000_000, 1_699_999_999_999_999_000)
    assert (read.unit, read.container_id) == ("docker.service", "d71202e0b703" + "0" * 52)
    assert (read.size, read.priority, read.pid, read.monotonic_us) == (5, 3, 812, 8_000_000)
