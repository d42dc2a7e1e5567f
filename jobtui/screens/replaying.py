"""Going through recorded time by key, on every screen at once."""

from jobtui.actions import key_of
from jobtui.analysis.moments import parse_moment
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.playing import Player
from jobtui.render.text import Zone, clock_time

PLAYS = "▶"
STANDS = "■"
CALLS = ("app.pause", "app.step(-60)", "app.step(60)", "app.change(False)", "app.change(True)")
"""The actions that its line names."""


def replay_words(player: Player) -> str:
    """Where it is, between where and where, and how it goes on; safe to show."""
    at, begin, end = (clock_time(at) for at in (player.at, player.begins_at, player.ends_at))
    place = f"{at}{Zone.mark()} of {begin} to {end}"
    state = f"{PLAYS} {player.speed}x" if player.speed else STANDS
    play, back, on, before, after = map(key_of, CALLS)
    return f"replay {state} {place} · {play} play  {back} {on} a minute  {before} {after} what happened"


async def step(player: Player, seconds: float) -> None:
    """Go on, or back, by so much."""
    await player.go(Nanos(player.at + round(seconds * SECOND)))


async def go_to(player: Player, text: str) -> str | None:
    """Go to a time that was typed, as 20:34, or 15m before where it is; what is wrong with it if anything."""
    moment = parse_moment(text.strip())
    if moment is None:
        return f"{text.strip()} is no time; such as 20:34, 2026-11-20T20:34:30Z, 15m"
    await player.go(moment.span(player.at).start)
    return None
