"""The dashboard in a browser, through textual-serve: a page, and a dashboard for each that opens it.

`server` is what a browser talks to, `driver` the terminal of a dashboard that is shown there. Needs the extra
`serve`; nothing else imports this package.
"""

SMALLEST, LARGEST = (1, 1), (1_000, 500)
"""Columns and lines."""


def bounded(columns: int, lines: int) -> tuple[int, int]:
    return max(SMALLEST[0], min(columns, LARGEST[0])), max(SMALLEST[1], min(lines, LARGEST[1]))


DRIVER = "jobtui.web.driver:BrowserDriver"
"""The value of `TEXTUAL_DRIVER` for a served dashboard."""
SIZE = "TEXTUAL_BROWSER_SIZE"
"""The variable with the columns and lines at its start, as 80x24."""
