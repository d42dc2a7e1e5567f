"""Why a request failed, in the words of the system: httpx has words of its own for it."""

import os
import socket
import ssl


def reason_of(error: BaseException) -> str:
    """What the system says of a failure, where it does; else the words of the error."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        if isinstance(cause, OSError) and cause.errno is not None and cause.strerror:
            own = isinstance(cause, ssl.SSLError | socket.gaierror)
            return cause.strerror if own else os.strerror(cause.errno)
        cause = cause.__cause__ or cause.__context__
    return str(error)
