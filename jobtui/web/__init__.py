"""The dashboard in a browser, through textual-serve: a page, and a dashboard for each that opens it.

`server` is what a browser talks to, `driver` the terminal of a dashboard that is shown there. Needs the extra
`serve`; nothing else imports what is in here.
"""

DRIVER = "jobtui.web.driver:BrowserDriver"
"""What a served dashboard has in `TEXTUAL_DRIVER`."""
SIZE = "TEXTUAL_BROWSER_SIZE"
"""The variable with the columns and lines it begins with, as 80x24."""
