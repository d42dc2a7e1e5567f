import pytest

from jobtui.model.verdicts import Fact
from jobtui.render.verdicts import evidence_head


@pytest.mark.parametrize(
    ("source", "most", "place"),
    [
        ("/var/log/sirepo/supervisor.log", None, "/var/log/sirepo/supervisor.log:7"),
        ("/var/log/sirepo/supervisor.log", 45, "…/sirepo/supervisor.log:7"),
        ("/var/log/sirepo/supervisor.log", 0, "…/supervisor.log:7"),
        ("http://127.0.0.1:8000", 0, "…/127.0.0.1:8000:7"),
        ("supervisor.log", 0, "supervisor.log:7"),
    ],
)
def test_of_a_long_place_the_end_is_kept(source: str, most: int | None, place: str) -> None:
    head = evidence_head(Fact(what="created", text="", source=source, line=7), most)
    assert head.split()[1:] == ["created", place]
