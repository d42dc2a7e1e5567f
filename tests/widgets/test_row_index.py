from collections.abc import Generator
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from jobtui.widgets.row_index import RUN, SLICE, Order, RowIndex
from jobtui.widgets.sorted_blocks import BLOCK, Entry, SortedBlocks


class Row(NamedTuple):
    id: str
    key: int | None = None


def built(rows: list[Row], order: Order[Row]) -> tuple[RowIndex[Row], int]:
    """The index and how many slices it took."""
    steps: Generator[None, None, RowIndex[Row]] = RowIndex.rebuilt(rows, order)
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count
        count += 1


def expected(rows: list[Row], order: Order[Row]) -> list[str]:
    shown = [row for row in rows if order.keep is None or order.keep(row)]
    keyed = sorted((order.sort(row), row.id) for row in shown if order.sort(row) is not None)
    if order.reverse:
        keyed.reverse()
    return [row_id for _, row_id in keyed] + sorted(row.id for row in shown if order.sort(row) is None)


ROWS = st.lists(
    st.tuples(st.integers(0, 30), st.one_of(st.none(), st.integers(-5, 5))).map(
        lambda r: Row(str(r[0]), r[1])
    ),
    max_size=60,
)
ORDERS = st.builds(
    Order,
    st.sampled_from([lambda row: row.key]),
    st.booleans(),
    st.sampled_from([None, lambda row: row.key != 1, lambda row: False]),
)


@given(ROWS, ROWS, st.sets(st.integers(0, 30).map(str)), ORDERS)
def test_the_order_is_that_of_sorting_anew(
    first: list[Row], then: list[Row], gone: set[str], order: Order[Row]
) -> None:
    rows = {row.id: row for row in first}
    index, _ = built(list(rows.values()), order)
    for row in then:
        rows[row.id] = row
        index.put(row)
    for row_id in gone:
        rows.pop(row_id, None)
        index.discard(row_id)
    wanted = expected(list(rows.values()), order)
    assert index.window(0, 1000) == wanted
    assert len(index) == len(wanted)
    assert [index.position(row_id) for row_id in wanted] == list(range(len(wanted)))
    assert all(row_id in index for row_id in wanted)
    assert index.window(3, 7) == wanted[3:7]
    assert index.window(-3, 2) == wanted[0:2]
    assert index.window(7, 3) == []


def test_put_tells_whether_a_row_moved() -> None:
    index: RowIndex[Row] = RowIndex(Order(lambda row: row.key, keep=lambda row: row.key != 0))
    assert index.put(Row("a", 1))
    assert not index.put(Row("a", 1))
    assert index.put(Row("a", 2))
    assert index.put(Row("a", 0))
    assert not index.put(Row("a", 0))
    assert not index.discard("a")
    assert index.position("a") is None


def test_many_rows_are_sorted_in_slices() -> None:
    rows = [Row(f"{number:06d}", (number * 7919) % 10_007) for number in range(5 * RUN)]
    index, slices = built(rows, Order(lambda row: row.key))
    assert index.window(0, len(rows)) == expected(rows, Order(lambda row: row.key))
    assert slices > len(rows) // SLICE


def test_blocks_split_and_vanish() -> None:
    blocks = SortedBlocks()
    entries: list[Entry] = [((number * 7919) % 100_003, str(number)) for number in range(5 * BLOCK)]
    for entry in entries:
        blocks.add(entry)
    wanted = sorted(entries)
    assert blocks.window(0, len(entries)) == wanted
    assert [blocks.position(entry) for entry in wanted] == list(range(len(wanted)))
    for entry in wanted[10:-10]:
        blocks.remove(entry)
    assert blocks.window(0, 100) == wanted[:10] + wanted[-10:]
    for entry in (*wanted[:10], *wanted[-10:]):
        blocks.remove(entry)
    assert len(blocks) == 0
    assert blocks.window(0, 10) == []
    assert blocks.position((0, "")) == 0
