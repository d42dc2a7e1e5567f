import random
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.near import near, nearest

MODELS = ("heightWeightReport", "animation", "multiElectronAnimation")


def some_ids(count: int) -> list[str]:
    choose = random.Random(7)

    def part() -> str:
        return "".join(choose.choices(string.ascii_letters + string.digits, k=8))

    return [f"{part()}-{part()}-{choose.choice(MODELS)}" for _ in range(count)]


IDS = some_ids(20_000)
MEANT = IDS[1234]


@pytest.mark.parametrize(
    "typed",
    [
        MEANT,
        MEANT.upper(),
        f"  {MEANT}\n",
        MEANT[:2] + "x" + MEANT[3:],
        MEANT[:2] + MEANT[3:],
        MEANT[:5] + "yy" + MEANT[5:],
        MEANT[1:3] + MEANT[0] + MEANT[3:],
        MEANT[:17],
        MEANT[:12],
        MEANT[9:17],
        MEANT[2:14],
        MEANT[:8],
        MEANT[:3] + "_" + MEANT[4:8],
        MEANT.replace("-", "_", 1),
        MEANT.rsplit("-", 1)[0] + "-otherModel",
    ],
)
def test_the_id_that_was_meant_is_near(typed: str) -> None:
    assert MEANT in near(typed, IDS)


@pytest.mark.parametrize("typed", ["", "-", "\x00", "zzzzzzzzzzzzzzzz", "q" * 5000, "???????"])
def test_nothing_is_near_to_nonsense(typed: str) -> None:
    assert len(near(typed, ["EPRSqtUW-IVh7w74d-animation"])) <= 1
    assert near("zzzzzzzzzzzzzzzz", IDS) == ()


def test_no_more_than_asked() -> None:
    assert len(near("animation", IDS, n=5)) == 5


@settings(deadline=None, max_examples=100)
@given(st.text(), st.lists(st.text(), max_size=20))
def test_near_never_raises(typed: str, ids: list[str]) -> None:
    assert set(near(typed, ids)) <= set(ids)


@pytest.mark.parametrize(
    ("word", "found"), [("faild", "failed"), ("FAILED", "failed"), ("xyz", None), ("", None)]
)
def test_nearest(word: str, found: str | None) -> None:
    assert nearest(word, ["failed", "running"]) == found
