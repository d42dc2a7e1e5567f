"""HTCondor's event logs, attributes and environments, and the output of jobsub's wrapper, as facts."""

import json
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.formats.condor_events import EventReader, Form, form_of
from jobtui.formats.job_output import read_date
from jobtui.model.clock import SECOND, to_rfc3339
from jobtui.model.condor import EVENTS, LOG_GAP
from jobtui.model.logs import Origin
from tests.builders import some
from tests.condor import CONDOR, NEWEST, event, executing, facts_in, facts_of, submitted
from tests.offenders import each
from tests.rows import ROWS

TRUTH: dict[str, list[dict[str, Any]]] = json.loads((CONDOR / "truth.json").read_text())
"""What JobEventLog of htcondor 25.14 reads, in the zone in which the logs were written."""
ZONE_S = 5 * 3600
KEPT = (
    "Reason", "SubmitHost", "ExecuteHost", "SlotName", "StartdName", "HoldReasonCode", "HoldReasonSubCode",
    "ReturnValue", "TerminatedBySignal", "JobsubJobId",
)  # fmt: skip
SAME = {name: name for name in KEPT} | dict.fromkeys(("HoldReason", "Message", "DisconnectReason"), "Reason")


@each(*product(TRUTH, ["log", "json.log", "xml.log"]))
def test_events_are_what_htcondor_itself_reads(name: str, form: str) -> None:
    facts = facts_in(CONDOR / f"{name}.{form}")
    assert len(facts) == len(TRUTH[name])
    for fact, true in zip(facts, TRUTH[name], strict=True):
        assert (fact.origin, fact.what) == (Origin.EVENT, EVENTS[true["type"]].name)
        assert fact.job == f"{true['cluster']}.{true['proc']}@jobsub02.fnal.gov"
        assert fact.is_local
        assert some(fact.at) // SECOND + ZONE_S == true["timestamp"]
        for theirs, ours in SAME.items():
            if theirs in true["attributes"]:
                assert fact.values[ours] == str(true["attributes"][theirs]), (fact.what, theirs)


@each(*ROWS["ads in each form"])
def test_many_ads_come_in_each_form(text: str) -> None:
    facts = facts_of(text.encode())
    assert [fact.job for fact in facts] == ["7.0@s.example.org", "7.1@s.example.org"]
    assert {fact.origin for fact in facts} == {Origin.AD}


def test_an_event_waits_until_it_is_whole() -> None:
    data = (submitted() + executing()[:-6]).encode()
    read = EventReader("a").read(Form.CLASSIC, data, 0, 1, NEWEST)
    assert (len(read.facts), read.taken) == (1, len(submitted()))


@each(
    (executing()[:30].encode() + b"\n", ["its beginning or end was never written"]),
    (b"\0" * 500, None),
    (b"nothing that makes sense\n...\n", None),
)
def test_an_event_that_is_not_understood_costs_only_itself(junk: bytes, skips: list[str] | None) -> None:
    data = submitted().encode() + junk + executing().encode()
    assert [fact.what for fact in facts_of(data) if fact.what != LOG_GAP] == ["submit", "execute"]
    found = EventReader("a").read(Form.CLASSIC, data, 0, 1, NEWEST).skips
    assert skips is None or [skip.why for skip in found] == skips


GLOBAL = (
    event(8, "2026-11-20 09:59:59Z", "Global JobLog: ctime=1795168799 sequence=12", job="-01.-01.-01"),
    '{"MyType": "GenericEvent", "EventTypeNumber": 8, "EventTime": "2026-11-20T09:59:59Z", '
    '"Cluster": -1, "Proc": -1, "Subproc": -1, "Info": "Global JobLog: ctime=1795168799"}\n',
    '<c><a n="MyType"><s>GenericEvent</s></a><a n="EventTypeNumber"><i>8</i></a>'
    '<a n="Cluster"><i>-1</i></a><a n="Proc"><i>-1</i></a><a n="Info"><s>Global JobLog</s></a></c>\n',
    event(8, "2026-11-20 09:59:59Z", "Global JobLog: ctime=1795168799 sequence=12", job="000.000.000"),
)


@each(*GLOBAL)
def test_the_head_of_a_log_of_a_whole_schedd_is_of_no_job(head: str) -> None:
    assert [(fact.what, fact.job) for fact in facts_of(head.encode())] == [("generic", "")]


def test_an_event_in_xml_keeps_the_ads_inside_it() -> None:
    inner = '<a n="ToE"><c>\n<a n="In"><c><a n="x"><i>1</i></a></c></a>\n</c></a></c>\n'
    told = facts_of((GLOBAL[2].replace("</c>\n", inner) + GLOBAL[2]).encode())
    assert [(fact.what, fact.values.get("Info")) for fact in told] == [("generic", "Global JobLog")] * 2


@each('<c>\n<a n="Cluster"><i>7</i></a>\n', "</c>\n")
def test_a_torn_event_in_xml_costs_only_itself(torn: str) -> None:
    told = facts_of((GLOBAL[2] + torn + GLOBAL[2]).encode())
    assert [fact.what for fact in told] == ["generic", LOG_GAP, "generic"]


@each(*ROWS["logs without years"])
def test_a_log_without_years_never_goes_back(heads: list[str], newest: str, days: list[str]) -> None:
    data = "".join(event(8, f"{head} 10:00:00", "a note") for head in heads).encode()
    facts = facts_of(data, newest=some(read_date(f"{newest} 12:00:00 UTC")).at)
    assert [to_rfc3339(fact.at) if fact.at is not None else None for fact in facts] == [
        f"{day}T10:00:00Z" for day in days
    ]


@each(*ROWS["machine ads in each form"])
def test_machines_of_a_pool_are_one_fact(text: str) -> None:
    (fact,) = facts_of(text.encode())
    assert (fact.what, fact.text, fact.at) == ("slots", "3 slots", 1_795_172_000 * SECOND)
    told = {"memory=4000": "0-0,2-2", "memory=": "1-1", 'arch="X86_64"': "0-1", 'arch="A \\ B"': "2-2"}
    assert told.items() <= fact.values.items()
    assert facts_of(text.rstrip()[:-1].encode()) == []


@each(*product(Form, [b"\n", b"\r\n", b",\n", b" [\n"]))
def test_a_million_empty_lines_are_each_looked_at_once(form: Form, line: bytes) -> None:
    event = b'{"EventTypeNumber": 5}'
    read = EventReader("a").read(form, line * 250_000 + event, 0, 1, NEWEST, to_end=True)
    assert read.taken > len(line) * 250_000 or form in (Form.CLASSIC, Form.XML, Form.XML_ADS)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 400), st.sampled_from(["cluster.log", "cluster.json.log", "cluster.xml.log"]))
def test_a_file_read_in_pieces_gives_the_same(piece: int, name: str) -> None:
    data = (CONDOR / name).read_bytes()
    form = some(form_of(data))
    reader, begin, end, found = EventReader("a"), 0, 0, []
    while end < len(data):
        end += piece
        read = reader.read(form, data[begin:end], begin, 1, NEWEST)
        found += read.facts
        begin += read.taken
    assert [(fact.job, fact.what, fact.at, fact.offset) for fact in found] == [
        (fact.job, fact.what, fact.at, fact.offset) for fact in facts_in(CONDOR / name)
    ]


TRACE = "212c891717bfbac28a34dec05b616f14"


def test_a_submission_hands_the_trace_it_set_to_its_jobs() -> None:
    lines = (
        "Setting traceparent: 00-212c891717bfbac28a34dec05b616f14-ff9c35a8f8c0b21f-01\n"
        "3 job(s) submitted to cluster 7.\nUse job id 7.0@s.example.org to retrieve output\n"
    )
    facts = facts_of(lines.encode())
    assert [(fact.job, fact.values.get("TraceParent")) for fact in facts[1:]] == [
        ("7.0", TRACE), ("7.1", TRACE), ("7.2", TRACE), ("7.0@s.example.org", TRACE),
    ]  # fmt: skip


@each(*ROWS["lines of an output"])
def test_lines_of_jobsub_are_read_but_no_lookalikes(line: str, what: str, values: dict[str, str]) -> None:
    found = facts_of(f"the output of a program\n{line}\n".encode())
    assert [(fact.what, fact.line) for fact in found] == ([(what, 2)] if what else [])
    assert all(values.items() <= fact.values.items() for fact in found)
