"""The device flow of a Balsam server, as strict as the real one: `fixtures/balsam/auth_device_flow.json`.

What is asked wrongly is refused as that one does, with its words; `slow_down` is what RFC 8628 adds for who
asks too often.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import httpx

Record = dict[str, Any]
GRANT = "urn:ietf:params:oauth:grant-type:device_code"
FORM = "application/x-www-form-urlencoded"
INTERVAL_S, EXPIRES_S = 3.0, 300.0
PAGE = "http://127.0.0.1:28001/auth/oauth/ALCF/login/device"
USER_CODE = "CPCB-TSTJ"
NO_UUID = {"loc": ["body", "client_id"], "msg": "value is not a valid uuid", "type": "type_error.uuid"}


class DeviceLogin:
    """One attempt at a time. What a person does in the browser is `approve` and `deny`.

    `clock` gives seconds; `asked_at` are the times at which it was asked whether it was approved.
    """

    def __init__(self, token: str, clock: Callable[[], float] = lambda: 0.0) -> None:
        self.clock = clock
        self.interval_s = INTERVAL_S
        self.expiration = "2026-11-22T19:31:25.715129"
        self.asked_at: list[float] = []
        self.pending: list[tuple[int, Record]] = []
        """Answers given instead of its own, one after the other."""
        self._token = token
        self._attempts: dict[tuple[str, str], float] = {}
        self._answer: str | None = None

    def approve(self) -> None:
        self._answer = "approved"

    def deny(self) -> None:
        self._answer = "denied"

    def begin(self, request: httpx.Request) -> httpx.Response:
        form = _form(request)
        try:
            UUID(form["client_id"])
        except (KeyError, ValueError):
            return httpx.Response(422, json={"detail": [NO_UUID]})
        code = f"code of {form['client_id']}"
        self._attempts = {(code, form["client_id"]): self.clock()}
        return httpx.Response(
            200,
            json={
                "device_code": code,
                "user_code": USER_CODE,
                "verification_uri": PAGE,
                "verification_uri_complete": f"{PAGE}?user_code={USER_CODE}",
                "expires_in": EXPIRES_S,
                "interval": self.interval_s,
            },
        )

    def token(self, request: httpx.Request) -> httpx.Response:
        form, now = _form(request), self.clock()
        if form.get("grant_type") != GRANT:
            return _refused(400, "unsupported_grant_type")
        attempt = (form.get("device_code", ""), form.get("client_id", ""))
        if attempt not in self._attempts:
            return _refused(400, "invalid_client")
        is_early = bool(self.asked_at) and now - self.asked_at[-1] < self.interval_s
        self.asked_at.append(now)
        if self.pending:
            status, body = self.pending.pop(0)
            return httpx.Response(status, json=body)
        if now - self._attempts[attempt] > EXPIRES_S:
            return _refused(400, "expired_token")
        if is_early:
            return _refused(400, "slow_down")
        return self._decide(attempt)

    def _decide(self, attempt: tuple[str, str]) -> httpx.Response:
        match self._answer:
            case "approved":
                del self._attempts[attempt]  # a code is good for one login
                granted = {"access_token": self._token, "token_type": "bearer", "expiration": self.expiration}
                return httpx.Response(200, json=granted)
            case "denied":
                return _refused(403, "access_denied")
        return _refused(400, "authorization_pending")


def _form(request: httpx.Request) -> dict[str, str]:
    is_form = request.headers.get("content-type", "").partition(";")[0] == FORM
    return dict(httpx.QueryParams(request.content.decode())) if is_form else {}


def _refused(status: int, detail: str) -> httpx.Response:
    return httpx.Response(status, json={"detail": detail})
