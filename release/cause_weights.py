"""Learns which line of an output says why, and makes `cause_weights.toml` again.

    python -m release.cause_weights

The model is a conditional logit: one is chosen of the lines of an output and none of them, and what is learnt
is the weight of each feature that `jobtui.analysis.cause` gives a line. It learns from the marked outputs of
the tests, but for a file that is held out: it can be judged by that.
A line is given from the lowest chance at which few lines of programs not learnt from are wrong.
"""

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from math import ceil, exp, floor, sqrt
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from jobtui.analysis.cause import Output, read_lines
from jobtui.formats.causes import CauseWeights

ROOT = Path(__file__).parents[1]
OUTPUTS = ROOT / "tests" / "fixtures" / "program-output"
WEIGHTS = ROOT / "jobtui" / "formats" / "cause_weights.toml"
FEWEST_PROGRAMS, FEWEST_WITH_WORD = 2, 4
"""Programs that have a feature, or a word, that is learnt."""
WORDY = ("HEAD ", "LABEL ", "LAST ", "PAIR ", "BEGIN ", "END ")
NOT_LEARNT = CauseWeights(0.0, {})
HELD_OUT = "held_out"
"""The file from which nothing is learnt."""
PASTED = ("issues", "pasted", "held_out_threads")
"""The files of what users pasted."""
ROUNDS, AVERAGED, RATE, SHRINK = 24, 18, 0.3, 4.0
SHARE_ENDED_WELL, SHARE_PASTED = 0.5, 2.0
"""How much an output of a program that ended well counts, as that it did is mostly known, and a paste."""
MOST_WRONG, PARTS = 0.04, 10
"""The share of outputs for which a wrong line may be given; parts of the programs, each left out once."""


class Sample(NamedTuple):
    """An output, and the numbers of the lines that may be named; none where nothing says why."""

    name: str
    text: str
    right: frozenset[int]
    family: str = ""
    is_pasted: bool = False

    @property
    def program(self) -> str:
        """The word of its name that is no mark of a batch (`y_`) or of how it ends."""
        return re.sub(r"^(?:(?:[a-z]|ok|fail|quiet|own|silent)_)+(?=[a-z])|(?<=[a-z])[\d_].*", "", self.name)

    @property
    def ended_well(self) -> bool:
        return not self.right and re.search(r"ok(?:_|\d|$)|(?:^|_)ok", self.name) is not None


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
        text = "\n".join(line.removeprefix("»") for line in lines)
        yield Sample(name, text, right, family, path.stem in PASTED)


class Choice(NamedTuple):
    """The features of each line of an output that may be chosen, then those of none, and which are right."""

    program: str
    features: Sequence[Sequence[str]]
    right: Sequence[bool]
    share: float


def choices(of: Sequence[Sample]) -> Iterator[Choice]:
    """Those that can be learnt from: a right line is among the lines that may be chosen."""
    for sample in of:
        output = Output(read_lines(sample.text), NOT_LEARNT)
        features = [tuple(output.features(at)) for at in output.judged]
        right = [_is_right(output, at, sample) for at in output.judged]
        if any(right) or not sample.right:
            none = tuple(output.features_of_none())
            share = SHARE_ENDED_WELL if sample.ended_well else SHARE_PASTED if sample.is_pasted else 1.0
            yield Choice(sample.program, [*features, none], [*right, not sample.right], share)


def _is_right(output: Output, at: int, sample: Sample) -> bool:
    return output.lines[output.named_by(at)].number in sample.right


def learn(found: Sequence[Choice]) -> dict[str, float]:
    """Weights by AdaGrad, the mean of the last rounds; a rare one is shrunk as much in all as others."""
    programs: defaultdict[str, set[str]] = defaultdict(set)
    often: defaultdict[str, float] = defaultdict(float)
    for choice in found:
        for name in {name for features in choice.features for name in features}:
            often[name] += choice.share
            programs[name].add(choice.program)
    known = {
        name
        for name, of in programs.items()
        if len(of) >= (FEWEST_WITH_WORD if name.islower() or name.startswith(WORDY) else FEWEST_PROGRAMS)
    }
    rows = [
        ([[name for name in features if name in known] for features in choice.features], choice)
        for choice in found
    ]
    rng = random.Random(1)
    weights, squares, sums = dict.fromkeys(known, 0.0), dict.fromkeys(known, 1e-2), dict.fromkeys(known, 0.0)
    for left in reversed(range(ROUNDS)):
        rng.shuffle(rows)
        for lines, choice in rows:
            slopes: defaultdict[str, float] = defaultdict(float)
            for line, slope in zip(lines, _slopes(lines, choice.right, weights), strict=True):
                for name in line:
                    slopes[name] += slope * choice.share
            for name, slope in slopes.items():
                slope += SHRINK * weights[name] / often[name]
                squares[name] += slope * slope
                weights[name] -= RATE * slope / sqrt(squares[name])
        if left < AVERAGED:
            sums = {name: total + weights[name] / AVERAGED for name, total in sums.items()}
    return {name: round(weight, 1) for name, weight in sums.items()}


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


class Outcome(NamedTuple):
    """The best line of an output whose program was not learnt from, and whether it is right."""

    chance: float
    is_right: bool
    is_told: bool
    """Whether any line of the output is right."""


def left_out(of: Sequence[Sample], found: Sequence[Choice]) -> Iterator[Outcome]:
    """What is named where each part of the programs is judged by what the others taught."""
    for part in range(PARTS):
        taught = [choice for choice in found if _part(choice.program) != part]
        weights = CauseWeights(0.0, learn(taught))
        for sample in of:
            if _part(sample.program) == part and not sample.ended_well:
                output = Output(read_lines(sample.text), weights)
                best = output.best
                is_right = best is not None and _is_right(output, best.at, sample)
                yield Outcome(best.chance if best is not None else 0.0, is_right, bool(sample.right))


def least_chance(outcomes: Sequence[Outcome]) -> float:
    """The lowest chance from which few enough lines are wrong."""
    wrong = sorted((one.chance for one in outcomes if not one.is_right), reverse=True)
    return ceil(100 * wrong[floor(MOST_WRONG * len(outcomes))]) / 100


def curve(outcomes: Sequence[Outcome]) -> Iterator[tuple[float, int, int]]:
    """Of each tenth from a half on: the mean chance of its lines, how many are right, how many there are."""
    for tenth in range(5, 10):
        within = [one for one in outcomes if tenth <= one.chance * 10 < tenth + 1 + (tenth == 9)]
        chance = sum(one.chance for one in within) / max(1, len(within))
        yield round(chance, 3), sum(one.is_right for one in within), len(within)


def _part(program: str) -> int:
    return crc32(program.encode()) % PARTS


def fingerprint(found: Sequence[Choice]) -> str:
    """Of all that the weights come from: features of marked lines, and how they are learnt from."""
    return sha256(f"{Path(__file__).read_text()}{found}".encode()).hexdigest()[:16]


def write(of: Sequence[Sample]) -> None:
    found = list(choices(of))
    by_weight: defaultdict[float, list[str]] = defaultdict(list)
    for name, weight in learn(found).items():
        by_weight[weight].append(name)
    by_weight.pop(0.0, None)
    head = "# Made by `python -m release.cause_weights`: what each feature of a line tells for it."
    outcomes = [*left_out(of, found)]
    learnt_from, least = f'learnt_from = "{fingerprint(found)}"', f"least = {least_chance(outcomes)}"
    told = f"left_out = {[list(tenth) for tenth in curve(outcomes)]}"
    table = (f'"{weight:+}" = "{", ".join(sorted(by_weight[weight]))}"' for weight in sorted(by_weight))
    WEIGHTS.write_text("\n".join((head, learnt_from, least, told, "", "[features]", *table, "")))


def learnt() -> list[Sample]:
    """The samples that the weights are learnt from."""
    return [one for file, some in samples().items() if file != HELD_OUT for one in some]


if __name__ == "__main__":
    write(learnt())
