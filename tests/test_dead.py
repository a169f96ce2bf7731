"""Dead letters: bounded, counted, listed, replayable; never silence."""

import pytest
import trio
from cast import Add, Boom, Crash, Sleep, Worker

from actors import FromUser, RecipientStopped, UnknownRecipient, events
from supervision import System, _dead, open_system

pytestmark = pytest.mark.virtual_time


async def lost(system: System, *messages: object) -> None:
    """Send these to a busy actor and stop it."""
    ref = await system.spawn(Worker, name="lost")
    ref.send_nowait(Sleep(9))
    for message in messages:
        ref.send_nowait(message)
    await trio.sleep(1)
    await ref.stop()


async def test_a_dead_letter_says_whose_it_was_and_why() -> None:
    """Oldest first; an event tells it as well."""
    async with open_system() as system:
        told: list[events.AnyEvent] = []
        system.listen(told.append)
        await lost(system, "a", "b")
        assert [event.recipient for event in told if isinstance(event, events.DeadLettered)] == ["lost"] * 3
        assert len(system.dead_letters) == system.dead_letters.total == 3
        letter = system.dead_letters[-1]
        assert (letter.envelope.body, letter.envelope.sender, letter.recipient) == ("b", FromUser(None), "lost")
        assert letter.reason == "never handled: its actor ended (Stopped(reason='stop'))"
        assert system.dead_letters[0].reason == "being handled when its actor ended: Stopped(reason='stop')"


async def test_only_the_last_are_kept_and_all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of them fills no memory."""
    monkeypatch.setattr(_dead, "KEPT", 5)
    async with open_system() as system:
        await lost(system, *range(20))
        assert (len(system.dead_letters), system.dead_letters.total) == (5, 21)
        assert [system.dead_letters[place].envelope.body for place in range(5)] == [15, 16, 17, 18, 19]


async def test_a_letter_is_replayed_once_to_whoever_has_the_address_now() -> None:
    """As its sender; then it is off the list."""
    seen: list[object] = []
    async with open_system() as system:
        await lost(system, "a", "b")
        with pytest.raises(RecipientStopped):
            await system.dead_letters.replay(1)
        assert len(system.dead_letters) == 3
        await system.spawn(Worker, seen, name="lost")
        await system.dead_letters.replay(1)
        await system.wait_idle()
        assert (seen, len(system.dead_letters), system.dead_letters.total) == (["a"], 2, 3)


async def test_two_who_replay_at_once_send_two_letters_and_none_twice() -> None:
    """Each takes one off as it sends it."""
    seen: list[object] = []
    async with open_system() as system:
        await lost(system, "a", "b")
        await system.spawn(Worker, seen, name="lost")
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(system.dead_letters.replay, 1)
        await system.wait_idle()
        assert sorted(map(str, seen)) == ["a", "b"]
        assert len(system.dead_letters) == 1


async def test_a_letter_that_kills_again_is_a_dead_letter_again() -> None:
    """Replaying is no pardon."""
    async with open_system() as system:
        ref = await system.spawn(Worker, name="a")
        ref.send_nowait(Crash(Boom()))
        await system.wait_idle()
        await system.dead_letters.replay(0)
        await system.wait_idle()
        assert (len(system.dead_letters), system.dead_letters.total) == (1, 2)
        assert await ref.ask(Add(1)) == 1


async def test_there_is_no_letter_that_is_not_there() -> None:
    """As of any list; the text says which there are."""
    async with open_system() as system:
        with pytest.raises(IndexError, match="there is no dead letter 0: none is kept; 0 were seen in all"):
            await system.dead_letters.replay(0)
        await lost(system, "a", "b")
        for wrong in (99, 3, -4):
            with pytest.raises(
                IndexError, match=rf"no dead letter {wrong}: write 0 \(the oldest\) to 2, or -1 for the newest; 3 were"
            ):
                await system.dead_letters.replay(wrong)
        assert len(system.dead_letters) == 3


async def test_what_is_refused_is_no_dead_letter() -> None:
    """It was never accepted; its sender was told."""
    async with open_system() as system:
        with pytest.raises(UnknownRecipient):
            system.ref("nobody").send_nowait(1)
        assert system.dead_letters.total == 0
