"""`report ID --markdown`: what happened to one job, as the beginning of a post-mortem."""

from jobtui.commands.exits import Exit
from jobtui.commands.explain import explained
from jobtui.commands.jobs import with_agent
from jobtui.commands.printing import print_lines
from jobtui.commands.reading import Reader
from jobtui.commands.resolve import resolve
from jobtui.render.post_mortem import PostMortem, post_mortem_lines


async def post_mortem(reader: Reader) -> Exit:
    """Print it."""
    found = await resolve(reader, reader.context.words[0])
    if found.job is None:
        return reader.settle(found.code)
    studied = await explained(reader, found)
    told = PostMortem(
        job=with_agent(reader, found.job),
        verdict=studied.verdict,
        contradictions=studied.contradictions,
        runs=found.detail.runs if found.detail is not None else (),
        ops=reader.session.store.correlation.ops_of(found.job.id),
        sources=reader.sources,
        now=reader.now,
    )
    print_lines(post_mortem_lines(told))
    return reader.settle(Exit.FINE)
