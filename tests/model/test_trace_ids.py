import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.model.trace_ids import find_trace, span_id_of_hex, trace_id_of_hex

ID = "212c891717bfbac28a34dec05b616f14"
PARENT = f"00-{ID}-ff9c35a8f8c0b21f-01"


@pytest.mark.parametrize(
    "text",
    [
        ID,
        f"  {ID}\n",
        ID.upper(),
        PARENT,
        PARENT.upper(),
        f"cc-{ID}-ff9c35a8f8c0b21f-01-what-comes-later",
        f"TraceID given: {ID}-ff9c35a8f8c0b21f-01",
        f"Error running tracingJob.py. See TRACEPARENT {PARENT}",
        f'+TraceParent="{PARENT}"',
        f"TRACEPARENT={PARENT};export TRACEPARENT",
        f"https://landscape.example.org/jaeger/trace/{ID}",
        f"see https://jaeger.example.org/trace/{ID}?uiFind=ff9c35a8f8c0b21f).",
        f"http://localhost:3200/api/v2/traces/{ID}",
        f'{{"level": "error", "trace_id": "{ID}", "span_id": "ff9c35a8f8c0b21f"}}',
        f"2026-11-20 ERROR [{ID}] it failed",
    ],
)
def test_a_trace_is_found_in_what_was_pasted(text: str) -> None:
    ref = find_trace(text)
    assert ref is not None
    assert (ref.trace_id, ref.notes, ref.others) == (ID, (), ())


@pytest.mark.parametrize("text", [PARENT, f"TraceID given: {ID}-ff9c35a8f8c0b21f-01"])
def test_a_traceparent_names_its_span(text: str) -> None:
    ref = find_trace(text)
    assert ref is not None
    assert ref.span_id == "ff9c35a8f8c0b21f"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "0" * 32,
        f"00-{'0' * 32}-ff9c35a8f8c0b21f-01",
        f"ff-{ID}-ff9c35a8f8c0b21f-01",
        "81419552.0@jobsub02.fnal.gov",
        "8Xk2JxZtN5DmQ1rVwYbUcEaGhLpSoKfI",
        "f4646948-0ce3-4b7a-b0a4-3a13e6b1b6cc",
        ID + ID,
        "no trace at all",
    ],
)
def test_what_names_no_trace_is_none(text: str) -> None:
    assert find_trace(text) is None


@pytest.mark.parametrize("text", ["abc123", "https://jaeger/trace/abc123", "trace_id=00abc123"])
def test_zeros_that_were_left_out_are_put_back_and_that_is_said(text: str) -> None:
    ref = find_trace(text)
    assert ref is not None
    assert ref.trace_id == "abc123".zfill(32)
    assert "digits of 32" in ref.notes[0]


def test_an_id_that_is_too_long_is_not_cut_silently() -> None:
    ref = find_trace(f"00-{ID}0a-ff9c35a8f8c0b21f-01")
    assert ref is not None
    assert "34 digits, 2 too many" in ref.notes[0]
    assert ref.trace_id == ID
    assert ref.others == (f"{ID}0"[1:], f"{ID}0a"[2:])


def test_a_span_id_of_another_length_is_left_out_and_that_is_said() -> None:
    ref = find_trace(f"00-{ID}-ff9c35a8f8c0b2-01")
    assert ref is not None
    assert (ref.trace_id, ref.span_id) == (ID, None)
    assert "span id has 14 digits" in ref.notes[0]


def test_of_several_traces_the_first_is_taken_and_that_is_said() -> None:
    other = PARENT.replace("212c", "ffff")
    ref = find_trace(f"{PARENT} follows {other}")
    assert ref is not None
    assert ref.trace_id == ID
    assert ref.notes == ("2 traces are named, this is the first",)


def test_ids_in_documents_may_lack_zeros() -> None:
    assert trace_id_of_hex("ABC") == "abc".zfill(32)
    assert span_id_of_hex("1") == "1".zfill(16)
    assert [span_id_of_hex(text) for text in ("", "0", "g", "1" * 17, "０１")] == [None] * 5


@given(st.text(alphabet="0123456789abcdefF-tracepn/: =\"'http", max_size=200) | st.text(max_size=100))
@settings(max_examples=200, deadline=None)
def test_any_text_gives_a_whole_id_or_none(text: str) -> None:
    ref = find_trace(text)
    for one in () if ref is None else (ref.trace_id, *ref.others):
        assert len(one) == 32
        int(one, 16)


@given(st.integers(min_value=1, max_value=(1 << 128) - 1), st.integers(min_value=1, max_value=(1 << 64) - 1))
@settings(max_examples=100, deadline=None)
def test_every_traceparent_is_read_back(trace: int, span: int) -> None:
    ref = find_trace(f"x=00-{trace:032x}-{span:016x}-01 y")
    assert ref is not None
    assert (int(ref.trace_id, 16), ref.span_id, ref.notes) == (trace, f"{span:016x}", ())
