"""Learns which line of an output says why, and makes `cause_weights.toml` again.

    python -m release.cause_weights [FILE ...]

The model is a conditional logit: one is chosen of the lines of an output and none of them, and what is learnt
is the weight of each feature that `jobtui.analysis.cause` gives a line. It learns from the marked outputs of
the tests. Files that are named are left out, and those that are held out for good: it can be judged by them.
"""

import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import exp, sqrt
from pathlib import Path
from typing import NamedTuple

from jobtui.analysis.cause import Output, read_lines

ROOT = Path(__file__).parents[1]
OUTPUTS = ROOT / "tests" / "fixtures" / "program-output"
WEIGHTS = ROOT / "jobtui" / "formats" / "cause_weights.toml"
FEWEST_PROGRAMS, FEWEST_WITH_WORD = 2, 4
"""Programs that have a feature, or a word, that is learnt."""
HELD_OUT = ("held_out", "held_out_threads")
"""Files from which nothing is learnt."""
SIZES = (3_000, 900)
"""Features that are kept, the heaviest of those learnt before."""
ROUNDS, RATE, SHRINK = 30, 0.3, 1.5
LEAST, LEAST_OF_UNKNOWN = 0.42, 0.45
"""The chance from which a line is told, and where it is not known that the program failed."""


class Sample(NamedTuple):
    """An output, and the numbers of the lines that may be named; none where nothing says why."""

    name: str
    text: str
    right: frozenset[int]
    family: str = ""


def samples() -> dict[str, tuple[Sample, ...]]:
    """The marked outputs of each file, and those that were captured."""
    found = {path.stem: tuple(_marked_in(path)) for path in sorted(OUTPUTS.glob("*.txt"))}
    return found | {"captured": tuple(_captured())}


def _captured() -> Iterator[Sample]:
    for name, truth in json.loads((OUTPUTS / "truth.json").read_text()).items():
        text = (OUTPUTS / f"{name}.log").read_text("utf-8", "replace")
        lines = () if truth["abstain"] else (*truth["cause_lines"], *truth.get("acceptable_lines", ()))
        yield Sample(name, text, frozenset(lines))


def _marked_in(path: Path) -> Iterator[Sample]:
    parts = re.split(r"(?m)^==== (\w+) \| (\S+)\n", path.read_text())
    for name, family, marked in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        lines = marked.replace("␛", "\x1b").replace("␍", "\r").split("\n")
        right = frozenset(number for number, line in enumerate(lines, 1) if line.startswith("»"))
        assert bool(right) == (family != "-"), name
        yield Sample(name, "\n".join(line.removeprefix("»") for line in lines), right, family)


class Choice(NamedTuple):
    """The features of each line of an output that may be chosen, then those of none, and which are right."""

    program: str
    features: Sequence[Sequence[str]]
    right: Sequence[bool]


def choices(of: Sequence[Sample]) -> Iterator[Choice]:
    """Those that can be learnt from: a right line is among the lines that may be chosen."""
    for sample in of:
        output = Output(read_lines(sample.text), None)
        features = [tuple(output.features(at)) for at in output.judged]
        right = [output.lines[output.named_by(at)].number in sample.right for at in output.judged]
        if any(right) or not sample.right:
            program = re.sub(r"[\d_].*", "", sample.name)
            none = tuple(output.features_of_none())
            yield Choice(program, [*features, none], [*right, not sample.right])


def learn(found: Sequence[Choice]) -> dict[str, float]:
    programs: defaultdict[str, set[str]] = defaultdict(set)
    for choice in found:
        for name in (name for features in choice.features for name in features):
            programs[name].add(choice.program)
    known = {
        name
        for name, of in programs.items()
        if len(of) >= (FEWEST_WITH_WORD if name.islower() or name.startswith("LAST ") else FEWEST_PROGRAMS)
    }
    weights: dict[str, float] = {}
    for size in SIZES:
        known = {*sorted(known, key=lambda name: (-abs(weights.get(name, 0.0)), name))[:size]}
        weights = fitted(found, known)
    return weights


def fitted(found: Sequence[Choice], known: set[str]) -> dict[str, float]:
    """Weights of the known features, by AdaGrad; one that is rare is shrunk as much in all as others."""
    rng = random.Random(1)
    rows = [
        ([[name for name in features if name in known] for features in choice.features], choice.right)
        for choice in found
    ]
    often = Counter(name for lines, _ in rows for name in {name for names in lines for name in names})
    weights, squares = dict.fromkeys(known, 0.0), dict.fromkeys(known, 1e-2)
    for _ in range(ROUNDS):
        rng.shuffle(rows)
        for lines, right in rows:
            slopes: defaultdict[str, float] = defaultdict(float)
            for names, slope in zip(lines, _slopes(lines, right, weights), strict=True):
                for name in names:
                    slopes[name] += slope
            for name, slope in slopes.items():
                slope += SHRINK * weights[name] / often[name]
                squares[name] += slope * slope
                weights[name] -= RATE * slope / sqrt(squares[name])
    return weights


def _slopes(
    lines: Sequence[Sequence[str]], right: Sequence[bool], weights: Mapping[str, float]
) -> Iterator[float]:
    """How much the loss grows with the weight of each line."""
    sums = [sum(weights[name] for name in names) for names in lines]
    top = max(sums)
    shares = [exp(weight - top) for weight in sums]
    total = sum(shares)
    good = sum(share for share, is_right in zip(shares, right, strict=True) if is_right)
    for share, is_right in zip(shares, right, strict=True):
        yield share / total - (share / max(good, 1e-30) if is_right else 0.0)


def write(weights: Mapping[str, float]) -> None:
    by_weight: defaultdict[float, list[str]] = defaultdict(list)
    for name, weight in weights.items():
        by_weight[round(weight, 1)].append(name)
    by_weight.pop(0.0, None)
    head = "# Made by `python -m release.cause_weights`: what each feature of a line tells for it."
    table = (f'"{weight:+}" = "{", ".join(sorted(by_weight[weight]))}"' for weight in sorted(by_weight))
    WEIGHTS.write_text(
        "\n".join(
            (head, f"least = {LEAST}", f"least_of_unknown = {LEAST_OF_UNKNOWN}", "", "[features]", *table, "")
        )
    )


if __name__ == "__main__":
    left_out = {*HELD_OUT, *sys.argv[1:]}
    write(learn([one for file, some in samples().items() if file not in left_out for one in choices(some)]))
