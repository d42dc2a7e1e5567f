"""What is asked about the expressions of a job ad, and what a person reads of the answers.

What a job asks for is one value. A condition on which it is held, released or removed is told with the parts
that hold now. `Requirements` looks at machines, too: told is what no machine can change, else what is left to
ask of one, the job's own values put in.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from jobtui.formats.ad_expressions import Ad, Unfit, Word, clauses_of, is_plain
from jobtui.formats.class_ads import MOST_CHARACTERS, expressions_of, is_cut
from jobtui.model.ad_values import AdAnswer, AdQuestion
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.condor import AD_STATES, COMPLETED, REMOVED
from jobtui.model.condor_facts import CondorFact, Teller
from jobtui.model.jobs import JobDetail

AMOUNTS: Mapping[str, str] = {
    "RequestCpus": "",
    "RequestMemory": " MiB",
    "RequestDisk": " KiB",
    "RequestGPUs": "",
}
"""What a job asks for, and the unit of its number."""
CONDITIONS = ("PeriodicHold", "PeriodicRelease", "PeriodicRemove")
"""What the schedd looks at again and again while the job is there."""
REQUIREMENTS = "Requirements"
NEVER = "false on any machine = "
"""Before the parts of `Requirements` for which no machine can take a job."""
CUT = f"stands in an ad of more than {MOST_CHARACTERS >> 10} KiB"
MOST_CLAUSES = 32
"""Of one condition."""

Answers = Mapping[AdQuestion, AdAnswer]


class Part(NamedTuple):
    """An expression or a part of one as it is written, and what is to be asked; else `why` it is not."""

    written: str
    question: AdQuestion | None
    why: str = ""

    def answer(self, answers: Answers) -> AdAnswer:
        """What became of it."""
        return AdAnswer(failed=self.why) if self.question is None else answers[self.question]


class Asked(NamedTuple):
    """An attribute that is an expression: the whole, and its parts where they are asked for, too."""

    name: str
    whole: Part
    clauses: tuple[Part, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        """The whole and its parts."""
        return (self.whole, *self.clauses)


def inquiry_of(facts: Sequence[CondorFact], now: Nanos) -> tuple[Asked, ...]:
    """What is to be asked about the last job ad among what files say of a job."""
    last = next((fact for fact in reversed(facts) if fact.teller is Teller.AD), None)
    if last is None:
        return ()
    if is_cut(last.text):
        return tuple(_unasked(last.values))
    expressions = expressions_of(last.text)
    of_ad = expressions.get("ServerTime", "")
    is_time = of_ad.isascii() and of_ad.isdigit() and len(of_ad) < 12
    ad = Ad(expressions, int(of_ad) if is_time else now // SECOND)
    return tuple(_inquiry(ad))


def _unasked(values: Mapping[str, str]) -> Iterator[Asked]:
    """What an ad of which a part is missing asks for by expressions."""
    for name in AMOUNTS:
        written = values.get(name)
        if written is not None and not is_plain(written):
            yield Asked(name, Part(written, None, CUT))


def _inquiry(ad: Ad) -> Iterator[Asked]:
    state = AD_STATES.get(ad.expressions.get("jobstatus", ""))
    conditions = () if state in (COMPLETED, REMOVED) else (*CONDITIONS, REQUIREMENTS)
    for name in (*AMOUNTS, *conditions):
        written = ad.expressions.get(name.lower())
        if written is not None and not is_plain(written):
            yield _asked(ad, name, written)


def _asked(ad: Ad, name: str, written: str) -> Asked:
    try:
        words = ad.words(name.lower())
    except Unfit as error:
        return Asked(name, Part(written, None, str(error)))
    clauses: Sequence[Sequence[Word]] = ()
    if name not in AMOUNTS:
        clauses = clauses_of(words, "&&" if name == REQUIREMENTS else "||")
    if len(clauses) < 2 or len(clauses) > MOST_CLAUSES:
        clauses = ()
    return Asked(name, _part(ad, written, words), tuple(_clause(ad, written, one) for one in clauses))


def _clause(ad: Ad, written: str, words: Sequence[Word]) -> Part:
    return _part(ad, written[words[0].begin : words[-1].end] if words else "", words)


def _part(ad: Ad, written: str, words: Sequence[Word]) -> Part:
    try:
        return Part(written, ad.question(words))
    except Unfit as error:
        return Part(written, None, str(error))


def questions_in(inquiry: Iterable[Asked]) -> tuple[AdQuestion, ...]:
    """All that is to be asked, each once."""
    parts = (part.question for asked in inquiry for part in asked.parts)
    return tuple(dict.fromkeys(question for question in parts if question is not None))


def _sayings(inquiry: Iterable[Asked], answers: Answers) -> dict[str, str]:
    """What a person reads of each attribute."""
    return {asked.name: _HOW.get(asked.name, _amount)(asked, answers) for asked in inquiry}


def _amount(asked: Asked, answers: Answers) -> str:
    answer = asked.whole.answer(answers)
    if answer.failed:
        return _not_evaluated(asked.whole, answer)
    unit = AMOUNTS.get(asked.name, "") if answer.holds is not None else ""
    return f"{answer.text}{unit} = {asked.whole.written}"


def _condition(asked: Asked, answers: Answers) -> str:
    answer = asked.whole.answer(answers)
    if answer.failed:
        return _not_evaluated(asked.whole, answer)
    true = [part.written for part in asked.clauses if part.answer(answers).holds] if answer.holds else []
    return f"{answer.text} = {' || '.join(true) or asked.whole.written}"


def _requirements(asked: Asked, answers: Answers) -> str:
    parts = asked.clauses or (asked.whole,)
    said = [(part, part.answer(answers)) for part in parts]
    if never := [part.written for part, answer in said if answer.holds is False]:
        return f"{NEVER}{_all_of(never)}"
    left = [answer.rest or part.written for part, answer in said if not answer.holds]
    return f"of a machine: {_all_of(left)}" if left else f"true = {asked.whole.written}"


def _all_of(clauses: Sequence[str]) -> str:
    """Clauses as one, parentheses around those whose signs bind weaker."""
    if len(clauses) == 1:
        return clauses[0]
    return " && ".join(f"({one})" if "||" in one or "?" in one.replace("=?=", "") else one for one in clauses)


_HOW: Mapping[str, Callable[[Asked, Answers], str]] = {
    **dict.fromkeys(CONDITIONS, _condition),
    REQUIREMENTS: _requirements,
}


def _not_evaluated(part: Part, answer: AdAnswer) -> str:
    return f"{part.written} (not evaluated: {answer.failed})"


def failure_of(asked: Asked, answers: Answers) -> str:
    """Why nothing is known of an attribute, "" where something is."""
    said = [part.answer(answers) for part in asked.parts]
    is_known = asked.name == REQUIREMENTS and any(not answer.failed for answer in said)
    return "" if is_known else said[0].failed


def with_values(detail: JobDetail, inquiry: Sequence[Asked], answers: Answers) -> JobDetail:
    """A job with values in place of its expressions; the last of its facts stays the last."""
    said = _sayings(inquiry, answers)
    shown = [(name, said.get(name, text)) for name, text in detail.facts]
    more = [(name, text) for name, text in said.items() if name not in dict(shown)]
    told = ((asked.name, asked.whole.answer(answers)) for asked in inquiry)
    values = {name: answer.text for name, answer in told if not answer.failed}
    facts = (*shown[:-1], *more, *shown[-1:])
    return msgspec.structs.replace(detail, facts=facts, native=detail.native | {"values": values})
