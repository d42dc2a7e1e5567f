"""The smallest useful Textual program: what the time to a first paint is compared with."""

from textual.app import App, ComposeResult
from textual.widgets import Footer, Header, Static

READY = "minimal-program-ready"


class MinimalApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Header()
        yield Static(READY)
        yield Footer()


if __name__ == "__main__":
    MinimalApp().run()
