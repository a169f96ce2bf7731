"""What do fencing, limits and the waits-for graph cost an actor that writes and asks?

Both sides run in one process, in short slices by turns, on the same two actors. The clock starts once the interpreter has
learnt the swapped functions anew: it takes a few calls. `bare` swaps four functions for the same without their safety: no look at whether the sender's life is over or in which system it lives, no bound on hops and unread
mail, no `max_wait`, no edge in the graph of waits. Sender, order, deadlines, the check of the thread and the protection from
Ctrl-C are kept: they are what mail is.
"""

import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from attrs import frozen
from trio.lowlevel import enable_ki_protection, reschedule

from actors import Actor, ActorRef, handle
from actors._envelope import NORMAL, Envelope, Receipt, clock, mint
from actors._identity import current
from actors._life import Life
from actors._mailbox import Mailbox
from actors._reply import NO_REPLY, ReplyToken
from supervision import open_system

from ._cli import main
from ._measure import COST, Measured, Stopwatch
from ._ours import Count, send_in_bursts, total
from ._scenario import AtMost, Contestant, Scenario
from ._work import ADD

SLICES = 25
WARM = 50  # calls
Work = Callable[[ActorRef, int], Awaitable[None]]


# ------------------------------------------------------------------ the same without
@enable_ki_protection
def send_nowait(ref: Any, body: object, *, id: str | None = None, interrupt: bool = False) -> Receipt:
    box = ref._box
    identity = current.get()
    if box is None or box.closed or id is not None or interrupt or get_ident() != ref._thread:
        raise NotImplementedError
    receipt: Receipt = box.post(body, identity.sender, identity.hops)
    return receipt


@enable_ki_protection
async def ask(ref: Any, body: object, *, timeout: float | None = 5.0) -> Any:  # noqa: ASYNC109  # as the real one
    identity = current.get()
    runtime = ref._runtime if ref._runtime is not None else ref._system()
    if get_ident() != runtime.thread:
        raise NotImplementedError
    return await ref._asked(identity, body, timeout, runtime)


@enable_ki_protection
def post(box: Any, body: Any, sender: Any, hops: int = 0, token: Any = None) -> Receipt:
    seq = box._last + 1
    key = mint()
    envelope = Envelope(key, seq, sender, NORMAL, hops, clock(), None, body, token)
    box._log.append(envelope)
    box._last = seq
    reader = box._reader
    if reader is not None:
        box._reader = None
        reschedule(reader)
    if box._waiters:
        box._wake(envelope)
    if box.on_accept is not None:
        box.on_accept(envelope)
    return Receipt(key, seq, False, NORMAL)


@enable_ki_protection
def settle(life: Any, token: ReplyToken, value: Any) -> None:
    if value is NO_REPLY:
        life.defer(token)
        return
    if life.deferred:
        life.deferred.discard(token)
    if value is None and token.settled:
        return
    if not token.answer(value):
        life.runtime.late_replies += 1


SAFE: list[tuple[Any, str, Any]] = [
    (ActorRef, "send_nowait", send_nowait),
    (ActorRef, "ask", ask),
    (Mailbox, "post", post),
    (Life, "settle", settle),
]


@contextmanager
def bare() -> Iterator[None]:
    """Without, for the length of the block."""
    kept = [(owner, name, getattr(owner, name)) for owner, name, _ in SAFE]
    for owner, name, function in SAFE:
        setattr(owner, name, function)
    try:
        yield
    finally:
        for owner, name, function in kept:
            setattr(owner, name, function)


# ------------------------------------------------------------------ the work
@frozen
class Race:
    ref: ActorRef
    n: int
    work: Work
    safe: Stopwatch
    bare: Stopwatch


class Driver(Actor):
    """Does the work as an actor: host code is bound by none of it."""

    @handle
    async def race(self, race: Race) -> None:
        for _ in range(SLICES):
            await self._slice(race, race.safe)
            with bare():
                await self._slice(race, race.bare)

    async def _slice(self, race: Race, watch: Stopwatch) -> None:
        await race.work(race.ref, WARM)
        with watch:
            await race.work(race.ref, race.n // SLICES)


async def _telling(ref: ActorRef, n: int) -> None:
    await send_in_bursts(ref, n)
    await total(ref)


async def _asking(ref: ActorRef, n: int) -> None:
    for _ in range(n):
        await ref.ask(ADD)


async def _compared(n: int, work: Work) -> Measured:
    safe, without = Stopwatch(), Stopwatch()
    async with open_system() as system:
        ref, driver = await system.spawn(Count), await system.spawn(Driver)
        await driver.ask(Race(ref, n, work, safe, without), timeout=None)
        done = await total(ref)
    return Measured(
        done // 2 - SLICES * WARM, {COST: safe.cpu / n * 1e6, "bare": without.cpu / n * 1e6}, min(1.0, safe.cpu / safe.wall)
    )


async def tell(n: int) -> Measured:
    return await _compared(n, _telling)


async def ask_(n: int) -> Measured:
    return await _compared(n, _asking)


TELL, ASK = Contestant("tell", "tell", kind="ours"), Contestant("ask_", "ask", kind="ours", share=0.5)
SCENARIO = Scenario(
    name="safety",
    question="An actor that writes and asks, with and without fencing, limits and the graph of waits, in turns.",
    piece="message",
    n=20_000,
    quick=2_000,
    contestants=(TELL, ASK),
    budgets=(AtMost(1.05, of="tell, bare", row="tell"), AtMost(1.05, of="ask, bare", row="ask")),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
