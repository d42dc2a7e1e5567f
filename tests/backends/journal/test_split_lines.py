"""Lines that docker gives in pieces: as one, whatever stands between, and bounded."""

from hypothesis import given
from hypothesis import strategies as st

from jobtui.backends.journal.records import LINES_OPEN, EntryRecords, SplitLines, StreamNames, Wanted
from jobtui.formats.journal_export import MESSAGE_LIMIT, entry_of_export
from jobtui.model.clock import Nanos
from jobtui.model.journal import Cursor, JournalEntry

STDOUT, STDERR = 6, 3
LINE = "Nov 20 20:34:31 30699     0 job_agent.py:487:_op opName=run o=ab12 runDir=/scratch/x"


def piece(nth: int, text: str, *, begun: bool, container: str = "srj-p-a", priority: int = 6) -> JournalEntry:
    return JournalEntry(
        cursor=Cursor(str(nth)),
        at=Nanos(1_795_300_000_000_000_000 + nth),
        message=text,
        size=len(text),
        container=container,
        container_id="f" * 64,
        priority=priority,
        is_begun=begun,
    )


def pieces(text: str, size: int, **of: str | int) -> list[JournalEntry]:
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    return [piece(n, part, begun=n < len(parts) - 1, **of) for n, part in enumerate(parts)]  # type: ignore[arg-type]


def test_a_field_tells_that_a_line_goes_on() -> None:
    fields = {b"__CURSOR": b"c", b"__REALTIME_TIMESTAMP": b"1", b"CONTAINER_PARTIAL_MESSAGE": b"true"}
    entry = entry_of_export(fields)
    assert entry is not None
    assert entry.is_begun


def test_a_record_in_pieces_is_one_record_over_batches() -> None:
    records = EntryRecords(Wanted(), StreamNames("local"))
    found = []
    for entry in pieces(LINE, 25):
        made, _, _ = records.take([entry])
        found += made
    (record,) = found
    assert (record.fields["o"], record.text[-12:], record.cursor) == ("ab12", "r=/scratch/x", "0")


@given(st.lists(st.text("abc", min_size=2, max_size=9), max_size=6), st.integers(1, 4), st.randoms())
def test_both_outputs_and_other_containers_stand_between(texts: list[str], size: int, draw: object) -> None:
    queues = [
        pieces(text, size, container=f"srj-p-{n // 2}", priority=STDOUT if n % 2 else STDERR)
        for n, text in enumerate(texts)
    ]
    mixed: list[JournalEntry] = []
    while queues := [queue for queue in queues if queue]:
        mixed.append(draw.choice(queues).pop(0))  # type: ignore[attr-defined]
    found = list(SplitLines().joined(mixed))
    assert sorted(entry.message for entry in found) == sorted(texts)
    assert all(entry.size == len(entry.message) and not entry.is_begun for entry in found)


def test_what_never_ends_is_bounded() -> None:
    lines = SplitLines()
    endless = [piece(n, "x" * 16_384, begun=True) for n in range(100)]
    assert not list(lines.joined(endless))
    (whole,) = lines.joined([piece(100, "end", begun=False)])
    assert (len(whole.message), whole.size) == (MESSAGE_LIMIT, 100 * 16_384 + 3)
    many = [piece(n, "x", begun=True, container=f"srj-p-{n}") for n in range(LINES_OPEN + 10)]
    assert [entry.container for entry in lines.joined(many)] == [f"srj-p-{n}" for n in range(10)]


def test_what_is_no_container_is_left_alone() -> None:
    entry = piece(0, "x", begun=True, container="")
    assert list(SplitLines().joined([entry])) == [entry]
