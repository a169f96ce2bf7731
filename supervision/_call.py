"""The place of a tool call: a temporary child of its session, with an address and a voice."""

from collections.abc import Awaitable, Callable
from typing import Any

from actors._envelope import FromToolCall
from actors._errors import NotPermitted
from actors._exit import Exit, Finished, Status
from actors._life import Life
from actors._receive import ActorMailbox

from ._place import Place
from ._spec import ChildSpec

_NO_MAIL = ActorMailbox("call")  # calls accept none; one box stands for all
_CALL_SPEC = ChildSpec(lambda: None, name="call", restart="temporary", init_timeout=float("inf"))  # type: ignore[arg-type]


class CallPlace(Place):
    """A tool call in the tree: `run` is its task."""

    __slots__ = ("hops", "name", "run")

    kind = "call"
    direct = False

    def __init__(self, session: Place, call: str, run: Callable[[Life], Awaitable[None]], hops: int) -> None:
        super().__init__(session.runtime, f"{session.address}/{call}", _CALL_SPEC, session, session.context, _NO_MAIL)
        self.sender = FromToolCall(session.address, call)
        self.name = call
        self.run = run
        self.hops = hops
        self.limits = session.limits

    def standing(self) -> Status:
        """A call runs from the start."""
        return Status.RUNNING if self.status is Status.IDLE else self.status

    async def body(self, lives: Any, life: Life) -> Exit:
        """Run the tool."""
        lives.on_ready(life)
        life.hops = self.hops
        await self.run(life)
        return Finished()

    def refusal(self) -> Exception | None:
        """A call reads no mail."""
        return NotPermitted(f"{self.address} is a tool call and reads no mail; write to its session")
