"""A real Elasticsearch, OpenSearch or Loki, where `JOBTUI_REAL_ELASTIC` or `JOBTUI_REAL_LOKI` names one.

Each is the value of the flag, such as `https://host:9200/filebeat-*?preset=journald`; its login stands in
`JOBTUI_ELASTIC_LOGS_BASIC` and the like. Nothing is written there: what it holds is read both ways, and the
answers are compared with each other.
"""

import os

import pytest

from jobtui.backends.journal.source import Journal
from jobtui.backends.registry import announce
from jobtui.config import load
from jobtui.model.clock import SECOND, Nanos, SystemClock
from jobtui.model.journal import At, Tail
from tests.commands.running import Runner

pytestmark = pytest.mark.real
VARIABLES = {"elastic_logs": "JOBTUI_REAL_ELASTIC", "loki": "JOBTUI_REAL_LOKI"}
ENVIRON = dict(os.environ)
"""As it was: tests have none of the variables of jobtui."""
named = pytest.mark.parametrize(
    "setting",
    [
        pytest.param(
            one, marks=pytest.mark.skipif(not os.environ.get(name), reason=f"{name} names no server")
        )
        for one, name in VARIABLES.items()
    ],
)
MOST = 700


@named
async def test_both_ways_and_by_time_it_gives_the_same(setting: str) -> None:
    (spec,) = load({setting: (ENVIRON[VARIABLES[setting]],)}, ENVIRON).sources
    source = announce(spec).make()
    assert isinstance(source, Journal)
    reader = source.make_reader()
    last = await reader.backward(Tail(), (), MOST)
    assert last.entries, "it holds nothing"
    assert [entry.at for entry in last.entries] == sorted(entry.at for entry in last.entries)
    again = await reader.forward(At(last.entries[0].at), (), 3 * MOST)
    found = [entry.cursor for entry in again.entries]
    assert [entry.cursor for entry in last.entries if entry.cursor not in set(found)] == []
    middle = last.entries[len(last.entries) // 2]
    assert all(one.at < middle.at for one in (await reader.backward(At(middle.at), (), 50)).entries)
    assert (await reader.values("_HOSTNAME"))["_HOSTNAME"]
    await reader.aclose()
    await source.aclose()


@named
async def test_it_is_followed_from_a_minute_ago_on_without_a_doubt(setting: str) -> None:
    (spec,) = load({setting: (ENVIRON[VARIABLES[setting]],)}, ENVIRON).sources
    source = announce(spec).make()
    assert isinstance(source, Journal)
    reader = source.make_reader()
    following = reader.follow(At(Nanos(SystemClock().now() - 60 * SECOND)), ())
    cursors: list[str] = []
    at_edge = False
    while not at_edge:
        piece = await following.take(MOST)
        cursors += [entry.cursor for entry in piece.entries]
        at_edge = piece.at_edge
        assert not piece.note
    assert len(cursors) == len(set(cursors))
    await following.aclose()
    await reader.aclose()
    await source.aclose()


@named
def test_the_doctor_can_read_it(setting: str, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    for end in ("BASIC", "BEARER", "HEADERS"):
        name = f"JOBTUI_{setting.upper()}_{end}"
        if name in ENVIRON:
            monkeypatch.setenv(name, ENVIRON[name])
    flag = f"--{setting.replace('_', '-')}"
    (check,) = run("doctor", "--json", flag, ENVIRON[VARIABLES[setting]]).json["checks"]
    assert check["state"] in ("ok", "partial"), check
