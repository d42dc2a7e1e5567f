"""Where keys and values of a TOML file stand: beside what tomllib reads of it."""

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.config.toml_places import Keys, Place, places_of


def leaves(value: object, keys: Keys = ()) -> Iterator[Keys]:
    """The keys of every value that is no table."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves(inner, (*keys, key))
    elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        for number, item in enumerate(value):
            yield from leaves(item, (*keys, number))
    else:
        yield keys


def test_keys_and_values_of_every_form() -> None:
    text = (
        "# a comment = 1\n"
        'a = "x#y" # = 2\n'
        "  'b c' = [ 'one',\n"
        "    # in between\n"
        '    "two\\"]" ]\n'
        '[t."u.v"]\n'
        "w.x = { y = 1, 'z' = [true, false] }\n"
        'm = """\n[no.table]\nkey = 1 """\n'
        "[[list]]\n"
        "n = 1979-05-27 07:32:00\n"
        "[[list]]\n"
        "n = inf\n"
    )
    places = places_of(text)
    assert places.values == {
        ("a",): Place(2, 5),
        ("b c",): Place(3, 11),
        ("b c", 0): Place(3, 13),
        ("b c", 1): Place(5, 5),
        ("t", "u.v", "w", "x"): Place(7, 7),
        ("t", "u.v", "w", "x", "y"): Place(7, 13),
        ("t", "u.v", "w", "x", "z"): Place(7, 22),
        ("t", "u.v", "w", "x", "z", 0): Place(7, 23),
        ("t", "u.v", "w", "x", "z", 1): Place(7, 29),
        ("t", "u.v", "m"): Place(8, 5),
        ("list", 0, "n"): Place(12, 5),
        ("list", 1, "n"): Place(14, 5),
    }
    assert places.of_key(("b c",)) == Place(3, 3)
    assert places.of_key(("t", "u.v", "w", "x", "z")) == Place(7, 16)
    assert places.of(("a", "not there")) == Place(2, 5)
    assert places.of(("nothing",)) == Place(1, 1)


_NAMES = st.sampled_from(["a", "b-c", "1", '"q r"', "'s.t'", '"\\u00e9"'])
_VALUES = st.sampled_from(
    [
        '"x"',
        "'y#'",
        "1",
        "[1, 2]",
        "[\"a]\", ['b']]",
        "{ k = 1, l.m = 'n' }",
        '"""\n[x]\n"""',
        "[\n # c\n 1,\n]",
    ]
)


@given(
    st.lists(
        st.tuples(
            st.lists(_NAMES, min_size=1, max_size=3, unique=True),
            st.booleans(),
            st.dictionaries(_NAMES, _VALUES),
        ),
        max_size=5,
    )
)
def test_every_value_has_its_own_place(tables: list[tuple[list[str], bool, dict[str, str]]]) -> None:
    text = ""
    for names, is_list, pairs in tables:
        head = f"[[{' . '.join(names)}]]" if is_list else f"[{'.'.join(names)}]"
        text += head + "\n" + "".join(f" {name}  =  {value} # end\n" for name, value in pairs.items())
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return  # a table twice
    places = places_of(text)
    found = {keys: places.values[keys] for keys in leaves(document)}
    assert len(set(found.values())) == len(found)
    lines = text.split("\n")
    for place in found.values():
        assert lines[place.line - 1][place.column - 1] in "\"'[{1"


@given(st.text(alphabet="ab1.=[]{}\"'\\,#\n \t-", max_size=60))
def test_no_text_makes_it_raise_and_what_is_read_has_a_place(text: str) -> None:
    places = places_of(text)
    with suppress(tomllib.TOMLDecodeError):
        assert {keys[:1] for keys in places.keys} >= {(key,) for key in tomllib.loads(text)}


@pytest.mark.parametrize("text", ["a = " + "[" * 20_000, "[" * 9, "a", "= 1", 'a = "'])
def test_what_is_no_toml_has_no_place(text: str) -> None:
    assert places_of(text).of(("x",)) == Place(1, 1)
