"""What the `wait` tool waits for, and what ends it. Pure; it peeks at the turn's unread mail and consumes nothing.

    ended by     when
    interrupt    unread mail of that priority
    call         one of the calls it names is final; for `any_call`, any call's end is unread, or one that ran was deferred; for
                 `mail`, the end of a detached one, or the answer to a deferred one
    mail         any other unread mail, whatever it waits for
    timeout      its time is over

If several hold at once, the first in this order is told. What already holds ends it at once.
"""

from collections.abc import Sequence
from typing import Literal

from attrs import frozen

from actors._envelope import INTERRUPT, Control, Envelope, ended_call

from ._record import State


@frozen
class WaitFor:
    """A wait in progress. `status_of` is set for a status request that waits for completion: only that call ends it."""

    what: Literal["any_call", "mail"] | tuple[str, ...]
    since: float
    until: float
    status_of: str | None = None
    progress: bool = True
    ran: tuple[str, ...] = ()  # the calls that ran as it began


@frozen
class WokenBy:
    """What ended a wait, and for `call` which calls."""

    what: Literal["interrupt", "call", "mail", "timeout"]
    calls: tuple[str, ...] = ()


def _calls(wait: WaitFor, state: State, mail: Sequence[Envelope]) -> tuple[str, ...]:
    unread = tuple(call for envelope in mail if (call := ended_call(envelope)) is not None)
    if wait.what == "any_call":
        return (*unread, *(call for call in wait.ran if call in state.deferred))
    if wait.what == "mail":
        return tuple(call for call in unread if call in state.placeholders)
    return tuple(call for call in wait.what if call in unread or state.calls[call].final)


def woken(wait: WaitFor, state: State, mail: Sequence[Envelope], now: float) -> WokenBy | None:
    """What ends this wait, given the unread mail, or None."""
    if any(envelope.priority is INTERRUPT for envelope in mail):
        return WokenBy("interrupt")
    calls = _calls(wait, state, mail)
    if calls:
        return WokenBy("call", calls)
    if wait.status_of is None and any(ended_call(each) is None and not isinstance(each.body, Control) for each in mail):
        return WokenBy("mail")
    return WokenBy("timeout") if now >= wait.until else None
