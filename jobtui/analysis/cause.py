"""Why a program failed, by its own words: finds the line of its output that says so.

Lines are judged by `formats/causes.toml`: some say why, some only how it ended, some that another one failed;
words of trouble count where no shape is known. Of several the best wins, of equals the first, except where
the program went on after it. Where nothing says why there is no cause: a guess is worth less than none.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, takewhile
from typing import NamedTuple

from jobtui.formats.causes import CauseFormat, CauseShape, load_causes
from jobtui.model.verdicts import Cause

LONGEST = 600
"""Characters of a line that are looked at, half of them from its end."""
LEAST = 50.0
"""What a line must weigh to be the cause, and to be told where nothing else says more."""
EARLY = 14
"""Characters before which words of an end are all that a line tells."""
MOST_STATED, MOST_UNSTATED, FATAL = 74.0, 45.0, 70.0
"""What words of an unknown program weigh at most, where it says error, and from where more is allowed."""
EXCEPTION, SURE, RESULT = 94.0, 60.0, 46.0
"""What an uncaught exception weighs, what outweighs words of a good end, and one that others bring about."""
ALIKE = 10.0
"""Lines that weigh so little less than the best one are as good."""
MOST_JUDGED, JUDGED_CHARACTERS, MOST_COMPARED, NEAR = 1_000, 100_000, 40, 400
"""Lines judged, and their characters, candidates compared, lines around one that tell whether it went on."""
MOST_ALTERNATIVES = 3
MINOR = 55.0
"""What weighs less is a cause only near the end: most programs go on after a file they do not find."""
FOLLOWS = 70.0
"""What a missing file weighs at most: what the program itself said before may be why it is missing."""
MOST_TRIED = 6
"""Lines alike that retries write; more of them are what the program writes all the time."""
LAST_LINES = 3
"""Lines that a failed program may still write after the one that says why: what it saves, times, totals."""


class OutputLine(NamedTuple):
    """Part of a line that was seen at one time. `tag` is the rank or process that wrote it."""

    number: int
    tag: str
    text: str


class Suspect(NamedTuple):
    """A line that may be the cause, by its place among all lines."""

    at: int
    weight: float
    family: str
    why: str


ABOUT = frozenset(
    {"memory", "disk", "network", "library", "licence", "numerics", "file", "data", "time", "signal"}
)
"""What an exception may be about."""
BAD_LEVELS = dict.fromkeys(("E", "ERR", "ERROR"), 45.0) | dict.fromkeys(
    ("F", "FATAL", "CRIT", "CRITICAL", "SEVERE"), 52.0
)
QUIET_LEVELS = frozenset({"INFO", "DEBUG", "TRACE", "NOTICE", "WARN", "WARNING", "I", "W"})


def find_cause(text: str, *, first_line: int = 1, failed: bool | None = None) -> Cause | None:
    """The cause in what a program wrote; `failed` is whether it is known to have failed."""
    return None if failed is False else Output(read_lines(text, first_line), failed).cause


def read_lines(text: str, first_line: int = 1) -> Iterator[OutputLine]:
    """Lines without colour, time and rank; what a carriage return wrote over is a part of its own."""
    for number, raw in enumerate(text.split("\n"), first_line):
        if "\x1b" in raw or "\0" in raw or "\b" in raw:
            raw = _part("escapes").sub("", raw)
        parts = [part for part in raw.split("\r") if part.strip()] if "\r" in raw else [raw]
        for part in parts or [""]:
            if len(part) > LONGEST:
                part = f"{part[: LONGEST // 2]} {part[-LONGEST // 2 :]}"
            yield OutputLine(number, *_without_prefix(part))


def _without_prefix(text: str) -> tuple[str, str]:
    tag = ""
    for _ in range(4):
        if text[:1].isspace() or not text:
            break
        if found := _part("time").match(text):
            text = text[found.end() :]
        elif found := _part("tag").match(text):
            tag, text = found[0].strip(), text[found.end() :]
        else:
            break
    return tag, text


class Output:
    """What a program wrote, judged line by line."""

    def __init__(self, lines: Iterable[OutputLine], failed: bool | None) -> None:
        self._lines = tuple(lines)
        self._failed = failed
        self._format = load_causes()
        self._templates = [_part("number").sub("#", line.text) for line in self._lines]
        self._counts = Counter(self._templates)
        self._known: dict[tuple[str, bool, str], CauseShape | None] = {}
        self._tracebacks = Tracebacks(self._lines, self._format)

    @cached_property
    def cause(self) -> Cause | None:
        shapes = list(self._shapes())
        known = [*self._exceptions(), *(c for c in shapes if c.weight >= MINOR), *self._hdf5()]
        found = self._best(known)
        if found is None or found[0].weight < FOLLOWS:
            found = self._best([*known, *(c for c in self._stated() if c.weight >= LEAST)])
        if all(c.weight < FOLLOWS for c in known) and (symptom := self._best(list(self._symptoms()))):
            above = 0 if known else 12 if symptom[0].family == "mpi" else 3
            if found is None or not found[0].at - above <= symptom[0].at <= found[0].at + 12:
                found = symptom
        found = found or self._best(shapes)
        return None if found is None or self._ended_well(found[0]) else self._cause_of(*found)

    def _cause_of(self, best: Suspect, others: Sequence[Suspect]) -> Cause:
        at = self._deepest(best.at)
        line = self._lines[at]
        text = _part("in_group").sub("", line.text).strip() if best.weight == EXCEPTION else line.text.strip()
        if (below := self._below(at, best)) is not None and self._says_more(below, line.tag):
            line, text = self._lines[below], self._lines[below].text.strip()
        confidence = min(0.95, best.weight / 100)
        different = [c for c in others if self._templates[c.at] != self._templates[best.at]]
        if different and best.weight - different[0].weight < ALIKE:
            confidence -= 0.05
        why = f"{best.why}; written by {line.tag.rstrip(':')} first" if line.tag and others else best.why
        next_best = (self._lines[c.at] for c in different[:MOST_ALTERNATIVES])
        alternatives = tuple((one.number, one.text.strip()) for one in next_best)
        return Cause(text, line.number, best.family, round(confidence, 2), why, alternatives)

    def _below(self, at: int, best: Suspect | CauseShape) -> int | None:
        """The line that says what a headline announces; of a long message the last one that says why."""
        text, where = self._lines[at].text, _part("where")
        if best.weight == EXCEPTION and text.endswith(":"):
            below = list(takewhile(lambda at: self._lines[at].text[0].isspace(), self._after(at, NEAR)))
            first = self._format.first
            return next((at for at in reversed(below) if first("cause", self._lines[at].text.strip())), None)
        is_whole = best.weight == EXCEPTION or best.family in ("julia", "signal")
        if is_whole or not _part("headline").match(text):
            return None
        return next((at for at in self._after(at, 7) if not where.match(self._lines[at].text)), None)

    def _says_more(self, below: int, tag: str) -> bool:
        line = self._lines[below]
        return line.tag == tag and not _part("item").match(line.text) and not self._is(below, "wrapper")

    # What is found

    def _exceptions(self) -> Iterator[Suspect]:
        for raised in self._tracebacks.raised:
            above = [at for at in range(max(0, raised.head - 2), raised.head) if self._lines[at].text.strip()]
            tells = above and _part("trouble").search(self._lines[above[-1]].text)
            ends = self._failed and len(list(islice(self._after(raised.at, 5), 2))) < 2
            is_handled = not ends and self._is_handled(raised.at)
            if raised.is_ignored or is_handled or (tells and self._is(above[-1], "handled")):
                continue
            text = self._lines[raised.at].text
            family = self._family_of(text, "python")
            if raised.name in self._format.exceptions["result"]:
                yield Suspect(raised.at, RESULT, family, "an exception that another failure brought about")
            else:
                yield Suspect(raised.at, EXCEPTION, family, "the innermost exception that nothing handled")

    def _family_of(self, text: str, otherwise: str) -> str:
        about = self._format.first("about", text) or self._format.first("cause", text)
        return about.family if about is not None and about.family in ABOUT else otherwise

    def _shapes(self) -> Iterator[Suspect]:
        for at in self._judged:
            shape = self._shape(at, "cause")
            if shape is None or (shape.weight < 92 and self._is(at, "wrapper")) or self._is_handled(at):
                continue
            if self._is_caller(at) or (shape.weight <= 90 and self._is(at, "harmless")):
                continue
            below = self._below(at, shape) if self._lines[at].text.endswith(":") else None
            if below is not None and self._is(below, "wrapper"):
                continue
            below = next(self._after(at, 5), None)
            if shape.weight < MINOR and below is not None and not self._is_failure(below):
                continue
            is_python = shape.family == "python"
            family = self._family_of(self._lines[at].text, "python") if is_python else shape.family
            yield Suspect(at, shape.weight, family, f"a line as {shape.family} failures have it")

    def _symptoms(self) -> Iterator[Suspect]:
        for at in self._judged:
            if (shape := self._shape(at, "symptom")) is not None and not self._is_handled(at):
                yield Suspect(at, shape.weight, shape.family, "how it ended; nothing says why")

    def _hdf5(self) -> Iterator[Suspect]:
        deepest = None
        for at, line in enumerate((*self._lines, OutputLine(0, "", ""))):
            if _part("hdf5_frame").match(line.text):
                deepest = at
            elif deepest is not None and not _part("hdf5_part").match(line.text):
                yield Suspect(deepest, 88.0, "hdf5", "the deepest error of the HDF5 library")
                deepest = None

    def _stated(self) -> Iterator[Suspect]:
        """Lines of trouble that have no shape, weighed by their words and what follows them."""
        for at in self._judged:
            above, text = self._lines[at - 1].text, self._lines[at].text
            weight = _weight_of_words(text, self._format) or self._weight_of_place(at)
            if weight <= 0 or self._is_handled(at) or self._is_caller(at):
                continue
            if any(self._is(at, role) for role in ("cause", "symptom", "wrapper")):
                continue
            if self._is(at, "harmless") and not _part("states_error").match(text):
                continue
            most = MOST_STATED if weight < FATAL else MOST_STATED + ALIKE
            count = self._counts[self._templates[at]]
            is_meant = (weight >= MOST_UNSTATED or count < MOST_TRIED) and self._ends_near(at)
            weight += 10 if count < 3 else 0 if is_meant else -30
            is_announced = _part("announced").search(above) or _part("boxed").match(text)
            if is_announced or _part("gives_up").search(text):
                weight += 15
            after = list(islice(self._after(at, 6), 4))
            if after and self._is(after[0], "wrapper") and _part("headline").match(text):
                continue
            has_failed = self._failed or any(map(self._is_failure, self._last_said[:2]))
            is_last = self._success is None and len(after) <= (LAST_LINES if has_failed else 0)
            if is_last and (any(map(self._is_failure, after)) or not self._went_on(at, len(self._lines))):
                weight += 20 if not after and self._ends_alike(at) else 10
            if after and (self._is_failure(after[0]) or self._is_missing_file(after[0])):
                weight += 25
            elif any(map(self._is_end, after)):
                weight += 15
            family = self._family_of(text, "program")
            yield Suspect(at, min(weight, most), family, "the program's own message of trouble")

    # How lines stand to each other

    @cached_property
    def _judged(self) -> list[int]:
        inside, suspects = self._tracebacks.inside, dict.fromkeys(self._suspects)
        failures = [*filter(self._is_failure, suspects), *self._tracebacks.failures, len(self._lines) - 1]
        suspects.update((at - back, None) for at in failures for back in (0, 1, 2, 3) if at >= back)
        return [at for at in sorted(suspects) if at not in inside]

    @cached_property
    def _suspects(self) -> list[int]:
        """Lines with a word of trouble: of many alike the first and the last ones, of very many too."""
        places: defaultdict[str, list[int]] = defaultdict(list)
        for at, template in enumerate(self._templates):
            places[template].append(at)
        inside, may_tell = self._tracebacks.inside, self._format.may_tell
        telling = (ats for text, ats in places.items() if may_tell(text))
        alike = (ats if len(ats) <= 6 else ats[:3] + ats[-3:] for ats in telling)
        found = sorted(at for ats in alike for at in ats if at not in inside)
        length = sum(len(self._lines[at].text) for at in found)
        if (most := min(MOST_JUDGED, len(found) * JUDGED_CHARACTERS // max(length, 1))) < len(found):
            found = found[: most // 4] + found[len(found) - most * 3 // 4 :]
        return found

    def _best(self, found: list[Suspect]) -> tuple[Suspect, list[Suspect]] | None:
        if not found:
            return None
        found.sort(key=lambda c: c.at)
        top = max(c.weight for c in found)
        good = [c for c in found if c.weight > top - ALIKE]
        if len(good) > MOST_COMPARED:
            good = good[: MOST_COMPARED // 2] + good[-MOST_COMPARED // 2 :]
        best = good[0]
        for other in good[1:]:
            if self._went_on(best.at, other.at) and not self._is(other.at, "stop"):
                best = other
        return best, [c for c in found if c is not best][: 2 * MOST_ALTERNATIVES]

    def _went_on(self, first: int, second: int) -> bool:
        """Whether what wrote the first line did more of what it had done before, until the second one."""
        if second < len(self._lines):
            is_alike = self._templates[first] == self._templates[second]
            if is_alike or self._lines[first].tag != self._lines[second].tag:
                return False
            if _part("caught").match(f"{self._templates[first]}\n{self._templates[second]}"):
                return not any(map(self._is_failure, range(first + 1, second)))
        before = set(self._templates[max(0, first - NEAR) : first])
        between = range(first + 1, min(second, first + NEAR))
        inside, seen = self._tracebacks.inside, (at for at in between if self._templates[at] in before)
        return any(at not in inside and self._says(at) and not self._is_failure(at) for at in seen)

    def _after(self, at: int, most: int) -> Iterator[int]:
        return filter(self._says, range(at + 1, min(at + 1 + most, len(self._lines))))

    def _weight_of_place(self, at: int) -> float:
        """What a line of several words weighs, in a box or the last before all abort or a quotation ends."""
        text, below = self._lines[at].text, next(self._after(at, 3), None)
        words = sum(word.strip("*,.:;!()'").isalpha() for word in text.split())
        if below is None or self._counts[self._templates[at]] > 1 or words < 4 or _part("label").match(text):
            return 0.0
        shapes = [self._shape(below, role) for role in ("symptom", "wrapper")]
        is_last = any(shape is not None and shape.family in ("mpi", "quotation") for shape in shapes)
        if below in self._last_said[:2] and self._is(below, "stop"):
            is_last = is_last or not _weight_of_words(self._lines[below].text, self._format)
        return 25.0 if is_last or (_part("boxed").match(text) and self._is_failure(below)) else 0.0

    def _is_caller(self, at: int) -> bool:
        """Whether a line that names its place in the source follows another one, which is the inner one."""
        traced, near = _part("traced"), self._lines[max(0, at - 2) : at]
        return bool(traced.match(self._lines[at].text)) and any(traced.match(line.text) for line in near)

    def _ends_near(self, at: int) -> bool:
        """Whether the output ends or tells of a failure soon after a line."""
        after = list(islice(self._after(at, 12), LAST_LINES + 1))
        return len(after) <= LAST_LINES or any(self._is_failure(below) for below in after)

    def _ends_alike(self, at: int) -> bool:
        before = self._templates[max(0, at - NEAR) : at]
        return 2 * sum(self._counts[text] > 3 for text in before) > len(before)

    def _is_missing_file(self, at: int) -> bool:
        shape = self._shape(at, "cause")
        return shape is not None and shape.family == "file" and shape.weight < FOLLOWS

    def _is_failure(self, at: int) -> bool:
        return self._is(at, "wrapper") or self._is(at, "symptom") or at in self._tracebacks.failures

    def _is_handled(self, at: int) -> bool:
        """Whether a line or one of the next two tells that the program went on, and it did."""
        if at and _part("warns").match(self._lines[at - 1].text):
            return True
        after = list(islice(self._after(at, 5), 2))
        if self._is(at, "handled"):
            return not after or not self._is_end(after[0])
        for below in after:
            if self._is_end(below) or below in self._tracebacks.inside:
                return False
            if self._is(below, "handled") and self._lines[below].tag == self._lines[at].tag:
                further = next(self._after(below, 5), None)
                return not self._failed if further is None else not self._is_end(further)
        return False

    def _is_end(self, at: int) -> bool:
        return self._is_failure(at) or self._is(at, "stop")

    def _deepest(self, at: int) -> int:
        """The last "Caused by" of a chain that begins at a line."""
        for below in range(at + 1, min(at + NEAR, len(self._lines))):
            text = self._lines[below].text
            if _part("deeper").match(text):
                at = below
            elif not _part("below").match(text):
                break
        return at

    def _ended_well(self, best: Suspect) -> bool:
        """Whether the program told of a good end after a line, or went on as before to its end."""
        said = self._last_said
        is_done = bool(said) and _part("done").match(self._lines[said[0]].text) is not None
        if is_done and self._went_on(best.at, len(self._lines)):
            return True
        if self._failed and best.weight >= SURE:
            return False
        if self._success is not None and self._success >= best.at:
            return True
        later = {at for at in said if at > best.at}
        return is_done and not self._failed and len(later) > LAST_LINES and not later & {*self._suspects}

    @cached_property
    def _last_said(self) -> list[int]:
        """The last lines that say something, the last one first."""
        return list(islice(filter(self._says, reversed(range(len(self._lines)))), 6))

    def _says(self, at: int) -> bool:
        return not _part("decoration").match(self._lines[at].text)

    @cached_property
    def _success(self) -> int | None:
        """The last line that tells of a good end, when nothing after it tells of a bad one."""
        for at in self._last_said:
            is_last = self._counts[self._templates[at]] < MOST_TRIED
            if is_last and self._is(at, "success") and not self._is(at, "cause"):
                return at
            if self._is(at, "cause") or self._is_failure(at) or at in self._tracebacks.inside:
                return None
        return None

    def _is(self, at: int, role: str) -> bool:
        return self._shape(at, role) is not None

    def _shape(self, at: int, role: str) -> CauseShape | None:
        text = self._lines[at].text
        key = self._templates[at], " 0" in text or "=0" in text, role
        if key not in self._known:
            self._known[key] = self._format.first(role, text)
        return self._known[key]


def _part(name: str) -> re.Pattern[str]:
    return load_causes().parts[name]


def _weight_of_words(text: str, shapes: CauseFormat) -> float:
    stop = shapes.first("stop", text)
    if stop is not None and (found := stop.pattern.search(text)) is not None and found.start() < EARLY:
        if len(after := text[found.end() :]) > EARLY and after.startswith(":"):
            return 45.0
        text = f"{text[: found.start()]}{after}"
    strong, weak = (
        len({word[0].lower() for word in islice(words.finditer(text), 3)})
        for words in (shapes.strong, shapes.weak)
    )
    level = _part("level").match(text)
    name = next(filter(None, level.groups()), "").upper() if level is not None else ""
    tells = strong or weak or name in BAD_LEVELS or _part("trouble").search(text)
    if name in QUIET_LEVELS or not tells:
        return 0.0
    weight = 18.0 * min(weak, 2) if not strong else 18.0 + 12.0 * strong + 8.0 * min(weak, 2)
    weight = min(weight, 50.0)
    is_stated = _part("trouble").search(text) and _part("stated").search(text)
    said = BAD_LEVELS.get(name, 45.0 if is_stated else 0.0)
    weight += 5.0 if (said or weight) and _part("named").match(text) else 0.0
    return said + weight / 2 if said else weight


class RaisedException(NamedTuple):
    """An exception with a traceback: its line, the first of its traceback, its name."""

    at: int
    head: int
    name: str
    is_ignored: bool


HEAD = "Traceback (most recent call last):"
LINKS = ("The above exception was the direct cause", "During handling of the above exception")


class Tracebacks:
    """Tracebacks of Python by rank: of each chain the first exception, an inner one before the outer one."""

    def __init__(self, lines: Sequence[OutputLine], shapes: CauseFormat) -> None:
        self._lines = lines
        self._format = shapes
        self.raised: list[RaisedException] = []
        self.failures: set[int] = set()
        """Where tracebacks begin that tell only that something else failed."""
        self.inside: set[int] = set()
        by_tag: defaultdict[str, list[int]] = defaultdict(list)
        heads = {line.tag for line in lines if HEAD in line.text or line.text.startswith("  File ")}
        for at, line in enumerate(lines):
            if line.tag in heads:
                tells = HEAD in line.text and lines[at + 1 :] and lines[at + 1].text.startswith("  File ")
                by_tag[lines[at + 1].tag if tells else line.tag].append(at)
        for indexes in by_tag.values():
            self._read(indexes)
        self.raised.sort()

    def _read(self, indexes: Sequence[int]) -> None:
        open_heads: list[int] = []
        chain: list[RaisedException] = []
        is_linked, indent, inner = False, "", 0
        for place, at in enumerate(indexes):
            text = _part("in_group").sub("", self._lines[at].text)
            if HEAD in text:
                indent = text.partition(HEAD)[0]
                if not is_linked and not open_heads and not indent.isspace():
                    chain, inner = self._close(chain), 0
                is_linked = False
                open_heads.append(at)
                self.inside.add(at)
            elif open_heads and at - open_heads[0] < NEAR:
                self.inside.add(at)
                if (name := self._exception(text.removeprefix(indent), indexes, place)) is not None:
                    raised = RaisedException(at, open_heads.pop(0), name, False)
                    chain.insert(inner if indent.isspace() else len(chain), raised)
                    inner += indent.isspace()
            elif text.startswith(LINKS):
                is_linked = True
                self.inside.add(at)
            elif self._is_syntax_error(text, indexes, place):
                chain.append(RaisedException(at, at, "SyntaxError", False))
                self.inside.add(at)
            else:
                open_heads.clear()
        self._close(chain)

    def _close(self, chain: list[RaisedException]) -> list[RaisedException]:
        """Takes the first exception of a chain that says why."""
        says = [raised for raised in chain if not self._is_wrapper(raised)]
        first = next((raised for raised in says if not self._says_little(raised)), next(iter(says), None))
        before = chain[: chain.index(first)] if first is not None else []
        is_first = all(raised.name.endswith("Group") or self._says_little(raised) for raised in before)
        if first is not None and not (is_first or _part("quotes").match(self._lines[first.at].text)):
            first = None
        if chain and first is None:
            self.failures.add(chain[0].head)
            self.inside.discard(chain[0].at)
        elif first is not None:
            above = self._lines[chain[0].head - 1].text if chain[0].head else ""
            self.raised.append(
                first._replace(head=chain[0].head, is_ignored=bool(_part("ignored").match(above)))
            )
        return []

    def _is_wrapper(self, raised: RaisedException) -> bool:
        shape = self._format.first("wrapper", self._lines[raised.at].text)
        is_told = shape is not None and shape.family != "elsewhere"
        return is_told or raised.name in self._format.exceptions["wrapper"]

    def _says_little(self, raised: RaisedException) -> bool:
        """Whether what came after it in a chain says more."""
        is_bare = ": " not in self._lines[raised.at].text and raised.name in self._format.exceptions["bare"]
        return is_bare or raised.name in self._format.exceptions["result"]

    def _exception(self, text: str, indexes: Sequence[int], place: int) -> str | None:
        if text[:1].isspace() or (found := _part("exception_line").match(text)) is None:
            return None
        name = found[1].rpartition(".")[2]
        following = self._lines[indexes[place + 1]].text if place + 1 < len(indexes) else ""
        if _part("frame").match(following):
            return None
        is_after_source = place > 0 and self._lines[indexes[place - 1]].text[:1].isspace()
        is_own = name[:1].isupper() and (": " in text or is_after_source)
        return name if is_own or _part("exception_name").search(name) else None

    def _is_syntax_error(self, text: str, indexes: Sequence[int], place: int) -> bool:
        frames = (self._lines[at].text.startswith("  File ") for at in indexes[max(0, place - 4) : place])
        return text.startswith(("SyntaxError: ", "IndentationError: ", "TabError: ")) and any(frames)
