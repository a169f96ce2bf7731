"""What a tool can ask of the call that runs it."""

import hmac
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any

from attrs import field, frozen

from ._value import to_value


def new_token() -> str:
    """One that nobody can guess."""
    return secrets.token_urlsafe(24)


def token_of(seal: str, call: str) -> str:
    """The token of a call, of its session's secret; a new one where there is none: sessions of before schema 3 have no seal."""
    if not seal:
        return new_token()
    return urlsafe_b64encode(hmac.digest(seal.encode(), call.encode(), "sha256")[:24]).decode()


@frozen
class ToolContext:
    """The call that runs a tool: annotate a parameter with this class, and it is given; the model does not see it.

    `call` is the call's id, `tool` the tool's name, `session` the agent's address, `owner` the person it works for.
    `idempotency_key` is the same each time this very call is started: hand it to services that must not do a thing twice.

    `continuation` is the token of this call, in case the tool returns `Outcome.deferred(reason)`: the call then ends without an
    outcome, and whoever has the token gives it one with `system.complete(token, outcome)`, once, from any process on the store, in a
    minute or in a month. Nobody can guess it, and it is the same each time this very call is started. It counts from the moment the
    tool's return is kept.
    """

    call: str
    tool: str
    session: str
    owner: str | None
    idempotency_key: str
    _progress: Callable[[Any], None] = field(eq=False, repr=False)
    continuation: str = field(factory=new_token, eq=False, repr=False)

    def progress(self, payload: Any) -> None:
        """Note how far the call is, for whoever looks at it. Returns at once; from the tool's task, its thread, its asyncio loop.

        The last 50 notes of a call are kept. They are read, not mailed, and wake nobody. As events the first is shown at once,
        then the newest at most every 100 ms, and a last one before the call's end.

        Raises:
            CodecError: The payload has no JSON; nothing was noted.
        """
        self._progress(to_value(payload))
