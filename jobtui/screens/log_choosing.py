"""Which of the logs is on the screen: one after the other, all, or a set of them in one."""

from jobtui.render.log_line import Look
from jobtui.screens.log_base import LogScreen
from jobtui.screens.log_names import all_names, labels_of


class ChoosingLogScreen(LogScreen):
    """A log on a screen, and the way to the others. Streams of journals become known as they are read."""

    def say(self, words: str) -> None:
        """Tell something that needs no answer."""
        self.notify(words, timeout=2, markup=False)

    def tick(self) -> None:
        """Let the clock go on, and take in the names of streams that have come."""
        self._renew_names()
        super().tick()

    def action_next_log(self, steps: int) -> None:
        """Show the next log."""
        if len(self._names) > 1:
            self._is_picked = True
            self._choose((self._chosen + steps) % len(self._names))

    def action_log_set(self) -> None:
        """Choose which logs are shown in one."""
        known = [name for name in self._names if name is not None]
        if None not in self._names:
            self.say("there is one log only" if known else "no logs to read")
            return
        # Imported here, as the first paint does not need it
        from jobtui.screens.log_set import LogSetScreen

        labels = {name: self._labels[name] for name in known}
        self.app.push_screen(LogSetScreen(self.board, labels, self._set or known, self._show_set))

    def _renew_names(self) -> None:
        """Take in the names of streams that have come, and stay with the log that is shown."""
        names = all_names(self.board, self._extra)
        if names == self._names or (self._names and self._names[self._chosen] not in names):
            return
        shown = self._names[self._chosen] if self._names else None
        self._names, self._labels = names, labels_of(self.board, names)
        self._chosen = names.index(shown) if shown in names else 0
        if names and (self._reader is None or (None in names and not self._is_picked and shown is not None)):
            self._choose(0 if not self._is_picked else self._chosen)
        elif self._reader is not None and self._reader.name is None:
            self._view.set_look(Look(self._view.shows_heads, self._tags()))
        self._show_status()

    def _show_set(self, chosen: tuple[str, ...]) -> None:
        """Show these logs in one; one alone as it is."""
        self._is_picked = True
        if len(chosen) == 1 and chosen[0] in self._names:
            self._choose(self._names.index(chosen[0]))
            return
        known = tuple(name for name in self._names if name is not None)
        self._set = None if set(chosen) == set(known) else chosen
        if (reader := self._readers.pop(None, None)) is not None:
            reader.end_search()
            self.start("release", reader.log.aclose)
        self._choose(self._names.index(None))
