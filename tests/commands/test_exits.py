"""What a command says in a line, and the code with which it ends."""

from pathlib import Path

import pytest

from tests.commands.running import Runner, sources_of
from tests.tracing import CAPTURES as TRACES

FAILED = "DJouDZ9T-4F4EUZjI-heightWeightReport"
JID = "DJouDZ9T-3mJbMh8p-activityAnimation"
NO_JOB = "AAAAAAAA-BBBBBBBB-model"
NO_TRACE = "f" * 32
SPANS = f"--trace-file {TRACES / 'job-fail.otlp.pb'}"


@pytest.mark.parametrize(
    ("capture", "words", "code", "said"),
    [
        ("docker", "agents host:nowhere --json", 0, '"agents": []'),
        ("local", "agents state:lots", 2, "did you mean lost?"),
        ("", "agents --json --log {tmp}/none.log", 5, '"agents": []'),
        ("local", f"compare {FAILED} {FAILED} {FAILED}", 2, "compare takes one job, or two"),
        ("local", f"compare {FAILED} {NO_JOB}", 4, "no job"),
        ("", "doctor --journal {tmp}/no", 5, "{tmp}/no"),
        ("local", f"explain {NO_JOB} --json", 4, '"verdict": null'),
        ("local", "find heightWeightReport", 4, "ambiguous"),
        ("local", "find no-such-thing-anywhere", 4, "nothing is known of"),
        ("local", "jobs status:runing", 2, "did you mean running?"),
        ("local", "jobs stats:failed", 2, "status"),
        ("local", "jobs dur>soon", 2, ">>>"),
        ("local", "jobs (", 2, "filter: "),
        ("local", "jobs --since teatime", 2, '--since: "teatime" is no time; expected a UTC time such as'),
        ("local", "jobs --until teatime", 2, '--until: "teatime" is no time; expected a UTC time such as'),
        ("local", "jobs --at teatime", 2, '--at: "teatime" is no time; expected a UTC time such as'),
        ("local", "jobs --since 5m --until 2h", 2, "nothing can be between them"),
        ("", "jobs --srdb {tmp}/gone", 5, "{tmp}/gone: no such directory; name the db directory of Sirepo"),
        ("", "jobs --json --srdb {tmp}/gone", 5, '"state": "down"'),
        ("local", f"logs {JID} --op zzzz", 4, "7Osx"),
        ("local", f"logs {JID} --agent zzzz", 4, "dj5k"),
        ("docker", "logs srj-p-AAAAAAAA --json", 4, '"lines": []'),
        ("", "login sirepo", 2, "unknown SYSTEM 'sirepo'"),
        ("", "mcp", 5, "no source is configured"),
        ("local", "nodes", 5, "no source here tells of nodes"),
        ("local", "script", 2, "needs ID"),
        ("local", "script 7", 5, "--archive"),
        ("local", "script 7 --user me", 2, "--grep"),
        ("local", "script 7 --grep x", 2, "not both"),
        ("local", "script --grep (", 2, "regular expression"),
        ("local", "show srunit_long_run", 4, "candidate: job"),
        ("local", "show zzzzzzzzzz", 4, "nothing is known of"),
        ("local", "tmeline", 4, 'did you mean "timeline"?'),
        ("local", f"trace {NO_TRACE}", 5, "--trace-file"),
        ("", f"trace --json {NO_TRACE} --trace-file {{tmp}}/none.json", 5, '"state": "down"'),
        *(
            ("", f"{SPANS} trace --json -- {thing}", 4, "no trace was found for")
            for thing in (NO_TRACE, "no trace at all", "1", "-x")
        ),
        ("local", f"wait {JID} --until never", 2, "cannot be waited for"),
        ("local", f"wait {JID} --until ,", 2, "cannot be waited for"),
        ("local", f"wait {JID} --timeout soon", 2, "is no length of time"),
        ("", "demo --incident agent-deth", 2, '"agent-death"'),
    ],
)
def test_it_is_said_in_a_line_and_by_the_code(
    capture: str, words: str, code: int, said: str, tmp_path: Path, run: Runner
) -> None:
    sources = sources_of(capture) if capture else ()
    ran = run(*sources, *words.format(tmp=tmp_path).split())
    assert ran.code == code, ran.err
    assert said.format(tmp=tmp_path) in ran.out + ran.err
    if code == 2:
        assert (ran.out, ran.err.count("\n")) == ("", 1)
