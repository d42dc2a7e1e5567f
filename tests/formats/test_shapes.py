"""The format files: samples are what their shapes say, files keep their rules, nothing takes everything."""

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.formats import schema
from jobtui.formats.schema import FormatError, LogFormat, document_of, load, read_format, text_of
from tests.formats.captures import LOGS, name_of, records_of
from tests.rows import ROWS

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


@pytest.mark.parametrize("name", SAMPLED)
def test_every_shape_gives_its_samples_and_a_file_holds_nothing_else(name: str) -> None:
    document, log_format = document_of(name, text_of(name)), load(name)
    shapes, lines = document.get("shape", []), document.get("lines", [])
    samples = [entry["sample"] for entry in shapes]
    for kind, tables in (
        ("", [document]),
        ("shape", shapes),
        ("sample", [one for some in samples for one in some]),
        ("lines", lines),
    ):
        assert not set().union(*tables) - MAY_HOLD[kind]
    for entry in lines:
        func = next(iter(entry.get("funcs", ())), "")
        samples += [[{"text": text, "func": func}] for _, text in entry["shapes"]]
    for shape, some in zip(log_format.shapes, samples, strict=True):
        assert some, shape.name
        for sample in some:
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
def test_sifting_by_needles_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = path.read_bytes()
    monkeypatch.setattr(schema, "BUSY", 0)
    quiet = records_of(data)
    monkeypatch.setattr(schema, "BUSY", 1_000_000)
    assert records_of(data) == quiet


GOOD, LINES = ROWS["formats"]


@pytest.mark.parametrize(("old", "new", "why"), ROWS["faults of a format file"])
def test_a_fault_in_a_file_is_told_with_file_and_shape(old: str, new: str, why: str) -> None:
    assert old in GOOD
    with pytest.raises(FormatError, match=rf"^made\.toml.*{why}"):
        read_format("made", GOOD.replace(old, new, 1))


def lines_of(pattern: str, heads: str = "") -> LogFormat:
    return read_format("made", LINES.replace(r"widget=\d+", pattern).replace("shapes", f"{heads}\nshapes"))


@pytest.mark.parametrize("pattern", [r"\w+=3", "widgets?=3", "(?:widget|frob)=3", "widget|frob", "wid[gh]et"])
def test_a_pattern_without_a_first_word_needs_heads(pattern: str) -> None:
    with pytest.raises(FormatError, match=r"widget.*heads are needed"):
        lines_of(pattern)


@pytest.mark.parametrize(("pattern", "message"), ROWS["patterns that have a literal"])
def test_the_literal_is_in_every_match(pattern: str, message: str) -> None:
    shape = lines_of(pattern, 'heads = ["a"]').shapes[0]
    assert shape.pattern.fullmatch(message)
    assert shape.literal in message


DRIVER = "LocalDriver(a=abcd k=s u=abcd ["
OP = "_Op(run, abcd, internal_error="
JOB = "_ComputeJob(a u=a a ["
LONGEST = 1_000_000


@pytest.mark.parametrize(("start", "again"), ROWS["hostile messages"])
def test_a_hostile_message_takes_bounded_time(start: str, again: str) -> None:
    message = start + again * (LONGEST // len(again)) + "~"
    before = time.process_time()
    is_known(message, "send")
    assert time.process_time() - before < 2.0
