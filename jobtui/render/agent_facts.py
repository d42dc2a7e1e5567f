"""All that is known of one agent, in words. Texts are masked and safe to show."""

from collections.abc import Iterator
from typing import NamedTuple

from jobtui.analysis.agent_logs import AgentLog, LogPlace
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.ops import Agent
from jobtui.model.words import counted
from jobtui.render.agent_columns import AgentLook, state_style, state_words
from jobtui.render.text import Zone, age, date_time, show


class Fact(NamedTuple):
    """Something known: what it is, and the name of its style."""

    name: str
    text: str
    style: str = ""


def agent_facts(agent: Agent, log: AgentLog, look: AgentLook) -> Iterator[Fact]:
    """What a person asks about an agent, the most urgent first; what is not known is left out."""
    state = f"{state_words(agent.state)}{_for(agent.since, look)}"
    yield Fact("state", f"{state}: {show(agent.why)}" if agent.why else state, state_style(agent, look))
    for op in agent.ops:
        since = f", sent {_ago(op.sent_at, look)}" if op.sent_at is not None else ""
        yield Fact("holds", f"{show(op.name)} {show(op.op)}{f' of {show(op.jid)}' if op.jid else ''}{since}")
    yield Fact("agent", f"{show(agent.agent)}, {show(agent.kind)}, by {show(agent.driver)}")
    yield Fact("user", show(agent.uid))
    if agent.host:
        yield Fact("host", show(agent.host))
    if agent.container:
        yield Fact("container", show(" ".join(filter(None, (agent.container, agent.container_id)))))
    yield Fact("heard", _heard(agent, look))
    if agent.restarts:
        yield Fact("restarts", str(agent.restarts))
    yield from log_facts(log)


def log_facts(log: AgentLog) -> Iterator[Fact]:
    """Where its log is, and what shows it."""
    if log.place is not LogPlace.REMOTE and log.described:
        yield Fact("log", show(log.described))
    if log.place is LogPlace.CLUSTER and log.path and log.path != log.described:
        yield Fact("on the cluster", show(log.path))
    if log.note:
        yield Fact("note", show(log.note), "warning")
    if log.command:
        yield Fact("to read it", show(log.command), "accent")


def _heard(agent: Agent, look: AgentLook) -> str:
    """How often and when it spoke."""
    parts = [counted(agent.messages, "message")]
    for words, at in (
        ("last", agent.last_message_at),
        ("connected", agent.connected_at),
        ("started", agent.started_at),
    ):
        if at is not None:
            parts.append(f"{words} {_ago(at, look)}")
    return ", ".join(parts)


def _for(at: Nanos | None, look: AgentLook) -> str:
    if at is None:
        return ""
    if look.relative:
        return f" for {age(max(0.0, seconds_between(at, look.now)))}"
    return f" since {date_time(at)}{Zone.mark()}"


def _ago(at: Nanos, look: AgentLook) -> str:
    if look.relative:
        return f"{age(max(0.0, seconds_between(at, look.now)))} ago"
    return f"{date_time(at)}{Zone.mark()}"
