"""Why a program failed, by its own words: finds the line of its output that says so.

Lines that may say so are those with a word of trouble, and those before an end. Each has features: its
words, its shapes of `formats/causes.toml`, its place, what stands beside it. A logistic model gives the
chance of each of these lines, and that of none; its weights, `formats/cause_weights.toml`, were learnt from
marked outputs. Where no line is likely enough there is no cause: a guess is worth less than none.
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from html import unescape
from itertools import accumulate, islice, pairwise, takewhile
from math import exp, sqrt
from operator import xor
from typing import NamedTuple

from jobtui.formats.causes import CauseFormat, CauseShape, CauseWeights, load_causes, load_weights
from jobtui.model.job_reader import FilePart
from jobtui.model.numbers import read_json, whole
from jobtui.model.secret_blocks import SecretBlocks
from jobtui.model.secrets import mask_line, masked_lines
from jobtui.model.verdicts import Cause

LONGEST = 600
"""How many characters of a line are judged, half of them from its end."""
JUDGED_LINES, JUDGED_CHARACTERS = 300, 30_000
"""How many lines are judged at most, and how many characters of them."""
BLOCK_LINES = 400
"""How many lines a traceback or a chain of causes has at most; as many are looked at after an exception."""
PASTED_LINES = 500
"""How many lines a text has at most that may have been pasted."""
FRAMED_SHARE = 0.8
"""The share of lines, from the first, that a frame is around."""
SHORTEST_REPEATED = 16
"""How many characters a line has at least that another may say again."""
FEWEST_ALIKE = 3
"""How many lines after an exception are as lines before it, at least, if the program went on."""
MOST_CERTAIN, MOST_CERTAIN_OF_CUT = 0.95, 0.75
"""How sure a cause is at most, and where what followed is missing."""
LEAST_WEIGHED = 0.02
"""The chance from which a line counts as one of those that the cause was chosen from."""
LINE_WORDS, HEAD_WORDS, LABEL_WORDS = 24, 2, 3
"""How many words of a line are features; and, as features of their own, of the first and before a colon."""
LONG_WORD, AFFIX_LETTERS = 6, 4
"""From how many letters on the beginning and the end of a word are features, and how many letters of each."""
LAST_LINES = 60
"""How many of the last lines are looked at for their roles."""
END_LINES, END_WORDS = 3, 10
"""How many of the last lines are features by their words, and how many words of each."""
ALIKE_CHARACTERS = 4
"""Lines that begin with the same so many characters are of one kind."""
MOST_ABOVE = 2
"""How many lines above a cause are shown, none from before an empty one."""
KEY_LINES = 120
"""How many lines above a cause are read to know whether it is in a private key, which is masked."""
TERMINAL_WIDTHS, MAIL_WIDTHS = (60, 200), (66, 84)
"""The columns at which a terminal, and a mail, may have broken lines."""
FEWEST_BROKEN = 3
"""How many lines were broken at least, with rests that begin with a letter."""
LENGTH_STEPS, PLAIN_STEPS = (0, 1, 2, 3, 5, 8, 12, 18), (1, 2, 3, 5, 9)
"""Numbers of words, and of plain lines after one, between which there is no difference."""


class OutputLine(NamedTuple):
    """Part of a line that was seen at one time. `tag` is the rank or process that wrote it."""

    number: int
    tag: str
    text: str


class Suspect(NamedTuple):
    """A line that may be the cause, the first of those alike, and the chance that it is."""

    at: int
    chance: float


Breaks = Callable[[str, str, int], object]
ROLES_THAT_TELL = ("cause", "symptom", "wrapper", "handled", "harmless", "stop", "success")
ENDS = ("symptom", "stop", "wrapper", "success")
"""Roles of lines after which a program wrote little more."""
BESIDE = ("headline", "announced", "where", "deeper", "warns")
"""Parts of the formats of which a line tells for or against one beside it."""


def find_cause(text: str, *, first_line: int = 1) -> Cause | None:
    """The cause in what a program wrote that did not end well."""
    is_cut = "\0" in text or ("\n" in text and not text.endswith("\n"))
    return Output(read_lines(text, first_line), load_weights(), is_cut=is_cut).cause


def certainty(chance: float) -> float:
    """How often lines of a chance are right in files that were left out; lines that say the same share it."""
    return min(sqrt(chance), MOST_CERTAIN)


def numbered(cause: Cause, part: FilePart, source: str) -> Cause:
    """A cause in a part of a file by the lines of the whole, with those right above it."""
    number = None if part.lines_before is None or cause.line is None else part.lines_before + cause.line
    lines = part.text.split("\n")[: (cause.line or 1) - 1]
    seen = masked_lines(uncoloured(line).rstrip().rpartition("\r")[2] for line in lines[-KEY_LINES:])
    up = islice(takewhile(bool, reversed([*seen])), MOST_ABOVE)
    above = reversed([mask_line(line)[:LONGEST] for line in up])
    return cause._replace(line=number, source=source, above=(*above,))


def read_lines(text: str, first_line: int = 1) -> Iterator[OutputLine]:
    """Lines without colour, time and rank; what a carriage return wrote over is a part of its own."""
    # That one is the value of a secret key above it is not seen of it alone
    lines = [*_without_prose([*map(SecretBlocks().hide, text.split("\n"))])]
    torn = _part("torn").match
    lines = _whole(
        lines, TERMINAL_WIDTHS, lambda one, below, width: len(one) == width and torn(one[-1] + below), ""
    )
    frame = _frame(lines)
    for number, raw in enumerate(lines, first_line):
        raw = frame.sub("", raw, count=1) if frame is not None else raw
        raw = uncoloured(_record_text(raw) if raw.startswith("{") or "=" in raw else raw)
        parts = [part for part in raw.split("\r") if part.strip()] if "\r" in raw else [raw]
        for part in parts or [""]:
            if len(part) > LONGEST:
                part = f"{part[: LONGEST // 2]} {part[-LONGEST // 2 :]}"
            yield OutputLine(number, *_without_prefix(part))


def _without_prose(lines: Sequence[str]) -> Iterator[str]:
    """What was pasted, without marks and quotes; of what is said of it only what it quotes of an output.

    A sentence that has the shape of a cause counts where nothing that was pasted tells of trouble.
    """
    if len(lines) > PASTED_LINES:
        yield from lines
        return
    fails, is_strong, is_trouble = load_causes().fails, _part("strong").search, _part("trouble").search
    is_fence = [_part("fence").match(line) is not None for line in lines]
    marks = [line.strip("`~> \n") for line, is_mark in zip(lines, is_fence, strict=True) if is_mark]
    shown = (_part("entity").sub(lambda found: unescape(found[0]), line) for line in lines)
    bare = [_part("quote").sub("", line) for line in shown]
    around = [not is_inside and (len(marks) > 1 or any(marks)) for is_inside in accumulate(is_fence, xor)]
    around = [one and text == line for one, text, line in zip(around, bare, lines, strict=True)]
    if any(_part("prose").search(line[:LONGEST]) for line in bare):
        bare = _whole(bare, MAIL_WIDTHS, _breaks_at_word, " ")
    near = [line[:LONGEST].rstrip() for line in bare]
    said = [_part("prose").search(line) is not None for line in near]
    runs_on, goes_on = _part("runs_on").match, _part("goes_on").fullmatch
    wrapped = [at for at, (line, below) in enumerate(pairwise(near)) if runs_on(line) and goes_on(below)]
    for at in (*wrapped, *reversed(wrapped)):
        said[at] = said[at + 1] = said[at] or said[at + 1]
    pasted = (text for at, text in enumerate(near) if not (said[at] or around[at]))
    is_told = any(said) and any(is_strong(text) or is_trouble(text) or fails(text) for text in pasted)
    for at, text in enumerate(bare):
        if (said[at] and is_told) or ((said[at] or around[at]) and not fails(near[at])):
            quoted = [*filter(None, map("".join, _part("quotation").findall(text[:LONGEST])))]
            text = next(filter(is_strong, quoted), "".join(quoted[:1]))
        yield "" if is_fence[at] else text


def _whole(lines: list[str], widths: tuple[int, int], breaks: Breaks, glue: str) -> list[str]:
    """Lines that were broken at a width, whole again; what each went on in is an empty line."""
    width = max(map(len, lines))
    pairs = enumerate(pairwise(lines)) if widths[0] <= width <= widths[1] else ()
    broken = [at for at, (line, below) in pairs if breaks(line, below, width)]
    rests = {lines[at + 1][:ALIKE_CHARACTERS] for at in broken if not _begin_alike(lines[at], lines[at + 1])}
    for at in reversed(broken if sum(rest[0].isalpha() for rest in rests) >= FEWEST_BROKEN else ()):
        lines[at], lines[at + 1] = f"{lines[at]}{glue}{lines[at + 1]}", ""
    return lines


def _begin_alike(one: str, other: str) -> bool:
    return one[:ALIKE_CHARACTERS] == other[:ALIKE_CHARACTERS]


def _breaks_at_word(line: str, below: str, width: int) -> bool:
    """Whether a mail broke a line where there was no room for the next word."""
    is_other = _part("ends").search(line) or _part("begins").match(below) or _begin_alike(line, below)
    return not is_other and width - len(line) <= len(below.partition(" ")[0])


def uncoloured(raw: str) -> str:
    """A line without escape sequences and the sides of a box."""
    if "\x1b" in raw or "\0" in raw or "\b" in raw or raw.startswith(("│", "┃", "║")):
        return _part("escapes").sub("", raw)
    return raw


def _frame(lines: Iterable[str]) -> re.Pattern[str] | None:
    """What stands before each line, and so tells nothing of one: a quote, a rank, a time and one level."""
    lines = [line for line in lines if line.strip()]
    for frame in map(_part, ("quoted", "indented", "labelled", "relayed_by", "relayed")):
        found = [*takewhile(bool, map(frame.match, lines))]
        frames = {one and one.groups() for one in found}
        if len(found) > max(1, FRAMED_SHARE * len(lines)) and len(frames) == 1:
            return frame
    return None


def _record_text(record: str) -> str:
    """What a record of JSON or logfmt says: names and levels first, then its sentences; lines are parts."""
    is_logfmt = _part("logfmt").fullmatch(record) is not None
    try:
        fields = dict(_part("logfmt_field").findall(record)) if is_logfmt else read_json(record)
    except ValueError:
        return record
    values = fields.values() if isinstance(fields, dict) else ()
    texts = [text for text in values if isinstance(text, str) and not _part("no_news").match(text)]
    return ": ".join(sorted(texts, key=lambda text: " " in text)).replace("\n", "\r") or record


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
    """What a program wrote, judged line by line; `is_cut` where its end, or a part, is missing."""

    def __init__(self, lines: Iterable[OutputLine], weights: CauseWeights, *, is_cut: bool = False) -> None:
        self.lines = tuple(lines)
        self._is_cut = is_cut
        self._weights = weights
        self._format = load_causes()
        self._templates = [_part("number").sub("#", line.text) for line in self.lines]
        self._known: dict[tuple[str, bool, str], CauseShape | None] = {}
        self._roles = cache(self._roles_of)
        self._tracebacks = Tracebacks(self.lines, self._format)
        self._raised = {one.at: one for one in self._tracebacks.raised}
        self._raised_at = {one.head: one.at for one in self._tracebacks.raised}
        is_decoration = _part("decoration").match
        self._with_words = [at for at, line in enumerate(self.lines) if not is_decoration(line.text)]
        self._ranks = {at: rank for rank, at in enumerate(self._with_words)}
        self._troubles = {at for at in self._with_words if _part("trouble").search(self.lines[at].text)}

    @cached_property
    def cause(self) -> Cause | None:
        if (best := self.best) is None or best.chance < self._weights.least:
            return None
        at = self.named_by(best.at)
        line, text = self.lines[at], self.lines[at].text
        text = (_part("in_group").sub("", text) if at in self._raised else text).strip()
        below = (last for last in self._with_words[-LAST_LINES:] if last > at)
        goes_on = self._is_cut and not any(role in ENDS for last in below for role in self._roles(last))
        most = MOST_CERTAIN_OF_CUT if goes_on else MOST_CERTAIN
        why = self._why(best.at) + (f"; written by {line.tag.rstrip(':')} first" if line.tag else "")
        confidence = round(min(certainty(best.chance), most), 2)
        family, is_end = self._family_of(best.at), self._is(best.at, "symptom")
        weighed = sum(one.chance >= LEAST_WEIGHED for one in self._suspects)
        return Cause(text, line.number, family, confidence, why, is_end=is_end, weighed=weighed)

    @property
    def best(self) -> Suspect | None:
        """The line that is the likeliest cause; a wrapper says that something else failed, never why."""
        if not self._suspects:
            return None
        at = self.named_by(self._suspects[0].at)
        shape, wrapper = self._shape(at, "cause"), self._shape(at, "wrapper")
        is_vague = shape is None or (shape.family == "python" and wrapper and wrapper.family != "elsewhere")
        tells = wrapper is None or not is_vague or self._is(at, "symptom")
        return self._suspects[0] if tells and not _part("heading").match(self.lines[at].text) else None

    @cached_property
    def _suspects(self) -> list[Suspect]:
        """Lines, and the chance of each that what it names is the cause; the rest of 1 is that of no line."""
        weigh = self._weights.weigh
        weights = {at: weigh(self.features(at)) for at in self.judged}
        none = weigh(self.features_of_none())
        top = max((none, *weights.values()))
        shares: defaultdict[str, float] = defaultdict(float)
        named = {at: self._templates[self.named_by(at)].strip(" .!'\"*") for at in weights}
        for at, weight in weights.items():
            shares[named[at]] += exp(weight - top)
        total = sum(shares.values()) + exp(none - top)
        first = {named[at]: at for at in reversed(weights)}
        found: dict[str, Suspect] = {}
        for text, share in sorted(shares.items(), key=lambda one: -one[1]):
            # A line that has all of another, and more around it, says it again
            alike = (one for one in found if one in text or text in one)
            said = next((one for one in alike if min(len(one), len(text)) >= SHORTEST_REPEATED), text)
            same = found.get(said, Suspect(first[text], 0.0))
            found[said] = same._replace(chance=same.chance + share / total)
        return sorted(found.values(), key=lambda one: -one.chance)

    def named_by(self, at: int) -> int:
        """The line to show for the cause at a line: the deepest of its chain, or the one it announces."""
        at = self._deepest(at)
        if (below := self._below(at)) is None or self.lines[below].tag != self.lines[at].tag:
            return at
        is_place = any(_part(name).match(self.lines[below].text) for name in ("item", "frame"))
        return at if is_place or self._is(below, "wrapper") else below

    def _why(self, at: int) -> str:
        if at in self._raised:
            return "the innermost exception that nothing handled"
        if (shape := self._shape(at, "cause")) is not None:
            return f"a line that {shape.family} failures write"
        if self._shape(at, "symptom") is not None:
            return "how it ended; nothing says why"
        return "its words are those of an error message"

    def _family_of(self, at: int) -> str:
        shape = self._shape(at, "cause") or self._shape(at, "symptom")
        if shape is None or shape.family == "python" or at in self._raised:
            shape = self._format.first("about", self.lines[at].text) or shape
        return shape.family if shape is not None else "python" if at in self._raised else "program"

    def features(self, at: int) -> Iterator[str]:
        """Names of all that may tell for or against a line: its words, shapes, place and neighbours."""
        text, rank = self.lines[at].text, self._ranks[at]
        words = _words(text)[:LINE_WORDS]
        weak = {word[0].lower() for word in islice(_part("weak").finditer(text), 2)}
        yield from dict.fromkeys(words)
        affixes = [(one[:AFFIX_LETTERS], one[-AFFIX_LETTERS:]) for one in words if len(one) >= LONG_WORD]
        yield from {part: 0 for begin, end in affixes for part in (f"BEGIN {begin}", f"END {end}")}
        yield f"LENGTH {bisect_left(LENGTH_STEPS, len(words))}"
        yield f"WEAK {len(weak)} {_part('strong').search(text) is not None}"
        label, colon, _ = text.partition(":")
        labels = _words(label)[-LABEL_WORDS:] if colon else ()
        yield from {f"HEAD {word}": 0 for word in words[:HEAD_WORDS]}
        yield from {f"LABEL {word}": 0 for word in labels}
        yield from {f"PAIR {one} {other}": 0 for one, other in pairwise(words)}
        yield from (f"IS {name}" for name in self._format.telling if _part(name).match(text))
        roles = self._roles(at)
        yield from (f"IS {role}" for role in roles)
        for role in ROLES_THAT_TELL:
            if (shape := self._shape(at, role)) is not None and shape.weight:
                yield f"IS {role} {shape.weight // 10}"
        before = [role for role, ats in self._places.items() if ats[0] < at]
        yield from (f"{role} AFTER {other}" for role in roles or ("other",) for other in before)
        yield from self._goes_on(at, roles)
        has_trouble = at in self._troubles
        yield f"TROUBLE {has_trouble}"
        above = self._ranks.get(self._raised[at].head if at in self._raised else at, rank) - 1
        for name, beside in (("BELOW", rank + 1), ("ABOVE", above)):
            if not 0 <= beside < len(self._with_words):
                yield f"{name} none"
                continue
            other = self._with_words[beside]
            yield f"{name} trouble {other in self._troubles} {has_trouble}"
            yield f"{name} alike {_begin_alike(self.lines[other].text, text)}"
            yield from (f"{name} {part}" for part in BESIDE if _part(part).match(self.lines[other].text))
            yield from (f"{name} {role}" for role in self._roles(other))

    def _goes_on(self, at: int, roles: Sequence[str]) -> Iterator[str]:
        """What comes after a line, by what it is: a program that went on has handled what it tells."""
        rank, kind = self._ranks[at], roles[0] if roles else "other"
        head = self._raised[at].head if at in self._raised else at
        # What is said again after every step was not got over before it was said last
        plain = self._plain[bisect_left(self._plain, self._alike[self._templates[at]][-1]) :]
        kin = [self._alike[self._templates[one]] for one in plain]
        # A program that ends writes lines of many kinds; one that goes on writes many of a kind
        of_many, first = sum(len(ats) >= FEWEST_ALIKE for ats in kin), min(self._ranks.get(head, rank), 2)
        counts = {"ON": len(kin), "AGAIN": sum(ats[0] < head for ats in kin), "SERIES": of_many}
        after = {name: bisect_left(PLAIN_STEPS, count) for name, count in counts.items()}
        yield from (f"{name} {count}" for name, count in after.items())
        yield from (f"{name} {kind} {count} {first}" for name, count in after.items())
        yield f"LEFT {kind} {min(len(self._with_words) - 1 - rank, 3)}"
        later = [role for role, ats in self._places.items() if ats[-1] > at]
        yield from (f"{role} BEFORE {other}" for role in roles or ("other",) for other in later)

    @cached_property
    def _plain(self) -> list[int]:
        """Of the last lines those that tell of no trouble."""
        last, tells = self._with_words[-LAST_LINES:], self._format.may_tell
        return [at for at in last if not (tells(self._templates[at]) or self._roles(at))]

    def _roles_of(self, at: int) -> list[str]:
        """What a line is by its shapes, and by the traceback or stack it is in."""
        roles = [role for role in ROLES_THAT_TELL if self._is(at, role)]
        if at in self._raised:
            roles.append("handled" if at in self._handled else self._raised[at].kind)
        elif at in self._tracebacks.inside:
            roles.append("traceback")
        return roles

    @cached_property
    def _handled(self) -> set[int]:
        """Exceptions after which the program went on: with another attempt, an INFO record, or as before."""
        ats = self._with_words if self._raised else []
        texts = [self.lines[at].text for at in ats]
        kinds = [(self.lines[at].tag, self._templates[at]) for at in ats]
        found = ((rank, _part("attempt").search(text)) for rank, text in enumerate(texts))
        attempts = {rank: whole(one[one.lastindex or 0], 0) for rank, one in found if one}
        record, goes_well = _part("record").match, _part("goes_well").match
        fails = [at for at in ats[-LAST_LINES:] if self._is(at, "wrapper") or self._is(at, "symptom")]
        handled = set()
        for one in self._raised.values():
            first, last = (self._ranks.get(at, 0) for at in (one.head, one.at))
            own = [rank for rank in (*range(first - 2, first + 1), last, last + 1) if rank in attempts]
            is_tried = own and any(n > attempts[own[0]] for rank, n in attempts.items() if rank > last)
            tag, after = self.lines[one.at].tag, slice(last + 1, last + 1 + BLOCK_LINES)
            is_logged = first > 0 and record(texts[first - 1]) and any(map(goes_well, texts[after]))
            before = Counter(kind for kind in kinds[max(0, first - BLOCK_LINES) : first] if kind[0] == tag)
            # If a launcher tells of a failure later, only other processes went on
            again = sum(before[kind] > 1 for kind in kinds[after]) if max(fails, default=0) < one.at else 0
            if is_tried or is_logged or again >= FEWEST_ALIKE or (not fails and self._came_further(one)):
                handled.add(one.at)
        return handled

    def _came_further(self, one: "RaisedException") -> bool:
        """Whether its program failed at another line of its own later: it cannot have ended here."""
        place, tag = self._outermost(one), self.lines[one.at].tag
        later = (other for other in self._raised.values() if other.head > one.at + 1)
        places = [self._outermost(other) for other in later if self.lines[other.at].tag == tag]
        return place is not None and any(it and it[0] == place[0] and it != place for it in places)

    def _outermost(self, one: "RaisedException") -> tuple[str, ...] | None:
        """The file and line at the top of a traceback."""
        found = OUTERMOST.match(self.lines[min(one.head + 1, one.at)].text)
        return found and found.groups()

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """Where lines of each role are, of those that are judged and the last ones."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for at in sorted({*self.judged, *self._with_words[-LAST_LINES:]}):
            for role in self._roles(at):
                found[role].append(at)
        return found

    def features_of_none(self) -> Iterator[str]:
        """Features of "no line says why": how the output ends, and what its lines are."""
        last = self._with_words[: -END_LINES - 1 : -1]
        yield "NONE"
        yield from {f"LAST {word}": 0 for at in last for word in _words(self.lines[at].text)[:END_WORDS]}
        for back, at in enumerate(last):
            yield from (f"LAST{back} {role}" for role in self._roles(at))
        yield from (f"NONE HAS {role}" for role in self._places)

    def _below(self, at: int) -> int | None:
        """The line that says what a headline announces; of a long message the last one that says why."""
        text, where = self.lines[at].text, _part("where")
        if at in self._raised and text.endswith(":"):
            below = list(takewhile(lambda at: self.lines[at].text[0].isspace(), self._after(at, BLOCK_LINES)))
            first = self._format.first
            return next((at for at in reversed(below) if first("cause", self.lines[at].text.strip())), None)
        shape = self._shape(at, "cause") or self._shape(at, "symptom")
        if shape is None and at + 1 in self._raised_at and _part("trouble").search(text):
            return self._raised_at[at + 1]
        is_whole = at in self._raised or (shape is not None and shape.family == "signal")
        if is_whole or not _part("headline").match(text):
            return None
        strong = _part("strong").search
        texts = ((at, self.lines[at].text) for at in self._after(at, 7))
        return next((at for at, text in texts if strong(text) or not where.match(text)), None)

    @cached_property
    def judged(self) -> list[int]:
        """Lines that may be the cause."""
        inside, tellers = self._tracebacks.inside, dict.fromkeys(self._tellers)
        failures = [at for at in tellers if self._is(at, "wrapper") or self._is(at, "symptom")]
        failures += [*self._tracebacks.failures, len(self.lines) - 1]
        tellers.update((at - back, None) for at in failures for back in (0, 1, 2, 3) if at >= back)
        found = {*(self._raised.keys() - self._handled), *(at for at in tellers if at not in inside)}
        return sorted(found & self._ranks.keys())

    @cached_property
    def _alike(self) -> dict[str, list[int]]:
        """Where the lines are that differ in numbers only."""
        places: defaultdict[str, list[int]] = defaultdict(list)
        for at, template in enumerate(self._templates):
            places[template].append(at)
        return places

    @cached_property
    def _tellers(self) -> list[int]:
        """Lines with a word of trouble: of many alike the first and the last ones, of very many too."""
        telling = (ats for text, ats in self._alike.items() if self._format.may_tell(text))
        alike = (ats if len(ats) <= 6 else ats[:3] + ats[-3:] for ats in telling)
        found = sorted(at for ats in alike for at in ats if at not in self._tracebacks.inside)
        length = sum(len(self.lines[at].text) for at in found)
        if (most := min(JUDGED_LINES, len(found) * JUDGED_CHARACTERS // max(length, 1))) < len(found):
            found = found[: most // 4] + found[len(found) - most * 3 // 4 :]
        return found

    def _after(self, at: int, most: int) -> Iterator[int]:
        """Lines that say something among the `most` below one."""
        return filter(self._ranks.__contains__, range(at + 1, at + 1 + most))

    def _deepest(self, at: int) -> int:
        """The last "Caused by" of a chain that begins at a line."""
        is_under = False
        for below in range(at + 1, min(at + BLOCK_LINES, len(self.lines))):
            text = self.lines[below].text
            is_item = is_under and text[:1].isspace()
            is_under = is_item or text == "Caused by:"
            if is_item or _part("deeper").match(text):
                at = at if self._is(below, "wrapper") else below
            elif not (is_under or _part("below").match(text)):
                break
        return at

    def _is(self, at: int, role: str) -> bool:
        return self._shape(at, role) is not None

    def _shape(self, at: int, role: str) -> CauseShape | None:
        text = self.lines[at].text
        key = self._templates[at], " 0" in text or "=0" in text, role
        if key not in self._known:
            self._known[key] = self._format.first(role, text)
        return self._known[key]


def _part(name: str) -> re.Pattern[str]:
    return load_causes().parts[name]


def _words(text: str) -> list[str]:
    return [word.lower().replace("’", "'") for word in _part("word").findall(text)]


class RaisedException(NamedTuple):
    """An exception with a traceback: its line, the first of its traceback, its name.

    It is raised, ignored, or the result of another failure.
    """

    at: int
    head: int
    name: str
    kind: str = "raised"


HEAD = re.compile(r"Traceback \(most recent call last\)(?::|$)")
"""Of a traceback, with a colon by Python and without one by IPython."""
OUTERMOST = re.compile(r' *File "([^"]+)", line (\d+), in <module>')
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
        heads = {line.tag for line in lines if HEAD.search(line.text) or line.text.startswith("  File ")}
        for at, line in enumerate(lines):
            if line.tag in heads:
                below = next(iter(lines[at + 1 : at + 2]), line)
                tells = HEAD.search(line.text) and below.text.startswith("  File ")
                by_tag[below.tag if tells else line.tag].append(at)
        for indexes in by_tag.values():
            self._read(indexes)
        self.raised.sort()

    def _read(self, indexes: Sequence[int]) -> None:
        open_heads: list[int] = []
        chain: list[RaisedException] = []
        is_linked, indent, inner = False, "", 0
        for rank, at in enumerate(indexes):
            text = _part("in_group").sub("", self._lines[at].text)
            if (found := HEAD.search(text)) is not None:
                indent = text[: found.start()]
                if not is_linked and not open_heads and not indent.isspace():
                    chain, inner = self._close(chain), 0
                is_linked = False
                open_heads.append(at)
                self.inside.add(at)
            elif open_heads and at - open_heads[0] < BLOCK_LINES:
                self.inside.add(at)
                if (name := self._exception(text.removeprefix(indent), indexes, rank)) is not None:
                    raised = RaisedException(at, open_heads.pop(0), name)
                    chain.insert(inner if indent.isspace() else len(chain), raised)
                    inner += indent.isspace()
            elif text.startswith(LINKS):
                is_linked = True
                self.inside.add(at)
            else:
                open_heads.clear()
        self._close(chain)

    def _close(self, chain: list[RaisedException]) -> list[RaisedException]:
        """Takes the first exception of a chain that says why."""
        says = [raised for raised in chain if not self._is_wrapper(raised)]
        first = next((raised for raised in says if not self._says_little(raised)), says[-1] if says else None)
        before = chain[: chain.index(first)] if first is not None else []
        is_first = all(raised.name.endswith("Group") or self._says_little(raised) for raised in before)
        if first is not None and not (is_first or _part("quotes").match(self._lines[first.at].text)):
            first = None
        if chain and first is None:
            self.failures.add(chain[0].head)
            self.inside.discard(chain[0].at)
        elif first is not None:
            above = self._lines[chain[0].head - 1].text if chain[0].head else ""
            kind = "result" if first.name in self._format.exceptions["result"] else "raised"
            kind = "ignored" if _part("ignored").match(above) else kind
            self.raised.append(first._replace(head=chain[0].head, kind=kind))
        return []

    def _is_wrapper(self, raised: RaisedException) -> bool:
        text = self._lines[raised.at].text
        shape = self._format.first("wrapper", text)
        is_named = raised.name in self._format.exceptions["wrapper"] and not _part("quotes").match(text)
        return is_named or (shape is not None and shape.family != "elsewhere")

    def _says_little(self, raised: RaisedException) -> bool:
        """Whether the exception after it in a chain says more."""
        is_bare = ": " not in self._lines[raised.at].text and raised.name in self._format.exceptions["bare"]
        return is_bare or raised.name in self._format.exceptions["result"]

    def _exception(self, text: str, indexes: Sequence[int], rank: int) -> str | None:
        if text[:1].isspace() or (found := _part("exception_line").match(text)) is None:
            return None
        name = found[1].rpartition(".")[2]
        following = self._lines[indexes[rank + 1]].text if rank + 1 < len(indexes) else ""
        if _part("frame").match(following):
            return None
        is_after_source = rank > 0 and self._lines[indexes[rank - 1]].text[:1].isspace()
        is_own = name[:1].isupper() and (": " in text or is_after_source)
        return name if is_own or _part("exception_name").search(name) else None
