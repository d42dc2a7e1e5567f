"""What journalctl and gatewayd are asked, and which entries are wanted."""

import pytest

from jobtui.backends.base import SourceError
from jobtui.backends.journal import asking
from jobtui.formats.journal_export import Raw
from jobtui.model.clock import Nanos
from jobtui.model.journal import At, Beside, Cursor, Head, Matches, Tail


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (asking.forward_words(Head(), 5), []),
        (asking.forward_words(Beside(Cursor("c")), 5), ["--cursor=c", "--lines=5"]),
        (asking.forward_words(At(Nanos(1_582_580_810_352_125_001)), 5), ["--since=@1582580810.352126"]),
        (asking.backward_words(Tail(), 5), ["--reverse", "--lines=5"]),
        (asking.backward_words(Beside(Cursor("c")), None), ["--reverse", "--cursor=c"]),
        (
            asking.backward_words(At(Nanos(1_582_580_810_000_000_000)), 5),
            ["--reverse", "--lines=5", "--until=@1582580809.999999"],
        ),
        (asking.backward_words(At(Nanos(0)), None), ["--reverse", "--until=@0.000000"]),
        (asking.follow_words(Head()), ["--follow", "--no-tail"]),
    ],
)
def test_words(words: list[str], wanted: list[str]) -> None:
    assert words == wanted


def test_groups_are_alternatives() -> None:
    matches: Matches = ((("A", "1"), ("B", "x=y")), (("A", "2"),))
    assert asking.match_words(matches) == ["A=1", "B=x=y", "+", "A=2"]
    assert asking.match_words(()) == []
    assert asking.without_surplus((*matches, *matches)) == matches
    assert asking.without_surplus((*matches, ())) == ()


@pytest.mark.parametrize(
    ("matches", "exact"),
    [
        ((), True),
        (((("A", "1"), ("B", "1")),), True),
        (((("A", "1"), ("A", "1")),), True),
        (((("A", "1"), ("A", "2")),), False),
    ],
)
def test_one_field_with_two_values_is_not_what_a_journal_takes_it_for(matches: Matches, exact: bool) -> None:
    assert asking.is_exact(matches) is exact


def test_which_entries_are_wanted() -> None:
    raw: Raw = {b"A": [b"1", b"2"], b"B": b"\xff"}
    assert asking.fulfils(raw, ())
    assert asking.fulfils(raw, ((("A", "2"),),))
    assert asking.fulfils(raw, ((("A", "1"), ("A", "2")),))
    assert asking.fulfils(raw, ((("A", "3"),), (("B", "\udcff"),)))
    assert not asking.fulfils(raw, ((("A", "3"),), (("C", ""),)))
    assert not asking.fulfils(raw, ((("A", "1"), ("C", "")),))


@pytest.mark.parametrize(("field", "value"), [("a", "1"), ("A B", "1"), ("-D", "1"), ("A", "x\0y"), ("", "")])
def test_what_no_journal_can_be_asked_is_refused(field: str, value: str) -> None:
    with pytest.raises(SourceError, match=r"^here: "):
        asking.check((((field, value),),), "here")
