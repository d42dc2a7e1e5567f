"""The lines of a job in the order in which they happened."""

from hypothesis import given
from hypothesis import strategies as st

from jobtui.analysis.job_lines import JobLine, in_time_order, job_lines
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId
from jobtui.model.ops import Certainty, Component, Step, Unlinked
from tests.builders import a_step, an_op, job_id

JID = job_id()


def texts(lines: list[JobLine]) -> list[str]:
    return [line.text for line in lines]


def test_sources_are_merged_by_time_and_the_server_comes_first() -> None:
    late = a_step("s", 2.0, text="late", offset=30)
    called = a_step("s", 1.0, text="called", source="server.log", component=Component.SERVER, offset=5)
    made = a_step("s", 1.0, text="made", offset=20)
    op = an_op(steps=[late, made, called])
    assert texts(job_lines(JID, [op], ())) == ["called", "made", "late"]


def test_a_line_without_a_time_stays_where_it_was_written() -> None:
    steps = [
        a_step("s", 0.0, text="a", offset=1),
        a_step("s", text="b", offset=2, at=None),
        a_step("s", 5.0, text="c", offset=3),
        a_step("s", 2.0, text="other", source="b.log", offset=1),
    ]
    assert texts(job_lines(JID, [an_op(steps=steps)], ())) == ["a", "b", "other", "c"]


def test_a_line_of_two_ops_is_given_once_with_its_surest_link() -> None:
    weak = an_op(steps=[a_step("s", offset=1, text="x", certainty=Certainty.ADJACENT)], op="aaaa")
    sure = an_op(steps=[a_step("s", offset=1, text="x", certainty=Certainty.JID)], op="bbbb")
    (line,) = job_lines(JID, [weak, sure], ())
    assert line.certainty is Certainty.JID
    assert line.op is sure


def test_unlinked_lines_belong_to_no_op() -> None:
    loose = Unlinked(JID, a_step("s", text="loose", line=-5), "no op")
    (line,) = job_lines(JID, (), [loose])
    assert (line.text, line.op, line.line) == ("loose", None, 0)


def test_a_level_is_only_read_where_python_logging_wrote_it() -> None:
    def level(text: str) -> str | None:
        return job_lines(JID, [an_op(steps=[a_step("s", text=text)])], ())[0].level

    assert level("ERROR:tornado.application:boom") == "error"
    assert level("INFO:tornado.access:200 POST /x") == "info"
    assert level("_Op(run, abcd) error=ERROR: x") is None


_STEPS = st.lists(
    st.builds(
        lambda at, source, offset: a_step(
            "s", at=None if at is None else Nanos(at), source=source, offset=offset, text=f"{source}{offset}"
        ),
        st.none() | st.integers(0, 10),
        st.sampled_from("abc"),
        st.integers(0, 20),
    ),
    max_size=20,
)


@given(_STEPS)
def test_every_source_keeps_its_order(steps: list[Step]) -> None:
    lines = job_lines(JobId("x"), [an_op(steps=steps)], ())
    assert {line.place for line in lines} == {(s.source, s.offset, s.text) for s in steps}
    for source in "abc":
        offsets = [line.offset for line in lines if line.source == source]
        assert offsets == sorted(offsets)
    assert in_time_order(reversed(lines)) == lines
