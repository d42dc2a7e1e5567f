"""Event logs and job ads as facts: what HTCondor's own reader makes of them, and what nobody can read."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.formats.condor_events import EventReader
from jobtui.formats.condor_frames import Form, form_of, frames_of
from jobtui.formats.date_output import read_date
from jobtui.model.clock import SECOND, to_rfc3339
from jobtui.model.condor import EVENTS
from jobtui.model.condor_facts import CondorFact, Teller
from jobtui.model.ids import JobId
from tests.condor import CONDOR, JOB, NEWEST, book_of, event, executing, facts_in, facts_of, submitted

TRUTH: dict[str, list[dict[str, Any]]] = json.loads((CONDOR / "truth.json").read_text())
"""What JobEventLog of htcondor 25.14 reads, in the zone in which the logs were written."""
ZONE_S = 5 * 3600
SAME = {
    "HoldReason": "Reason", "Message": "Reason", "DisconnectReason": "Reason", "Reason": "Reason",
    "SubmitHost": "SubmitHost", "ExecuteHost": "ExecuteHost", "SlotName": "SlotName",
    "StartdName": "StartdName", "HoldReasonCode": "HoldReasonCode", "HoldReasonSubCode": "HoldReasonSubCode",
    "ReturnValue": "ReturnValue", "TerminatedBySignal": "TerminatedBySignal", "JobsubJobId": "JobsubJobId",
}  # fmt: skip
"""Attributes, and how facts call them."""


def skips_of(data: bytes) -> list[str]:
    framed = frames_of(Form.CLASSIC, data, to_end=False)
    return [skip.why for skip in EventReader("a").read(Form.CLASSIC, framed.frames, 0, 1, NEWEST).skips]


@pytest.mark.parametrize("form", ["log", "json.log", "xml.log"])
@pytest.mark.parametrize("name", TRUTH)
def test_events_are_what_htcondor_itself_reads(name: str, form: str) -> None:
    facts = facts_in(CONDOR / f"{name}.{form}")
    assert len(facts) == len(TRUTH[name])
    for fact, true in zip(facts, TRUTH[name], strict=True):
        assert (fact.teller, fact.what) == (Teller.EVENT, EVENTS[true["type"]].name)
        assert fact.job == f"{true['cluster']}.{true['proc']}@jobsub02.fnal.gov"
        assert fact.at is not None
        assert fact.is_local
        assert fact.at // SECOND + ZONE_S == true["timestamp"]
        for theirs, ours in SAME.items():
            if theirs in true["attributes"]:
                assert fact.values[ours] == str(true["attributes"][theirs]), (fact.what, theirs)


def test_a_job_ad_names_its_job_and_its_trace() -> None:
    (fact,) = facts_in(CONDOR / "job.ad")
    assert (fact.job, fact.teller, fact.what) == ("81422934.0@jobsub02.fnal.gov", Teller.AD, "ad")
    assert fact.values["TraceParent"] == "2797255385ce5212c9cf3bdcfac11067"


@pytest.mark.parametrize(
    "text",
    [
        '[\n{\n  "ClusterId": 7,\n  "ProcId": 0,\n  "GlobalJobId": "s.example.org#7.0#1721397731"\n}\n,\n'
        '{"ClusterId": 7, "ProcId": 1, "GlobalJobId": "s.example.org#7.1#1"}\n]\n',
        '<?xml version="1.0"?>\n<classads>\n'
        '<c><a n="ClusterId"><i>7</i></a><a n="ProcId"><i>0</i></a>'
        '<a n="GlobalJobId"><s>s.example.org#7.0#1</s></a></c>\n'
        '<c><a n="ClusterId"><i>7</i></a><a n="ProcId"><i>1</i></a></c>\n</classads>\n',
        'GlobalJobId = "s.example.org#7.0#1"\nClusterId = 7\nProcId = 0\n\n'
        'ClusterId = 7\nProcId = 1\nJobStatus = 2\n\n',
    ],
    ids=["json", "xml", "long"],
)  # fmt: skip
def test_many_ads_come_in_each_form(text: str) -> None:
    facts = facts_of(text.encode())
    assert [fact.job for fact in facts] == ["7.0@s.example.org", "7.1@s.example.org"]
    assert {fact.teller for fact in facts} == {Teller.AD}


def test_an_event_that_is_not_whole_yet_waits() -> None:
    data = (submitted() + executing()[:-6]).encode()
    framed = frames_of(Form.CLASSIC, data, to_end=False)
    assert len(framed.frames) == 1
    assert framed.taken == len(submitted())


def test_a_torn_event_costs_only_itself() -> None:
    data = (submitted() + executing()[:30] + "\n" + executing()).encode()
    assert [fact.what for fact in facts_of(data)] == ["submit", "execute"]
    assert skips_of(data) == ["its end or its beginning was never written"]


@pytest.mark.parametrize(
    "junk",
    [b"\0" * 500, b"nothing that makes sense\n...\n", b"\xff\xfe\x80\n...\n"],
    ids=["nul", "text", "bytes"],
)
def test_what_makes_no_sense_costs_only_itself(junk: bytes) -> None:
    data = submitted().encode() + junk + executing().encode()
    assert [fact.what for fact in facts_of(data)] == ["submit", "execute"]


def test_the_head_of_a_log_of_a_whole_schedd_is_of_no_job_and_costs_nothing() -> None:
    head = event(
        8,
        "2026-11-20 09:59:59Z",
        "Global JobLog: ctime=1795168799 id=0.3192890.1795168790.17.12.1795168799.512105 sequence=12 size=0 "
        "events=0 offset=23622537909 event_off=0 max_rotation=1 creator_name=<>",
        job="-01.-01.-01",
    )
    data = (head + submitted()).encode()
    assert [(fact.what, fact.job) for fact in facts_of(data)] == [("generic", ""), ("submit", JOB)]
    assert skips_of(data) == []
    assert form_of(head.encode()) is Form.CLASSIC
    assert book_of(facts_of(data))[0].detail(JobId("-1")) is None


@pytest.mark.parametrize(
    "head",
    [
        '{"MyType": "GenericEvent", "EventTypeNumber": 8, "EventTime": "2026-11-20T09:59:59Z", '
        '"Cluster": -1, "Proc": -1, "Subproc": -1, "Info": "Global JobLog: ctime=1795168799"}\n',
        '<c><a n="MyType"><s>GenericEvent</s></a><a n="EventTypeNumber"><i>8</i></a>'
        '<a n="Cluster"><i>-1</i></a><a n="Proc"><i>-1</i></a><a n="Info"><s>Global JobLog</s></a></c>\n',
    ],
    ids=["json", "xml"],
)
def test_such_a_head_is_of_no_job_in_other_forms_as_well(head: str) -> None:
    assert [(fact.what, fact.job) for fact in facts_of(head.encode())] == [("generic", "")]


def test_an_event_of_a_kind_nobody_knows_is_a_note() -> None:
    (fact,) = facts_of(event(99, "2026-11-20 10:00:00", "Something new").encode())
    assert (fact.what, fact.job) == ("generic", "7.0")


@pytest.mark.parametrize(
    ("heads", "newest", "days"),
    [
        (["11/20"], "2026-11-21", ["2026-11-20"]),
        (["12/31", "01/01"], "2026-01-01", ["2025-12-31", "2026-01-01"]),
        (["12/31", "01/01"], "2027-06-01", ["2026-12-31", "2027-01-01"]),
        (["05/01", "07/01", "02/01"], "2026-06-01", ["2025-05-01", "2025-07-01", "2026-02-01"]),
        (["02/29", "03/01"], "2026-11-21", ["2024-02-29", "2026-03-01"]),
        (["07/01/26"], "2020-01-01", ["2026-07-01"]),
    ],
)
def test_a_log_without_years_never_goes_back(heads: list[str], newest: str, days: list[str]) -> None:
    data = "".join(event(8, f"{head} 10:00:00", "a note") for head in heads).encode()
    changed = read_date(f"{newest} 12:00:00 UTC")
    assert changed is not None
    facts = facts_of(data, newest=changed.at)
    assert [to_rfc3339(fact.at) if fact.at is not None else None for fact in facts] == [
        f"{day}T10:00:00Z" for day in days
    ]


@pytest.mark.parametrize(
    ("head", "form"),
    [
        (submitted().encode(), Form.CLASSIC),
        (b"half an event\n...\n" + submitted().encode(), Form.CLASSIC),
        (b"", None),
        (b"\0\0 \n", None),
        (b'<?xml version="1.0"?>\n<classads>', Form.XML_ADS),
        (b'<c><a n="EventTypeNumber"><i>0</i></a>', Form.XML),
        (b'{\n "EventTypeNumber": 0', Form.JSON),
        (b'[\n{\n "ClusterId": 7', Form.JSON_ADS),
        (b"ClusterId = 7\nProcId = 0\nOwner = \"me\"\n", Form.ADS),
        (b"# generated\nuniverse = vanilla\nexecutable = a.sh\nqueue 1\n", Form.SUBMIT),
        (b"Fri Nov 20 20:40:06 UTC 2026 7.0@s BEGIN EXECUTION a.sh\n", Form.OUTPUT),
        (b"a = 1\nsome output\nof any program\n", Form.OUTPUT),
    ],
)  # fmt: skip
def test_a_file_tells_by_its_beginning_what_it_is(head: bytes, form: Form | None) -> None:
    assert form_of(head) is form


def test_every_fact_of_a_log_says_where_it_stands() -> None:
    data = (CONDOR / "cluster.log").read_bytes()
    lines = data.decode().split("\n")
    for fact in facts_of(data):
        assert data[fact.offset :].startswith(lines[fact.line - 1].encode())


_PIECES = st.sampled_from(
    [
        submitted(), executing(), "...\n", "\n", "005 (", "(007.000.000) ", "2026-11-20 10:00:00 ",
        "{", "}\n",
        '{"ClusterId": 1}', "<c>", "</c>", '<a n="Cluster"><i>9</i></a>', 'A = "b', "99/99 99:99:99", "\0",
        "012 (1.2.3) 02/30 10:00:00 Job was held.\n", '"EventTypeNumber": 1e999',
    ]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=300), st.lists(_PIECES, max_size=12).map(lambda some: "".join(some).encode())
    )
)
def test_no_bytes_make_it_raise(data: bytes) -> None:
    for form in Form:
        for to_end in (False, True):
            framed = frames_of(form, data, to_end=to_end)
            assert 0 <= framed.taken <= len(data)
            if form is not Form.OUTPUT:
                EventReader("a").read(form, framed.frames, 0, 1, NEWEST)
    assert all(isinstance(fact, CondorFact) for fact in facts_of(data))


@pytest.mark.parametrize("line", [b"\n", b"\r\n", b",\n", b" [\n"])
@pytest.mark.parametrize("form", Form)
def test_a_million_empty_lines_are_each_looked_at_once(form: Form, line: bytes) -> None:
    event = b'{"EventTypeNumber": 5}'
    framed = frames_of(form, line * 250_000 + event, to_end=True)
    assert (
        framed.frames[0].data.endswith(event)
        if framed.frames
        else form in (Form.CLASSIC, Form.XML, Form.XML_ADS)
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 400), st.sampled_from(["cluster.log", "cluster.json.log", "cluster.xml.log"]))
def test_read_in_pieces_it_says_the_same(piece: int, name: str) -> None:
    data = (CONDOR / name).read_bytes()
    form = form_of(data)
    assert form is not None
    reader, begin, end, found = EventReader("a"), 0, 0, []
    while end < len(data):
        end += piece
        framed = frames_of(form, data[begin:end], to_end=False)
        found += reader.read(form, framed.frames, begin, 1, NEWEST).facts
        begin += framed.taken
    assert [(fact.job, fact.what, fact.at, fact.offset) for fact in found] == [
        (fact.job, fact.what, fact.at, fact.offset) for fact in facts_in(CONDOR / name)
    ]


def test_an_id_is_written_as_jobsub_does() -> None:
    assert {fact.job for fact in facts_of((submitted() + executing()).encode())} == {JOB}
