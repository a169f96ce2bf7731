"""The place of an owner: an actor below a session that keeps something for the session's tools, a connection say.

It is begun again whenever it ends, with growing delays and for as long as the session is there: what it keeps may be back
tomorrow. It reads no mail. The session is not ready before its owners are.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from actors._actor import Actor
from actors._errors import NotPermitted
from actors._exit import Exit, Finished
from actors._life import Life
from actors._receive import ActorMailbox

from ._place import Place
from ._spec import Backoff, ChildSpec

Hold = Callable[[Callable[[], None]], Awaitable[None]]
PATIENCE = 90  # seconds until it has to be ready: a server may have to be downloaded first
BACKOFF = Backoff(first=0.5, maximum=60, max_attempts=1_000_000)
_NO_MAIL = ActorMailbox("owner")  # one box stands for all


class OwnerPlace(Place):
    """A permanent child of a session. `hold` says that it is ready, and ends when what it keeps is lost."""

    __slots__ = ("hold",)

    direct = False

    def __init__(self, session: Place, name: str, hold: Hold) -> None:
        spec = ChildSpec(Actor, name=name, restart="permanent", shutdown=10, init_timeout=PATIENCE, backoff=BACKOFF)
        super().__init__(session.runtime, f"{session.address}/{name}", spec, session, session.context, _NO_MAIL)
        self.hold = hold
        self.limits = session.limits

    async def body(self, lives: Any, life: Life) -> Exit:
        """Hold it."""
        await self.hold(partial(lives.on_ready, life))
        return Finished()

    def refusal(self) -> Exception | None:
        """An owner reads no mail."""
        return NotPermitted(f"{self.address} belongs to its session and reads no mail; write to the session")
