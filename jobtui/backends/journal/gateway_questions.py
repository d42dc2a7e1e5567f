"""What systemd-journal-gatewayd can be asked at once: a group of matches; one field given twice is either."""

from typing import NamedTuple

from jobtui.backends.journal import asking
from jobtui.backends.journal.gateway_http import Params
from jobtui.model.journal import Match, Matches

VALUES_ASKED = 100
"""Values of a field in one question: the server has 32 KiB for a request (libmicrohttpd's default)."""


class Question(NamedTuple):
    """What gatewayd can be asked at once. `filtered` where it gives more than was wanted."""

    params: Params
    wanted: Matches
    filtered: bool


def questions(wanted: Matches) -> tuple[Question, ...]:
    """What gatewayd has to be asked so that the answers together are what is wanted."""
    if not wanted:
        return (Question((), (), False),)
    shared = common(wanted)
    either: dict[str, list[str]] = {}
    several: list[Question] = []
    for group in wanted:
        rest = [match for match in group if match not in shared]
        exact = asking.is_exact((group,))
        if len(rest) == 1 and exact:
            either.setdefault(rest[0][0], []).append(rest[0][1])
        else:
            several.append(Question(tuple(dict(group).items()), (group,), not exact))
    singles = [
        Question((*shared, *((field, value) for value in values[at : at + VALUES_ASKED])), (), False)
        for field, values in either.items()
        for at in range(0, len(values), VALUES_ASKED)
    ]
    return (*singles, *several)


def common(wanted: Matches) -> list[Match]:
    """What every group of several wants, as of one host; its field occurs in none of them otherwise."""
    if len(wanted) < 2:
        return []
    fields = [field for group in wanted for field, _ in group]
    return [
        match
        for match in dict.fromkeys(wanted[0])
        if all(match in group for group in wanted) and fields.count(match[0]) == len(wanted)
    ]
