"""The actions that reach out of the dashboard: to the clipboard, to other programs, to the mouse."""

import os
from typing import Protocol, runtime_checkable

from textual.app import SuspendNotSupported

from jobtui.render.text import show
from jobtui.screens.base import LiveScreen, Taken
from jobtui.screens.typing_ahead import TypedApp


@runtime_checkable
class MouseDriver(Protocol):
    """A driver that can use the mouse; Textual has no public way to begin or end that later."""

    _mouse: bool

    def _enable_mouse_support(self) -> None: ...

    def _disable_mouse_support(self) -> None: ...


class AlongApp(TypedApp):
    """An app whose screens say what can be taken along."""

    async def action_copy(self) -> None:
        """Copy what was selected with the mouse, else what is under the cursor."""
        screen = self.screen
        if not isinstance(screen, LiveScreen):
            return
        if text := screen.selected_text():
            screen.copy(text)
            screen.forget_selected()
        else:
            await screen.run_action("copy")

    async def action_copy_block(self) -> None:
        """Copy all about what is under the cursor."""
        taken = await self._taken()
        if taken is not None and isinstance(self.screen, LiveScreen):
            if taken.block:
                self.screen.copy(taken.block)
            else:
                self.notify("nothing here to take along", severity="warning")

    async def action_copy_command(self) -> None:
        """Copy the command that shows the same outside."""
        taken = await self._taken()
        if taken is not None and isinstance(self.screen, LiveScreen):
            if taken.command:
                self.screen.copy(taken.command)
            else:
                self.notify("no command shows this", severity="warning")

    async def action_page(self) -> None:
        """Open the file at the line in the pager."""
        await self._open_outside("pager")

    async def action_edit(self) -> None:
        """Open the file at the line in the editor."""
        await self._open_outside("editor")

    async def _taken(self) -> Taken | None:
        taken = await self.screen.taken() if isinstance(self.screen, LiveScreen) else None
        if taken is None:
            self.notify("nothing here to take along", severity="warning")
        return taken

    async def _open_outside(self, what: str) -> None:
        # Imported here, as the first paint does not need it
        from jobtui.screens import outside

        taken = await self._taken()
        if taken is None:
            return
        try:
            if not taken.path:
                raise outside.NotStarted("there is no file behind this")
            outside.check(taken.path)
            make = outside.pager_call if what == "pager" else outside.editor_call
            call = make(os.environ, taken.path, taken.line)
            with self.suspend():
                outside.run(call, os.environ)
        except (outside.NotStarted, SuspendNotSupported) as error:
            self.notify(show(str(error)), severity="warning", markup=False)

    def action_mouse(self) -> None:
        """Take the mouse, or leave it to the terminal."""
        driver = self._driver
        if not isinstance(driver, MouseDriver):
            return
        if driver._mouse:
            driver._disable_mouse_support()
        driver._mouse = not driver._mouse
        if driver._mouse:
            driver._enable_mouse_support()
        self.notify("the mouse is used" if driver._mouse else "the mouse is the terminal's")
