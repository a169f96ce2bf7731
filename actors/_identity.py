"""Who is acting: the identity that stamps what a task sends.

Identity is a context variable, set at the start of the task of each life and of each tool call, so every task and
every worker thread that descends from it speaks with its voice and no other: no argument of any send says who
sends. Four answers exist:

- the identity of a life or a call, with its generation: what it sends is stamped with it;
- the same after its generation was revoked: whatever it still sends is `Fenced`;
- no life, but a task that descends from the one that opened a system: host code, which speaks for the user;
- nothing at all (a raw thread, a system task, a callback): `system (thread)`, never a person.

An identity speaks in its own system only; in any other it is nothing at all. Whoever opens a system inside another
speaks for the user in the inner one and keeps its voice in the outer.
"""

from contextvars import ContextVar
from typing import Any

from ._envelope import FromSystem, FromUser, Priority, Sender
from ._errors import Fenced


class Identity:
    """One voice: whom it stamps as the sender, the hops its mail carries, and whether its life is over."""

    __slots__ = ("address", "box", "home", "hops", "max_wait", "outer", "revoked", "runtime", "sender")

    def __init__(self, address: str, sender: Sender, runtime: Any, hops: int = 0, outer: "Identity | None" = None) -> None:
        self.address = address
        self.sender = sender
        self.runtime = runtime  # the system it lives in; None for a thread that belongs to none
        self.home = runtime  # where it may speak: its system, and none once it was revoked
        self.hops = hops
        self.box: Any = None  # the mailbox of the actor that speaks, if it has one
        self.revoked = False
        self.outer = outer  # whose block this system was opened in
        self.max_wait: float | None = None  # seconds its waits may take; None for host code, for which nobody can wait in turn

    def revoke(self) -> None:
        """Its life is over: whatever it still does is `Fenced`."""
        self.revoked = True
        self.home = None

    def check(self) -> "Identity":
        """Itself, or `Fenced` if its generation was revoked."""
        if self.revoked:
            raise Fenced(address=self.address)
        return self

    def permit(self, priority: Priority) -> Priority:
        """The priority it may send with; `Fenced` if it was revoked while its message waited for room."""
        self.check()
        return priority

    def within(self, runtime: Any) -> "Identity":
        """Whose voice this is in that system. `Fenced` if it was revoked."""
        voice: Identity | None = self.check()
        while voice is not None and voice.runtime is not runtime:
            voice = voice.outer
        return STRANGER if voice is None else voice.check()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(address={self.address!r}, sender={self.sender!r}, revoked={self.revoked})"


STRANGER = Identity("thread", FromSystem("thread"), None)
current: ContextVar[Identity] = ContextVar("postroom_identity", default=STRANGER)


def host(runtime: Any, owner: str | None = None) -> Identity:
    """The identity of host code that speaks for a person."""
    return Identity("user", FromUser(owner), runtime, outer=current.get())
