import pytest

from jobtui.render.columns import DEFAULT_COLUMNS, RowContext, fit_columns, short_host
from tests.builders import a_job
from tests.conftest import NOW


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("v3.radia.run", "v3"),
        ("compute-17.hpc.example.org.", "compute-17"),
        ("localhost", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("10.1.2.3:8000", "10.1.2.3:8000"),
        ("fe80::1.2", "fe80::1.2"),
        ("v3.", "v3."),
        ("", ""),
        ("a b.c d", "a b.c d"),
        ("1.2.3.example", "1.2.3.example"),
    ],
)
def test_the_first_label_of_a_dns_name(host: str, shown: str) -> None:
    assert short_host(host) == shown


@pytest.mark.parametrize(("cells", "shown"), [(120, "v3"), (200, "v3.radia.run")])
def test_the_whole_name_where_there_is_room(cells: int, shown: str) -> None:
    column = next(column for column, _ in fit_columns(cells, DEFAULT_COLUMNS) if column.key == "host")
    assert column.cell(a_job(host="v3.radia.run"), RowContext(now=NOW)) == shown
