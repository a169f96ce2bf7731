"""For tests of your own actors: one that records, one that holds, and task orders that come back.

    async def test_the_greeter_tells_the_desk():
        desk = Probe()
        async with open_system() as system:
            greeter = await system.spawn(Greeter, await system.spawn(desk.actor))
            greeter.send_nowait(Guest("Ada"))
            assert (await desk.next()).body == Arrived("Ada")

None of it needs a test framework. Under pytest there are fixtures of the same names, with or without pytest-trio: `probe` and
`gate` are fresh ones for each test, `scheduled` is the function. Nothing here sleeps: it goes with trio's
virtual clocks (`autojump_clock`), on which a `timeout` costs no time.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import trio
from attrs import define, field

from ._actor import Actor
from ._dispatch import handle
from ._envelope import Envelope
from ._scheduled import Scheduled

__all__ = ["Gate", "Probe", "gate", "probe", "scheduled"]


@define(eq=False)
class Probe:
    """Stands in for an actor that the one under test writes to: it records every message, and answers each ask alike.

    Its factory is `probe.actor`: `await system.spawn(probe.actor)`. Restarted, or spawned under several addresses, it goes on
    recording into the same probe, in the order in which the messages were handled.

    Args:
        reply: What an ask gets, or a function (sync or async) that is called with the message and returns it. What that
            function raises counts as raised by the handler: `Reject` refuses, anything else crashes the actor. `NO_REPLY` lets
            the asker wait.

    Attributes:
        reply: As given; may be replaced between messages.
        messages: The bodies, in order, whether `next` returned them or not.
    """

    reply: Any = field(default=None, kw_only=True)
    messages: list[Any] = field(factory=list, init=False)
    _envelopes: list[Envelope] = field(factory=list, init=False, repr=False)
    _seen: int = field(default=0, init=False, repr=False)
    _readers: trio.lowlevel.ParkingLot = field(factory=trio.lowlevel.ParkingLot, init=False, repr=False)
    _lives: int = field(default=0, init=False, repr=False)

    def actor(self) -> Actor:
        """One life of the actor: the factory to spawn."""
        self._lives += 1
        return _Recorder(self._record)

    async def next(self, timeout: float = 1.0) -> Envelope:  # noqa: ASYNC109  # a value, not a scope
        """The next envelope that no `next` returned yet; waits for it at most `timeout` seconds.

        Cancelled, it took nothing. The envelope has what the message alone does not tell: `sender`, `id`, `hops`.

        Raises:
            TimeoutError: None came in time; the text tells what did come before.
        """
        await trio.lowlevel.checkpoint()
        with trio.move_on_after(timeout):
            while self._seen == len(self._envelopes):
                await self._readers.park()
        if self._seen == len(self._envelopes):
            raise TimeoutError(f"no further message came within {timeout:g} s; {self._so_far()}")
        self._seen += 1
        return self._envelopes[self._seen - 1]

    def _record(self, envelope: Envelope) -> Any:
        self.messages.append(envelope.body)
        self._envelopes.append(envelope)
        self._readers.unpark()
        return self.reply(envelope.body) if callable(self.reply) else self.reply

    def _so_far(self) -> str:
        if not self._envelopes:
            return "the probe received none" if self._lives else "its actor was never started: await system.spawn(probe.actor)"
        bodies = [repr(envelope.body) for envelope in self._envelopes]
        told = ", ".join(["...", *bodies[-10:]] if len(bodies) > 10 else bodies)
        return f"the probe received {len(bodies)} before, all taken by next(): {told}"


class _Recorder(Actor):
    def __init__(self, record: Callable[[Envelope], Any]) -> None:
        self._record = record

    @handle
    def take(self, _message: object) -> Any:
        return self._record(self.mail)


@define(eq=False, repr=False)
class Gate:
    """Stands in for an actor that takes its time, for as long as the test wants: each message is held until `open`.

    Its factory is `gate.actor`: `await system.spawn(gate.actor)`. It takes every message and answers None. A stop, a crash of the
    tree or a timeout meets it in the middle of its handler, which is what it is for.
    """

    _opened: trio.Event = field(factory=trio.Event, init=False)
    _held: int = field(default=0, init=False)
    _waiting: trio.lowlevel.ParkingLot = field(factory=trio.lowlevel.ParkingLot, init=False)

    def actor(self) -> Actor:
        """One life of the actor: the factory to spawn."""
        return _Holder(self._hold)

    async def entered(self) -> None:
        """Wait until a message is being handled; at once if one is."""
        if self._held:
            await trio.lowlevel.checkpoint()
        else:
            await self._waiting.park()

    def open(self) -> None:
        """Let the message in hand through, and from now on every other."""
        self._opened.set()

    async def _hold(self) -> None:
        self._held += 1
        self._waiting.unpark_all()
        try:
            await self._opened.wait()
        finally:
            self._held -= 1


class _Holder(Actor):
    def __init__(self, hold: Callable[[], Any]) -> None:
        self._hold = hold

    @handle
    async def take(self, _message: object) -> None:
        await self._hold()


def probe(*, reply: Any = None) -> Probe:
    """A new `Probe`."""
    return Probe(reply=reply)


def gate() -> Gate:
    """A new `Gate`."""
    return Gate()


def scheduled(seed: int) -> AbstractContextManager[None]:
    """Run tasks in an order drawn from `seed`, for the length of the block: one seed, one order; many seeds, many orders.

        @pytest.mark.parametrize("seed", range(50))
        def test_the_account_is_never_overdrawn(seed):
            with scheduled(seed):
                trio.run(two_withdrawals)

    The block goes around `trio.run`, or around `open_system` in a run that has begun. It steers every task of trio, not actors
    alone: the order of those that are ready, which of them come a step later than they could, how many messages an actor
    handles before others have their turn. trio promises none of these, so a test that fails under one seed found a bug. The
    exception that leaves the block has the seed as a note; the same seed replays it.

    It replays what trio's scheduler decides, and the jitter of every `Backoff` in a system opened inside the block. Threads, sockets, subprocesses, the wall clock and Python's `random` are
    not steered: use in-memory doubles and `autojump_clock`. Tasks that were ready before the block go in the order they had.

    With Hypothesis, draw the seed as an argument and open the block inside the test: `@given(seed=st.integers())`. Hypothesis
    resets trio's own random source for each example, so that without this all examples run in one order.

    It works on a private switch of trio's, for the whole process: one block at a time. The switch is put back when the
    block is left, however it is left.

    Raises:
        ConfigError: On entering: another block is open, or this release of trio cannot be steered; nothing was changed.
    """
    return Scheduled(seed)
