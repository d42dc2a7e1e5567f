"""The actions on time: how times are written, holding everything still, going through a recording."""

from textual import work

from jobtui.render.text import Zone
from jobtui.screens.along import AlongApp
from jobtui.screens.base import Board, LiveScreen
from jobtui.screens.places import Places

PLAY_TICK_S = 0.25
"""How often recorded time goes on while it is played."""
NO_REPLAY = "only a recording has other times: jobtui replay FILE"


class TimedApp(AlongApp):
    """An app whose screens show one time, that of the board."""

    _board: Board
    _places: Places

    def action_times(self) -> None:
        """Ages or times of day, on every screen."""
        self._board.absolute = not self._board.absolute
        self.show_all_again()

    def action_zone(self) -> None:
        """Times in UTC or in the zone of this machine, on every screen."""
        self.action_set_zone(not Zone.is_local)

    def action_set_zone(self, local: bool) -> None:
        """Write times so."""
        Zone.is_local = local
        self.show_all_again()

    def show_all_again(self) -> None:
        """Draw the screen anew."""
        if isinstance(self.screen, LiveScreen):
            self.screen.show_pause()
            self.screen.show_all()
            self.screen.tick()

    def action_pause(self) -> None:
        """Let everything on every screen stay as it is, or go on."""
        if self._board.player is not None:
            self._board.player.play()
            self.show_all_again()
            return
        if self._board.paused_at is None:
            for screen in self._places.screens():
                screen.pause_begins()
            self._board.pause()
            if isinstance(self.screen, LiveScreen):
                self.screen.show_pause()
            return
        self._board.resume()
        for screen in self._places.screens():
            screen.pause_ended()

    @work(group="replay")
    async def action_step(self, seconds: float) -> None:
        """Go through a recording, on every screen."""
        if self._board.player is None:
            self.notify(NO_REPLAY, severity="warning")
            return
        from jobtui.screens.replaying import step

        await step(self._board.player, seconds)
        self.show_all_again()

    @work(group="replay")
    async def action_change(self, forward: bool) -> None:
        """Go to what happened next in a recording, or before."""
        if self._board.player is None:
            self.notify(NO_REPLAY, severity="warning")
            return
        await self._board.player.go_to_change(forward=forward)
        self.show_all_again()

    def play(self) -> None:
        """Let recorded time go on by a tick."""
        if (player := self._board.player) is not None and player.speed:
            player.tick(PLAY_TICK_S)
            self.show_all_again()
