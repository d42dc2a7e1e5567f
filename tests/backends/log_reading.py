"""Reading a log as a screen does: page by page both ways, and what a search finds."""

from jobtui.model.pages import Log, LogLine, LogSearch, Place, Query, query_of

END = 1 << 300
"""A place after the last line of any log."""


async def all_before(log: Log, most: int) -> list[LogLine]:
    page = await log.before(END, most)
    found = [*page.lines]
    while not page.at_edge:
        page = await log.before(page.lines[0].place, most)
        found[:0] = page.lines
    return found


async def all_after(log: Log, place: Place, most: int) -> list[LogLine]:
    page = await log.after(place, most)
    found = [*page.lines]
    while not page.at_edge:
        page = await log.after(page.lines[-1].end, most)
        found += page.lines
    return found


def asked(typed: str) -> Query:
    query = query_of(typed)
    assert query is not None
    return query


async def searched(log: Log, typed: str, around: Place = 0) -> LogSearch:
    await log.look()
    search = log.search(asked(typed), around)
    await search.run()
    search.cancel()
    return search


async def all_found(log: Log, search: LogSearch) -> list[str]:
    """The lines found, walked through forwards; the same backwards."""
    found, place = [], 0
    while (hit := search.hits.next_after(place)) is not None:
        line = (await log.after(hit, 1)).lines[0]
        found.append(line.text)
        place = line.end
    back, place = [], END
    while (hit := search.hits.last_before(place)) is not None:
        line = (await log.after(hit, 1)).lines[0]
        back.append(line.text)
        place = line.place
    assert back == found[::-1]
    return found


async def all_errors(log: Log, place: Place, *, forward: bool) -> list[str]:
    """The lines with errors from a place on, in the order in which they are gone through."""
    found = []
    while (at := await log.next_error(place, forward=forward)) is not None:
        found.append((await log.after(at, 1)).lines[0].text)
        place = at
    return found
