"""Records as JSON, and the post-mortem as Markdown, whatever the outside texts hold."""

import json
from html.parser import HTMLParser
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from jobtui.analysis.explain.case import Evidence
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.commands import Command
from jobtui.model.health import SourceHealth
from jobtui.model.jobs import JobStatus
from jobtui.model.verdicts import Code, Fact, NextStep, Verdict
from jobtui.render import json_output
from jobtui.render.text import show
from jobtui.render.verdicts import code, evidence_head, page_of, post_mortem_lines
from tests.builders import a_job, a_step, an_op
from tests.conftest import NOW
from tests.hostile.texts import TEXTS
from tests.offenders import each
from tests.rows import ROWS

SECRET = "0123456789abcdefghijABCDEFGHIJ42"


def read(lines: Any) -> Any:
    text = "\n".join(lines)
    assert text.isascii()
    return json.loads(text)


def test_each_record_has_a_line() -> None:
    assert json_output.time_or_null(None) is None
    lines = [
        *json_output.document_lines(
            {"schema": "x", "jobs": [{"id": "a"}, {"id": "b"}], "empty": [], "one": {"a": [1]}}
        )
    ]
    assert [line for line in lines if "id" in line] == ['    {"id": "a"},', '    {"id": "b"}']
    assert read(lines) == {"schema": "x", "jobs": [{"id": "a"}, {"id": "b"}], "empty": [], "one": {"a": [1]}}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1), _JSON, max_size=4))
def test_document_lines_are_read_back(found: dict[str, object]) -> None:
    assert read(json_output.document_lines(found)) == found


def test_json_writes_null_for_the_unknown_and_lag_as_an_age() -> None:
    found = {"a": float("nan"), "b": [{"c": float("inf")}, 1.5], "d": (float("-inf"),)}
    assert json.loads(json_output.dumps(found)) == {"a": None, "b": [{"c": None}, 1.5], "d": [None]}
    assert json_output.step_record(a_step(line=-7))["line"] is None
    health = SourceHealth(name="a", kind="b", read_at=Nanos(NOW - 3 * SECOND))
    assert json_output.source_record(health, NOW)["lag_s"] == 3.0


AT = Nanos(1_795_206_870_000_000_000)
PARSER = MarkdownIt("commonmark").enable("table")


def told(text: str) -> list[str]:
    """The report on one job of which everything that comes from outside is this text."""
    job = a_job(1, status=JobStatus.FAILED, name=text, error=text, message=text)
    verdict = Verdict(
        job_id=job.id,
        code=Code.PROGRAM_FAILED,
        sentence=text or "-",
        confidence=0.9,
        evidence=(Fact(what="reply", text=text, source=text or "log", at=AT, line=3),),
        next=(NextStep("look", Command("ls", "--", about=[text])),),
        blind_spots=(text or "-",),
    )
    op = an_op(jid=job.id, steps=[a_step("sent")])
    source = SourceHealth(name=text or "x", kind="logfile", error=text or None)
    evidence = Evidence(job_id=job.id, now=AT, job=job, ops=(op,), sources=(source,))
    return list(post_mortem_lines(job, verdict, evidence))


ELEMENTS = frozenset(
    """
    html head meta title style body h1 h2 p strong em code pre hr br ul ol li blockquote
    table thead tbody tr th td
    """.split()  # noqa: SIM905 - shorter than a list
)


class Page(HTMLParser):
    """The elements of a page, and what they would load or lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.leads_to: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.leads_to += [value for name, value in attrs if name in ("src", "href") or name.startswith("on")]


def cells(lines: list[str]) -> list[str]:
    """What a parser finds in the cells of tables."""
    tokens = PARSER.parse("\n".join(lines))
    found = []
    for at, token in enumerate(tokens):
        if token.type in ("td_open", "th_open"):
            found.append(tokens[at + 1].content)
    return found


def kinds(lines: list[str]) -> list[str]:
    tokens = PARSER.parse("\n".join(lines))
    return [token.type for token in tokens if token.type.startswith(("heading", "table"))]


def test_a_report_has_everything_under_its_headings() -> None:
    lines = told("disk full")
    heads = [line for line in lines if line.startswith("#")]
    assert heads == [
        f"# {a_job(1).id}: failed",
        "## The job",
        "## What happened",
        "## Why",
        "## What was read",
    ]
    assert "`disk full`" in cells(lines)
    assert "      look:" in lines


@settings(max_examples=60)
@given(
    st.one_of(
        st.sampled_from(sorted(TEXTS.values())),
        st.text(max_size=80),
        st.text("`|\\*_[]<>#-~ \n\x1b", max_size=40),
    )
)
def test_no_text_from_outside_means_anything(text: str) -> None:
    lines = told(text)
    assert all(line.isprintable() or line == "" for line in lines)
    assert not text.strip() or kinds(lines) == kinds(told("x"))
    assert "<script" not in PARSER.render("\n".join(lines))
    page = Page()
    page.feed(page_of(text, lines))
    assert page.elements <= ELEMENTS
    assert not page.leads_to


@settings(max_examples=60)
@given(st.text("`|a b\\", min_size=1, max_size=20))
def test_code_blocks_contain_exactly_the_text(text: str) -> None:
    (inline,) = (
        token
        for token in PARSER.parse(f"| a |\n|---|\n| {code(text)} |")
        if token.type == "inline" and token.content != "a"
    )
    found = [child.content for child in inline.children or () if child.type == "code_inline"]
    assert [one.strip() for one in found] == [show(text).strip()] or not show(text).strip()


@each(*ROWS["places in most cells, -1 for any"])
def test_a_long_location_keeps_its_end(source: str, most: int, place: str) -> None:
    head = evidence_head(Fact(what="created", text="", source=source, line=7), AT, None if most < 0 else most)
    assert head.split()[1:] == ["created", place]
