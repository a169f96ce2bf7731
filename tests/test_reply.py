"""Asks and their answers: each ends once, in time, and harms nobody."""

from contextlib import suppress
from typing import Any

import pytest
import trio
from attrs import frozen
from cast import Add, Boom, Crash, Refuse, Sleep, Worker
from trio.testing import MockClock

from actors import (
    NO_REPLY,
    Actor,
    ActorCrashed,
    ActorRef,
    ActorStopped,
    AskTimeout,
    Envelope,
    Rejected,
    Unhandled,
    handle,
)
from supervision import System, open_system


def late_replies(system: System) -> int:
    return system._root.late_replies


async def test_the_return_value_answers(autojump_clock: MockClock) -> None:
    """Sync or async, the handler's value is the reply."""
    async with open_system() as system:
        ref = await system.spawn(Worker)
        assert [await ref.ask(Add(number)) for number in (1, 2)] == [1, 3]
        assert await ref.ask(Sleep(1)) == "slept"


async def test_an_ask_that_is_not_answered_in_time_raises_a_timeout_error(autojump_clock: MockClock) -> None:
    """Five seconds unless said otherwise; the error says what may still happen."""
    async with open_system() as system:
        ref = await system.spawn(Worker, name="worker")
        with pytest.raises(TimeoutError, match="worker did not answer within 5 s; it may still handle"):
            await ref.ask(Sleep(9))
        assert trio.current_time() == 5


async def test_without_a_timeout_an_ask_takes_as_long_as_it_takes(autojump_clock: MockClock) -> None:
    """A host decides how patient it is."""
    async with open_system() as system:
        ref = await system.spawn(Worker)
        assert await ref.ask(Sleep(10_000), timeout=None) == "slept"


async def test_a_late_reply_is_dropped_and_counted(autojump_clock: MockClock) -> None:
    """It neither reaches the next ask nor harms the actor."""
    async with open_system() as system:
        ref = await system.spawn(Worker)
        with pytest.raises(AskTimeout):
            await ref.ask(Sleep(2), timeout=1)
        assert await ref.ask(Add(1)) == 1
        assert late_replies(system) == 1


async def test_an_ask_that_nobody_waits_for_is_skipped(autojump_clock: MockClock) -> None:
    """Timed out or cancelled: an answer that nobody reads is not worked for."""
    seen: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Worker, seen)
        ref.send_nowait(Sleep(9))
        with pytest.raises(AskTimeout):
            await ref.ask(1, timeout=1)
        with trio.move_on_after(1):
            await ref.ask(2)
        await ref.ask(Add(3), timeout=None)
        assert seen == ["sleep 9"]


async def test_a_handler_can_see_that_its_asker_is_gone(autojump_clock: MockClock) -> None:
    """Long work can stop when nobody wants it any more; a tell has no asker to lose."""
    seen: list[bool] = []

    class Patient(Actor):
        @handle
        async def work(self, message: Sleep) -> None:
            seen.append(self.mail.asker_gone)
            await trio.sleep(message.seconds)
            seen.append(self.mail.asker_gone)

    async with open_system() as system:
        ref = await system.spawn(Patient)
        with pytest.raises(AskTimeout):
            await ref.ask(Sleep(2), timeout=1)
        ref.send_nowait(Sleep(1))
        await system.wait_idle()
        assert seen == [False, True, False, False]


async def test_the_asker_hears_of_a_crash_at_once_with_its_causes(autojump_clock: MockClock) -> None:
    """Text enough to act on, also for a model; nobody waits out a timeout for a dead actor."""

    class Nested(Actor):
        @handle
        def work(self, message: str) -> None:
            try:
                int(message)
            except ValueError as error:
                raise Boom("no number") from error

    async with open_system() as system:
        ref = await system.spawn(Nested, name="nested")
        with pytest.raises(
            ActorCrashed, match=r"nested crashed: Boom: no number <- ValueError: invalid literal.*'x'"
        ) as caught:
            await ref.ask("x")
        assert trio.current_time() == 0
        assert (caught.value.address, type(caught.value.error)) == ("nested", Boom)


async def test_each_asker_gets_an_error_of_its_own(autojump_clock: MockClock) -> None:
    """Two tasks that raise one exception object would write into each other's traceback."""
    errors: list[ActorCrashed] = []

    class Keeper(Worker):
        @handle
        def keep(self, message: bytes) -> object:
            return NO_REPLY

    async def ask(message: object) -> None:
        with pytest.raises(ActorCrashed) as caught:
            await ref.ask(message)
        errors.append(caught.value)

    async with open_system() as system:
        ref = await system.spawn(Keeper)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, b"first")
            nursery.start_soon(ask, b"second")
            await trio.sleep(1)
            nursery.start_soon(ask, Crash(Boom()))
    assert len({id(error) for error in errors}) == 3
    assert len({id(error.error) for error in errors}) == 1


async def test_rejecting_answers_with_an_error_and_the_actor_lives(autojump_clock: MockClock) -> None:
    """A bad request is the asker's affair."""
    async with open_system() as system:
        ref = await system.spawn(Worker)
        await ref.ask(Add(1))
        with pytest.raises(Rejected, match=r"^too big$"):
            await ref.ask(Refuse("too big"))
        assert await ref.ask(Add(1)) == 2


async def test_a_message_without_a_handler_is_answered_and_a_dead_letter(autojump_clock: MockClock) -> None:
    """The asker reads what would be handled; a tell is not silence either."""
    async with open_system() as system:
        ref = await system.spawn(Worker, name="worker")
        with pytest.raises(Unhandled, match=r"worker has no handler for dict; it handles Add, Crash, .*Sleep"):
            await ref.ask({})
        ref.send_nowait({})
        assert await ref.ask(Add(1)) == 1
        assert [letter.recipient for letter in (system.dead_letters[0], system.dead_letters[1])] == ["worker"] * 2


# ------------------------------------------------------------------ replying later
@frozen
class Open:
    """Answer all who wait."""

    value: object


class Door(Actor):
    """Lets those who knock wait until it is opened."""

    def __init__(self) -> None:
        self.waiting: list[Envelope] = []

    @handle
    def knock(self, message: str) -> object:
        self.waiting.append(self.mail)
        return NO_REPLY

    @handle
    def open(self, message: Open) -> int:
        for envelope in self.waiting:
            self.reply(message.value, to=envelope)
        return len(self.waiting)

    @handle
    def crash(self, message: Crash) -> None:
        raise message.error


async def _expect(ref: ActorRef, message: object, wanted: object) -> None:
    assert await ref.ask(message) == wanted


async def test_a_handler_may_leave_the_answer_for_later(autojump_clock: MockClock) -> None:
    """It is free for the message that brings what it needs."""
    async with open_system() as system:
        ref = await system.spawn(Door)
        async with trio.open_nursery() as nursery:
            for name in ("ann", "bob"):
                nursery.start_soon(_expect, ref, name, "welcome")
            await trio.sleep(1)
            assert await ref.ask(Open("welcome")) == 2


async def test_the_first_answer_counts(autojump_clock: MockClock) -> None:
    """A second one finds nobody; so does one to a tell."""
    async with open_system() as system:
        ref = await system.spawn(Door)
        ref.send_nowait("told")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_expect, ref, "ann", 1)
            await trio.sleep(1)
            assert await ref.ask(Open(1)) == 2
            assert await ref.ask(Open(2)) == 2
        assert late_replies(system) == 1


async def test_a_deferred_reply_fails_with_the_life_that_owed_it(autojump_clock: MockClock) -> None:
    """The next life knows nothing of it; the asker knows at once."""
    async with open_system() as system:
        ref = await system.spawn(Door)

        async def knock(error: type[Exception]) -> None:
            with pytest.raises(error):
                await ref.ask("knock", timeout=None)

        for end, error in ((lambda: ref.ask(Crash(Boom())), ActorCrashed), (ref.stop, ActorStopped)):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(knock, error)
                await trio.sleep(1)
                with suppress(ActorCrashed):
                    await end()


async def test_an_early_reply_is_the_answer_whatever_the_handler_returns(autojump_clock: MockClock) -> None:
    """Answer first, tidy up after; that is no late reply."""

    class Early(Actor):
        @handle
        def early(self, message: str) -> object:
            self.reply(message, to=self.mail)
            return NO_REPLY if message == "no reply" else None

    async with open_system() as system:
        ref = await system.spawn(Early, name="early")
        assert [await ref.ask(message) for message in ("no reply", "none")] == ["no reply", "none"]
        assert late_replies(system) == 0
        assert not system._root.router.places["early"].life.deferred  # type: ignore[union-attr]


async def test_replies_that_are_never_given_are_forgotten_with_their_askers(autojump_clock: MockClock) -> None:
    """An actor that forgets to answer does not grow for ever."""
    async with open_system() as system:
        ref = await system.spawn(Door, name="door")
        for _ in range(1000):
            with trio.move_on_after(0):
                await ref.ask("knock")
            with trio.move_on_after(0.001):
                await ref.ask("knock")
        owed = system._root.router.places["door"].life.deferred  # type: ignore[union-attr]
        assert owed is not None
        assert len(owed) <= 257


# ------------------------------------------------------------------ asking from an actor
class Caller(Actor):
    """Asks the other for it."""

    def __init__(self, other: ActorRef, timeout: float = 5) -> None:
        self.other, self.timeout, self.count = other, timeout, 0

    @handle
    async def ask(self, message: object) -> object:
        self.count += 1
        if message == "count":
            return self.count
        return await self.other.ask(message, timeout=self.timeout)


@pytest.mark.parametrize(
    ("message", "error", "lives"),
    [
        (Refuse("no"), ActorCrashed, False),
        (Sleep(9), AskTimeout, True),
        (Crash(Boom()), ActorCrashed, False),
        ({}, ActorCrashed, False),
    ],
)
async def test_what_an_ask_of_a_handler_fails_with(
    autojump_clock: MockClock, message: object, error: type[Exception], *, lives: bool
) -> None:
    """A timeout is passed on and the actor lives; a failure that it does not handle is its own."""
    async with open_system() as system:
        worker = await system.spawn(Worker)
        caller = await system.spawn(Caller, worker)
        with pytest.raises(error):
            await caller.ask(message, timeout=20)
        assert await caller.ask("count") == (2 if lives else 1)


async def test_a_refusal_that_a_handler_got_is_passed_on_as_it_is(autojump_clock: MockClock) -> None:
    """`SendRefused` tells the asker more than a crash would, and the actor lives."""
    async with open_system() as system:
        caller = await system.spawn(Caller, system.ref("nobody"))
        with pytest.raises(Exception, match="nobody has the address 'nobody'") as caught:
            await caller.ask("x")
        assert type(caught.value).__name__ == "UnknownRecipient"
        assert await caller.ask("count") == 2
        caller.send_nowait("x")
        await system.wait_idle()
        assert "nobody has the address" in system.dead_letters[0].reason


async def test_an_answer_in_a_nursery_is_an_answer(autojump_clock: MockClock) -> None:
    """Trio wraps what a nursery's block raises; the actor still lives."""

    class Nursed(Worker):
        @handle
        async def nursed(self, message: bytes) -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.refuse, Refuse("wrapped"))
                await trio.sleep(1)

        async def refuse(self, message: Refuse) -> None:  # type: ignore[override]
            super().refuse(message)

    async with open_system() as system:
        ref = await system.spawn(Nursed)
        await ref.ask(Add(1))
        with pytest.raises(Rejected, match="wrapped"):
            await ref.ask(b"")
        assert await ref.ask(Add(1)) == 2
