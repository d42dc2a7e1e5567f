"""A verdict and a chain of waits as lines of text and as JSON documents."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from jobtui.analysis.explain.flow import usual_words
from jobtui.analysis.times import age, duration
from jobtui.model import verdicts
from jobtui.model.clock import Nanos, to_rfc3339
from jobtui.model.health import SourceHealth
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, Pending
from jobtui.model.ops import Op, Step
from jobtui.model.patterns import regex
from jobtui.model.secrets import mask_text
from jobtui.model.tables import text_of
from jobtui.render.columns import TimeLook
from jobtui.render.facts import job_facts
from jobtui.render.json_output import fields_of, time_or_null
from jobtui.render.memory import expected_record, memory_lines, seen_record
from jobtui.render.runs import RUN_COLUMNS
from jobtui.render.spans import Paragraph
from jobtui.render.styles import CONCERN_STYLES
from jobtui.render.table import paint
from jobtui.render.text import NONE, clock_time, date_time, fit, gist, show, telling
from jobtui.render.text import width as cells_of

if TYPE_CHECKING:
    from jobtui.analysis.explain.case import Evidence

INDENT = "  "
MOST_RUNS = 3
"""Earlier runs that are named."""


def verdict_lines(verdict: verdicts.Verdict, now: Nanos, most: int | None) -> Iterator[str]:
    """A verdict as a person reads it: the sentence, what it rests on, what is not known, what to type.

    Raw lines are cut to `most` cells where that is given.
    """
    for part in why_parts(verdict, now, most):
        text = part.text if part.whole or most is None else telling(part.text, most)
        yield paint(text, part.style)


BRIEF_CHARACTERS = 1_500
"""How long a verdict in brief is at most, with its line ends."""
BRIEF_LINE = 280


def brief_lines(job: Job, verdict: verdicts.Verdict) -> list[str]:
    """A verdict for a ticket or a chat: the most telling of cause, evidence, what is not known, and next."""
    at = job.ended_at or job.started_at or job.queued_at
    evidence = [f"evidence: {_fact_line(one, at)}" for one in verdict.evidence] or ["evidence: none was read"]
    unknown = [f"not known: {show(spot)}" for spot in (*verdict.doubts, *verdict.blind_spots)]
    steps = [f"next: {_step_words(step)}" for step in verdict.next] or ["next: nothing to do"]
    since = f" since {date_time(at, local=False)}Z" if at is not None else ""
    head = f"{show(job.id)}: {show(job.status.value)}{since}"
    cause = f"cause: {verdict.code.value}, {sureness(verdict)}: {show(verdict.sentence)}"
    sections = ([head], [cause], evidence, unknown, steps)
    lines = {
        (nth, section): telling(line, BRIEF_LINE)[:BRIEF_LINE]
        for section, found in enumerate(sections)
        for nth, line in enumerate(found)
    }
    more = f"more: jobtui explain {show(job.id)}"[:BRIEF_LINE]
    left, kept = BRIEF_CHARACTERS - len(more) - 1, []
    for key in sorted(lines):
        if len(lines[key]) < left:
            kept.append(key)
            left -= len(lines[key]) + 1
    shown = [lines[key] for key in sorted(kept, key=lambda key: key[::-1])]
    return shown if len(kept) == len(lines) else [*shown, more]


def _step_words(step: verdicts.NextStep) -> str:
    """Why, and the command; a command that would be cut is left out."""
    words = f"{show(step.why)}: {show(step.command)}"
    return words if len(words) <= BRIEF_LINE - len("next: ") else show(step.why)


def sureness(verdict: verdicts.Verdict) -> str:
    return f"{100 * verdict.confidence:.0f} % sure"


def step_line(verdict: verdicts.Verdict, now: Nanos) -> str:
    """Its place in the flow: the last step, the missing one, and how long that usually takes."""
    parts = []
    if verdict.last_step is not None:
        at = f" at {clock_time(verdict.last_at, now)}" if verdict.last_at is not None else ""
        parts.append(f"last step: {show(verdict.last_step)}{at}")
    if verdict.missing_step is not None:
        since, waited_s = "missing", verdict.waited_s
        if waited_s is not None:
            late_s = waited_s - verdict.limit_s if verdict.limit_s is not None else 0.0
            since = f"{age(late_s)} overdue" if late_s > 0 else f"not seen for {age(waited_s)}"
        parts.append(f"{since}: {show(verdict.missing_step)}")
    if verdict.usual is not None:
        parts.append(usual_words(verdict.usual))
    return "; ".join(parts)


def history_line(verdict: verdicts.Verdict) -> str:
    """The earlier runs: "as run 2 did; run 1 was good (2026-11-20 20:34:31Z); first difference: x"."""
    if (history := verdict.history) is None:
        return ""
    alike = ", ".join(map(str, history.as_runs[-MOST_RUNS:]))
    at = f" ({date_time(history.good_at, local=False)}Z)" if history.good_at is not None else ""
    good = f"run {history.good_run} was good{at}" if history.good_run is not None else ""
    if history.good_job is not None:
        good = f"job {show(history.good_job)} of the same user was good{at}"
    differs = f"first difference: {show(', '.join(history.differs))}" if history.differs else ""
    return "; ".join(filter(None, (f"as run {alike} did" if alike else "", good, differs)))


def evidence_head(evidence: verdicts.Fact, now: Nanos, most: int | None) -> str:
    """When, which step of the flow, and where it is written; in `most` cells if possible."""
    what = f"{clock_time(evidence.at, now):8}  {show(evidence.what)}  "
    return f"{what}{_end_of(show(_where(evidence)), None if most is None else most - cells_of(what))}"


def _end_of(path: str, most: int | None) -> str:
    """A path that fits: its first directories are left out, its file name never is."""
    kept = path
    while most is not None and cells_of(kept) > most and "/" in (rest := kept.removeprefix("…/").strip("/")):
        kept = f"…/{rest.partition('/')[2].lstrip('/')}"
    return kept


def _contradiction_lines(found: Sequence[verdicts.Contradiction], now: Nanos) -> Iterator[str]:
    if found:
        yield from ("", "sources disagree")
    for one in found:
        yield f"{INDENT}{show(one.about)}"
        yield from (f"{INDENT * 2}{_fact_line(fact, now)}" for fact in (one.one, one.other))


def _fact_line(fact: verdicts.Fact, now: Nanos | None) -> str:
    return f"{clock_time(fact.at, now):8}  {show(fact.text)}  {show(_where(fact))}"


def _where(fact: verdicts.Fact | Step) -> str:
    return f"{fact.source}:{fact.line}" if fact.line > 0 else fact.source


def contradiction_record(one: verdicts.Contradiction) -> dict[str, object]:
    facts = [fields_of(fact, "text source at line") for fact in (one.one, one.other)]
    return {"about": one.about, "facts": facts}


def _chain_lines(chain: verdicts.Chain) -> Iterator[str]:
    if not chain.waits:
        return
    yield from ("", "waits for (inferred)")
    for depth, wait in enumerate(chain.waits, start=1):
        yield f"{INDENT * depth}{_wait_line(wait)}"
        for holder in wait.holders:
            yield f"{INDENT * (depth + 1)}{_holder_line(holder)}"
    if chain.cycle:
        names = " -> ".join(show(f"{op.name} {op.op}") for op in (*chain.cycle, chain.cycle[0]))
        yield f"{INDENT}they wait for each other: {names}"
    if chain.range_s is not None:
        low, high = chain.range_s
        yield f"{INDENT}it may get it within {duration(low)} to {duration(high)}"


def _wait_line(wait: verdicts.OpWait) -> str:
    since = f" for {age(wait.waited_s)}" if wait.waited_s is not None else ""
    ahead = f", {wait.ahead} ahead of it" if wait.ahead else ""
    holders = "" if wait.holders else ", holder not seen"
    return f"{show(f'{wait.op.name} {wait.op.op}')} waits for {wait.slot.value}{since}{ahead}{holders}"


def _holder_line(holder: verdicts.Holder) -> str:
    op = holder.op
    parts = [f"held by {show(f'{op.name} {op.op}')} of {show(op.jid or op.uid or 'an unknown user')}"]
    if holder.held_s is not None:
        limit = f" of {age(holder.limit_s)}" if holder.limit_s is not None else ""
        parts.append(f"for {age(holder.held_s)}{limit}")
    if holder.cancel_s is not None:
        confirmed = "confirmed" if holder.is_confirmed else "not confirmed"
        parts.append(f"cancel requested {age(holder.cancel_s)} ago, {confirmed}")
    return ", ".join(parts)


def verdict_record(verdict: verdicts.Verdict) -> dict[str, object]:
    return {
        **fields_of(verdict, "verdict=code sentence confidence concern"),
        **fields_of(verdict, "last_step last_at missing_step waited_s limit_s"),
        "usual": verdict.usual and verdict.usual._asdict(),
        "cause": verdict.cause and fields_of(verdict.cause, "text source line family confidence why"),
        "history": verdict.history and verdict.history._asdict() | fields_of(verdict.history, "good_at"),
        "seen_before": seen_record(verdict.remembered.seen if verdict.remembered else None),
        "expected": expected_record(verdict.remembered),
        "evidence": [fields_of(one, "what text at source line cursor") for one in verdict.evidence],
        "next": [fields_of(step, "why") | {"command": str(mask_text(step.command))} for step in verdict.next],
        **fields_of(verdict, "blind_spots rests_on doubts"),
        "pending": verdict.pending and pending_record(verdict.pending),
    }


def pending_record(pending: Pending) -> dict[str, object]:
    return {
        **fields_of(pending, "category reason words since queue ahead of"),
        "next": [fields_of(held, _HELD) for held in pending.next],
        "nodes": pending.nodes
        and fields_of(pending.nodes, _TALLY) | {"reasons": _pairs(pending.nodes.reasons)},
        "limit": pending.limit and fields_of(pending.limit, "of name what most used"),
        "holders": [fields_of(held, _HELD) for held in pending.holders],
        "holder_count": pending.holder_count,
        "needs": _pairs(pending.needs),
        **fields_of(pending, "note? eligible_at scheduler_estimate is_stuck"),
        "history": [{"at": time_or_null(at), "reason": mask_text(reason)} for at, reason in pending.history],
        **fields_of(pending, "asked unread?"),
    }


_HELD = "job user has held_s limit_s usual_s"
_OP = "op=op.op name=op.name job=op.jid uid=op.uid"
_HOLDER = f"{_OP} held_s limit_s cancel_asked_s=cancel_s cancel_confirmed=is_confirmed"
_TALLY = "total wanted up down drained reserved no_feature no_gres too_small full free"


def _pairs(pairs: Iterable[tuple[str, str]]) -> list[dict[str, object]]:
    return [{"what": mask_text(what), "how": mask_text(how)} for what, how in pairs]


def chain_record(chain: verdicts.Chain) -> dict[str, object]:
    """A chain of waits as a JSON document; `inferred` says that holders are."""
    return {
        "inferred": True,
        "links": [
            fields_of(wait, f"{_OP} slot waited_s ahead")
            | {"holders": [fields_of(one, _HOLDER) for one in wait.holders]}
            for wait in chain.waits
        ],
        "cycle": [op.op for op in chain.cycle],
        "range_s": None if chain.range_s is None else list(chain.range_s),
    }


KeysOf = Callable[[Sequence[str]], str]
"""Gives what is pressed instead of a command, "" where there are no such keys."""
SUMMARY_ROWS = 3
"""The rows needed for the id, the verdict and the next step; with fewer only the verdict is shown."""


def brief_sentence(verdict: verdicts.Verdict, cells: int) -> str:
    """The sentence; of a failure its reason at least, without its place, if there is no room for all."""
    sentence = show(verdict.claim)
    head, _, why = sentence.partition(": ")
    if cells_of(sentence) <= cells or not why or verdict.concern is not verdicts.Concern.FAILED:
        return sentence
    words = why if len(why) > cells // 3 else f"{fit(head, cells - cells_of(why) - 2)}: {why}"
    has_place = verdict.cause is not None and words.endswith(").")
    return words.rpartition(" (")[0] if has_place and cells_of(words) > cells else words


def summary_parts(
    job_id: JobId, verdict: verdicts.Verdict | None, now: Nanos, keys: KeysOf, cells: int, rows: int
) -> Iterator[Paragraph]:
    """The same for a number of rows, the most telling first. Without a verdict only the job is named."""
    if verdict is None:
        yield Paragraph(show(job_id), "strong", whole=False)
        return
    style, has_room = CONCERN_STYLES[verdict.concern], rows > SUMMARY_ROWS
    if rows >= SUMMARY_ROWS:
        head = f"{show(job_id)}  {verdict.code.value}  {sureness(verdict)}"
        yield Paragraph(head, style or "strong", whole=False)
        style = ""
    words = show(verdict.sentence) if has_room else gist(brief_sentence(verdict, cells), cells)
    if rows < SUMMARY_ROWS:
        sure = f"  {sureness(verdict)}"
        brief = gist(brief_sentence(verdict, cells - len(sure)), cells - len(sure))
        words = f"{brief}{sure}" if cells_of(brief + sure) <= cells else fit(words, cells)
    yield Paragraph(words, style, whole=has_room)
    yield from _first_step(verdict, keys, whole=has_room)
    yield from map(Paragraph, memory_lines(verdict.remembered))
    for one in verdict.evidence:
        if one.above or one.text not in verdict.sentence:
            yield from _fact_parts(one, now, 0, "")
    unsaid = (spot for spot in verdict.blind_spots if spot not in verdict.doubts)
    yield from (Paragraph(f"not known  {show(spot)}", "dim") for spot in unsaid)


def _first_step(verdict: verdicts.Verdict, keys: KeysOf, *, whole: bool) -> Iterator[Paragraph]:
    for step in verdict.next[:1]:
        words = keys(step.command.words) or show(step.command)
        yield Paragraph(f"next  {show(step.why)}: {words}", "accent", whole=whole)


def why_parts(
    verdict: verdicts.Verdict, now: Nanos, most: int | None = 0, keys: KeysOf | None = None
) -> Iterator[Paragraph]:
    """All that is known of why a job is in its state; places in `most` cells if possible.

    `keys` stand before commands; with them the first step follows the sentence, as more may be out of sight.
    """
    yield Paragraph(f"{verdict.code.value}  {sureness(verdict)}", CONCERN_STYLES[verdict.concern])
    yield Paragraph(show(verdict.sentence))
    if keys is not None:
        yield from _first_step(verdict, keys, whole=True)
    yield from map(Paragraph, memory_lines(verdict.remembered))
    cause, lines = verdict.cause, (history_line(verdict), step_line(verdict, now))
    if cause is not None and cause.weighed > 1:
        yield Paragraph(f"chosen from {cause.weighed} lines: {show(cause.why)}", "dim")
    yield from (Paragraph(line, "dim") for line in lines if line)
    if verdict.evidence:
        yield from _why_head("evidence")
    for one in verdict.evidence:
        yield from _fact_parts(one, now, most and most - len(INDENT), INDENT)
    for line in (*_contradiction_lines(verdict.contradictions, now), *_chain_lines(verdict.waits)):
        yield Paragraph(line, "" if line.startswith(INDENT) else "heading")
    if verdict.blind_spots:
        yield from _why_head("not known")
        yield from (Paragraph(f"{INDENT}{show(spot)}") for spot in verdict.blind_spots)
    if verdict.next:
        yield from _why_head("next")
    for step in verdict.next:
        yield Paragraph(f"{INDENT}{show(step.why)}:", "dim", item=step)
        pressed = keys(step.command.words) if keys is not None else ""
        words = f"{pressed}  or  {show(step.command)}" if pressed else show(step.command)
        yield Paragraph(f"{INDENT * 2}{words}", "accent", item=step, whole=not pressed)


def _fact_parts(one: verdicts.Fact, now: Nanos, most: int | None, indent: str) -> Iterator[Paragraph]:
    yield Paragraph(f"{indent}{evidence_head(one, now, most)}", "dim", item=one, whole=False)
    for text, style in (*((line, "dim") for line in one.above), (one.text, "")):
        yield Paragraph(f"{indent}{INDENT}{show(text)}", style, item=one, whole=False)


def _why_head(title: str) -> Iterator[Paragraph]:
    yield Paragraph()
    yield Paragraph(title, "heading")


LONGEST = 200
"""How many characters of a log line are quoted."""
_TICKS = regex("`+")


def post_mortem_lines(job: Job, verdict: verdicts.Verdict, of: "Evidence") -> Iterator[str]:
    """What happened to a job, in Markdown: what its record, its logs and its verdict say."""
    yield f"# {_plain(job.id)}: {_plain(job.status.value)}"
    yield ""
    yield f"**{_plain(verdict.sentence)}**"
    yield ""
    yield f"As known at {to_rfc3339(of.now)}."
    facts = ((name, code(text[:LONGEST])) for name, text in job_facts(job, of.now))
    yield from _markdown_section("The job", _markdown_table(("", ""), facts))
    runs, look = of.detail.runs if of.detail is not None else (), TimeLook(of.now)
    cells = ([_plain(one.cell(run, look)) for one in RUN_COLUMNS] for run in runs)
    yield from _markdown_section("Runs", _markdown_table([one.header for one in RUN_COLUMNS], cells))
    yield from _markdown_section("What happened", _timeline(of.ops))
    parts = why_parts(verdict, of.now, LONGEST)  # a block, in which nothing has a meaning in Markdown
    shown = (part.text if part.whole else telling(part.text, LONGEST) for part in parts)
    yield from _markdown_section("Why", (f"    {text}" for text in shown))
    heads = ("source", "state", "read at", "records", "left out")
    yield from _markdown_section("What was read", _markdown_table(heads, _read(of.sources)))


def page_of(title: str, lines: Iterable[str]) -> str:
    """Markdown as an HTML page that loads nothing and runs nothing."""
    from html import escape  # few ask for a page

    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image", "autolink"])
    policy, title = "default-src 'none'; style-src 'unsafe-inline'", escape(show(title))
    style = text_of("jobtui.render", "post_mortem.css")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>\n{style}</style></head>\n'
        f"<body>\n{parser.render(chr(10).join(lines))}</body></html>\n"
    )


def code(text: str) -> str:
    """Outside text as code in Markdown, whatever it holds; `|` is escaped for tables."""
    shown = show(text)
    longest = max((len(run) for run in _TICKS.findall(shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}".replace("|", "\\|") if shown else NONE


def _plain(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>#|~])", r"\\\1", show(text))


def _markdown_section(title: str, lines: Iterator[str]) -> Iterator[str]:
    first = next(lines, None)
    if first is not None:
        yield from ("", f"## {title}", "", first)
        yield from lines


def _markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    filled = list(rows)
    if filled:
        yield f"| {' | '.join(heads)} |"
        yield f"|{'---|' * len(heads)}"
        yield from (f"| {' | '.join(row)} |" for row in filled)


def _time(at: Nanos | None) -> str:
    return NONE if at is None else to_rfc3339(at)


def _timeline(ops: Sequence[Op]) -> Iterator[str]:
    steps = sorted(
        ((step, op) for op in ops for step in op.steps if step.at is not None),
        key=lambda pair: (pair[0].at or 0, pair[0].source, pair[0].offset),
    )
    rows = [
        (
            _time(step.at),
            code(f"{op.name} {op.op}"),
            _plain(step.component),
            code(step.step),
            code(_where(step)),
        )
        for step, op in steps
    ]
    return _markdown_table(("time", "op", "who", "step", "line"), rows)


def _read(sources: Iterable[SourceHealth]) -> Iterator[tuple[str, ...]]:
    for source in sources:
        note = source.error or source.note or NONE
        yield (
            code(source.name), _plain(source.state.value), _time(source.read_at), f"{source.records:,}",
            _plain(note) if not source.skipped else f"{source.skipped:,} skipped; {_plain(note)}",
        )  # fmt: skip
