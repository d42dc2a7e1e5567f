"""A script as lines: in colour as far as that is affordable, and told where it ends."""

import pytest

from jobtui.model.scripts import ArchivedScript
from jobtui.render import job_files as rendering
from jobtui.render.job_files import colour_facts, script_lines


def test_only_the_beginning_of_a_large_script_is_in_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "MOST_COLOURED", 100)
    script = ArchivedScript(number="1", source="here", script=b'echo "$x"\n' * 50)
    lines = list(script_lines(script))
    assert len(lines) == 50
    assert [len(line) > 1 for line in lines] == [True] * 11 + [False] * 39
    assert {"".join(span.text for span in line) for line in lines} == {'echo "$x"'}
    ((_, words),) = colour_facts(script)
    assert "100" in words
    assert not list(colour_facts(ArchivedScript(number="1", source="here", script=b"true\n")))
