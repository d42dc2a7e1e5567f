"""Commands to type next: a shell reads them as they are meant, whatever outside names say."""

import shlex
from collections.abc import Iterator

import msgspec
import pytest

from jobtui.analysis.explain.next_steps import on_sources
from jobtui.analysis.explain.verdict import explain
from jobtui.demo.site import DriverName
from jobtui.model.ids import ContainerName
from jobtui.model.verdicts import NextStep
from tests.analysis.explain.cases import played

BAD = "-oProxyCommand=$(touch x); `id` 'q"


def steps(incident: str, host: str | None = None) -> Iterator[NextStep]:
    evidence = played(incident, 5, DriverName.DOCKER, 130).evidence()
    if host is not None:
        agents = {
            prefix: msgspec.structs.replace(agent, host=host, container=ContainerName(host))
            for prefix, agent in evidence.agents.items()
        }
        evidence = msgspec.structs.replace(evidence, agents=agents)
    yield from on_sources(explain(evidence), ["--srdb", "/a b/c"]).next


@pytest.mark.parametrize("incident", ["agent-death", "agent-never-starts", "killed-signal-9"])
def test_outside_names_stay_one_word_and_no_option(incident: str) -> None:
    assert any(step.command.startswith("ssh ") for step in steps(incident, "v1"))
    found = [step.command for step in steps(incident, BAD)]
    assert found
    assert not any("touch" in command for command in found), "it is no name of a host"


def test_the_kernel_is_asked_about_the_time_of_the_end() -> None:
    (command,) = (step.command for step in steps("agent-death") if "oom-kill" in step.command)
    words = shlex.split(shlex.split(command)[-1])
    begin, end = words[words.index("--since") + 1], words[words.index("--until") + 1]
    assert begin < end
    assert begin.endswith(" UTC")


def test_our_own_commands_read_the_same() -> None:
    own = [shlex.split(step.command) for step in steps("agent-death") if step.command.startswith("jobtui")]
    assert own
    assert all(words[1:3] == ["--srdb", "/a b/c"] for words in own)
