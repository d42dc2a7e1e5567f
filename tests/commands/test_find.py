"""`find`: candidates for anything pasted."""

import csv
import io

import pytest

from tests.commands.running import AT, Runner, jobtui, sources_of

JID = "DJouDZ9T-4F4EUZjI-heightWeightReport"


@pytest.mark.parametrize(
    ("thing", "kind", "id_"),
    [
        (JID, "job", JID),
        ("TZoe", "op", "TZoe"),
        ("DJouDZ9T", "user", "DJouDZ9T"),
        (f"  new status=error _ComputeJob({JID} u=DJouDZ9T running []) ", "job", JID),
    ],
)
def test_the_likeliest_comes_first_and_words_need_no_quotes(
    thing: str, kind: str, id_: str, run: Runner
) -> None:
    ran = run("find", *thing.split(), "--json", "--at", AT, *sources_of("local"))
    assert ran.code == 0
    first = ran.json["candidates"][0]
    assert (first["kind"], first["id"]) == (kind, id_)
    assert first["why"]
    scores = [candidate["score"] for candidate in ran.json["candidates"]]
    assert scores == sorted(scores, reverse=True)


def test_a_line_can_come_through_a_pipe() -> None:
    line = f"Nov 20 20:34:36 1 0 x.py:1:f ServerReq(api_runSimulation, {JID})\n".encode()
    ran = jobtui("find", "-", "--csv", *sources_of("local"), stdin=line + b"\xff\xfe\n")
    assert ran.code == 0
    assert next(csv.DictReader(io.StringIO(ran.out)))["id"] == JID
