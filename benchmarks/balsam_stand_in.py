"""A Balsam server on loopback that can be told to fail, to hang, or to break off."""

from pathlib import Path

import httpx

from benchmarks.balsam import Server
from benchmarks.moody_server import MoodyServer, Question, Reply

JOBS = 20
"""Fewer than a page of the table, in which the rows of the other jobs are looked for page by page."""
LOGIN = """api_root: {url}
client_class: balsam.client.requests_password.BasicAuthRequestsClient
token: x
token_expiry: 2036-11-22 19:31:57.715415
"""


class BalsamStandIn(MoodyServer):
    """Serves some jobs and their events from the moment it is made until it is closed."""

    def __init__(self) -> None:
        self._rows = Server(JOBS)
        super().__init__(self._page)

    def write_login(self, home: Path) -> None:
        """A login for it where Balsam's client keeps it."""
        path = home / ".balsam" / "client.yml"
        path.parent.mkdir(mode=0o700, parents=True)
        path.write_text(LOGIN.format(url=self.url))
        path.chmod(0o600)

    def _page(self, question: Question) -> Reply:
        answer = self._rows.answer(httpx.Request(question.method, f"{self.url}{question.path}"))
        return Reply(answer.status_code, answer.content)
