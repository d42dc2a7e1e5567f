import pytest

from jobtui.model.words import counted


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 jobs"), (1, "1 job"), (2, "2 jobs"), (12_345, "12,345 jobs")]
)
def test_what_is_counted_stands_in_its_number(count: int, words: str) -> None:
    assert counted(count, "job") == words
