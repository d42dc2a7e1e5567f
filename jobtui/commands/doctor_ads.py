"""What `doctor` says of expressions in job ads: how many there are, and what evaluates them."""

from collections import Counter
from collections.abc import Iterator

from jobtui.analysis.ad_inquiry import Answers, Asked, failure_of, inquiry_of, questions_in
from jobtui.commands.reading import Reader
from jobtui.model.ids import JobId
from jobtui.model.words import counted

MOST_JOBS = 100
"""Of one file; their ads are tried."""
WHYS_NAMED = 3


async def ad_remarks(source: str, reader: Reader) -> tuple[str, ...]:
    """What there is to say of the expressions in the job ads of a file; nothing where it has none."""
    session = reader.session
    inquiry = [
        asked
        for job in session.store.jobs_told_in(source)[:MOST_JOBS]
        for asked in inquiry_of(session.store.facts_of(JobId(job)), reader.now)
    ]
    if not inquiry:
        return ()
    answers = await session.ads.answers(questions_in(inquiry))
    found = counted(len(inquiry), "expression")
    if answers is None:
        return (f"{found} in job ads, shown as they are written: {session.ads.problem}",)
    whys = Counter(_whys(inquiry, answers))
    evaluated = f"{found} in job ads, {len(inquiry) - whys.total()} evaluated"
    by = f"by HTCondor's library {session.ads.version}"
    return (
        f"{evaluated} {by}",
        *(f"{count} not evaluated: {why}" for why, count in whys.most_common(WHYS_NAMED)),
    )


def _whys(inquiry: list[Asked], answers: Answers) -> Iterator[str]:
    for asked in inquiry:
        if failed := failure_of(asked, answers):
            yield f"{asked.name} {failed}"
