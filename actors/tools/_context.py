"""What a tool can ask of the call that runs it."""

from collections.abc import Callable
from typing import Any

from attrs import field, frozen

from ._value import to_value


@frozen
class ToolContext:
    """The call that runs a tool: annotate a parameter with this class, and it is given; the model does not see it.

    `call` is the call's id, `tool` the tool's name, `session` the agent's address, `owner` the person it works for.
    `idempotency_key` is the same each time this very call is started: hand it to services that must not do a thing twice.
    """

    call: str
    tool: str
    session: str
    owner: str | None
    idempotency_key: str
    _progress: Callable[[Any], None] = field(eq=False, repr=False)

    def progress(self, payload: Any) -> None:
        """Note how far the call is, for whoever looks at it. Returns at once; from the tool's task, its thread, its asyncio loop.

        The last 50 notes of a call are kept. They are read, not mailed, and wake nobody. As events the first is shown at once,
        then the newest at most every 100 ms, and a last one before the call's end.

        Raises:
            CodecError: The payload has no JSON; nothing was noted.
        """
        self._progress(to_value(payload))
