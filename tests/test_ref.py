"""References: making, comparing and carrying them; what a send through one is refused with."""

import copy
import pickle
import threading
from typing import Any

import pytest
import trio
from cast import Add, Boom, Crash, Sleep, Worker
from trio.testing import MockClock

from actors import (
    Actor,
    ActorRef,
    ActorsError,
    ActorStopped,
    Agent,
    Envelope,
    Failed,
    IdConflict,
    Limits,
    MailboxFull,
    Priority,
    RecipientStopped,
    SendRefused,
    Status,
    Stopped,
    UnknownRecipient,
    handle,
)
from actors.models import ScriptedModel, say
from supervision import open_system


# ------------------------------------------------------------------ what a ref is
async def test_refs_compare_by_address(autojump_clock: MockClock) -> None:
    """They are names; a set of them holds each actor once."""
    async with open_system() as system:
        ref = await system.spawn(Worker, name="a")
        assert {ref, system.ref("a"), ActorRef("a")} == {ref}
        assert ref != system.ref("b")
        assert ref != "a"
        assert repr(ref) == "<ActorRef 'a'>"


async def test_a_pickled_ref_leads_to_the_actor_of_the_system_that_uses_it(autojump_clock: MockClock) -> None:
    """A ref may be in a message, a file, a deep copy."""
    async with open_system() as system:
        ref = await system.spawn(Worker)
        for other in (pickle.loads(pickle.dumps(ref)), copy.copy(ref), copy.deepcopy({"to": ref})["to"]):
            assert other == ref
            await other.ask(Add(1))
        assert await ref.ask(Add(0)) == 3


async def test_a_ref_outside_every_system_says_so() -> None:
    """It may be carried anywhere; used, it needs a system."""
    with pytest.raises(ActorsError, match="belongs to no system here"):
        ActorRef("a").send_nowait(1)


async def test_making_a_ref_never_fails_and_sending_to_nobody_names_near_addresses(autojump_clock: MockClock) -> None:
    """Siblings may be named before they exist; a typo is told with what was meant."""
    async with open_system() as system:
        await system.spawn(Worker, name="counter")
        ref = system.ref("conter")
        with pytest.raises(UnknownRecipient, match=r"nobody has the address 'conter'; did you mean counter\?"):
            ref.send_nowait(1)
        with pytest.raises(UnknownRecipient, match="spawn or open it first"):
            await system.ref("zzz").ask(1)
        await system.spawn(Worker, name="conter")
        assert await ref.ask(Add(1)) == 1


async def test_a_ref_survives_restarts_and_a_new_actor_of_the_name(autojump_clock: MockClock) -> None:
    """It leads to an address, not to a life."""
    async with open_system() as system:
        ref = await system.spawn(Worker, name="a")
        await ref.ask(Add(1))
        ref.send_nowait(Crash(Boom()))
        assert await ref.ask(Add(1)) == 1
        await ref.stop()
        await system.spawn(Worker, name="a")
        assert await ref.ask(Add(2)) == 2


# ------------------------------------------------------------------ sending
async def test_the_receipt_says_where_the_message_stands(autojump_clock: MockClock) -> None:
    """Its place, its id, its priority, whether it was there before."""
    async with open_system() as system:
        ref = await system.spawn(Worker)
        first = ref.send_nowait("a", id="web-1")
        assert (first.seq, first.id, first.duplicate, first.priority) == (1, "web-1", False, Priority.NORMAL)
        assert (await ref.interrupt("b")).priority is Priority.INTERRUPT
        assert (await ref.send("a", id="web-1")) == ref.send_nowait("a", id="web-1")
        with pytest.raises(IdConflict):
            ref.send_nowait("b", id="web-1")


async def test_a_full_mailbox_refuses_and_a_patient_sender_waits(autojump_clock: MockClock) -> None:
    """`send_nowait` and `send` refuse at once; `wait` seconds are for whoever has them."""
    async with open_system() as system:
        ref = await system.spawn(Worker, limits=Limits(max_unread=2))
        ref.send_nowait(Sleep(3))
        ref.send_nowait(1)
        for send in (lambda: ref.send(2), lambda: ref.send(2, wait=1), lambda: ref.ask(2)):
            with pytest.raises(MailboxFull, match="at most 2"):
                await send()
        await ref.send(2, wait=10)
        assert trio.current_time() == 3


async def test_a_waiting_sender_is_refused_when_the_actor_stops(autojump_clock: MockClock) -> None:
    """It does not wait out its time for somebody who is gone."""
    async with open_system() as system:
        ref = await system.spawn(Worker, limits=Limits(max_unread=1))
        ref.send_nowait(Sleep(3))

        async def send() -> None:
            with pytest.raises(RecipientStopped):
                await ref.send(2, wait=1000)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            await trio.sleep(1)
            await ref.stop()
        assert trio.current_time() == 1


@pytest.mark.parametrize("how", ["send_nowait", "send", "interrupt", "ask"])
async def test_an_ended_actor_refuses_with_its_exit(autojump_clock: MockClock, how: str) -> None:
    """The sender reads how it ended, long after."""
    async with open_system() as system:
        ref = await system.spawn(Worker, name="a", restart="temporary")
        with pytest.raises(Exception, match="Boom"):
            await ref.ask(Crash(Boom("why")))
        with pytest.raises(RecipientStopped, match=r"a ended for good.*Boom") as caught:
            await _call(ref, how)
        assert isinstance(caught.value.exit, Failed)
        assert isinstance(caught.value, ActorStopped) is (how == "ask")


async def _call(ref: ActorRef, how: str) -> None:
    done = getattr(ref, how)(1)
    if how != "send_nowait":
        await done


async def test_an_ask_of_a_stopping_actor_fails_at_once(autojump_clock: MockClock) -> None:
    """Both a refusal (nothing was kept) and an ask without an answer; whoever catches either has it."""
    async with open_system() as system:
        ref = await system.spawn(Worker, shutdown=9)
        ref.send_nowait(Sleep(3))
        async with trio.open_nursery() as nursery:
            await trio.sleep(1)
            nursery.start_soon(ref.stop, "drain")
            await trio.sleep(1)
            for error in (ActorStopped, SendRefused):
                with pytest.raises(error):
                    await ref.ask(Add(1))
            assert trio.current_time() == 2


async def test_stop_and_wait_give_the_exit_also_when_it_is_long_over(autojump_clock: MockClock) -> None:
    """Whoever asks twice gets the same answer."""
    async with open_system() as system:
        ref = await system.spawn(Worker)
        assert [await ref.stop(), await ref.stop(), await ref.wait()] == [Stopped("stop")] * 3
        assert ref.status is Status.STOPPED
        with pytest.raises(UnknownRecipient):
            await system.ref("nobody").wait()


async def test_a_ref_shows_where_its_actor_stands(autojump_clock: MockClock) -> None:
    """Idle, busy, ended well or badly."""
    async with open_system() as system:
        ref = await system.spawn(Worker, restart="temporary")
        states = [ref.status]
        ref.send_nowait(Sleep(2))
        await trio.sleep(1)
        states.append(ref.status)
        await trio.sleep(2)
        states.append(ref.status)
        ref.send_nowait(Crash(Boom()))
        await ref.wait()
        assert [*states, ref.status] == [Status.IDLE, Status.RUNNING, Status.IDLE, Status.FAILED]


# ------------------------------------------------------------------ threads (real time: they know no other)
class Heard(Actor):
    """Keeps its envelopes."""

    def __init__(self, heard: list[Envelope]) -> None:
        self.heard = heard

    @handle
    async def hear(self, message: object) -> None:
        self.heard.append(self.mail)
        await trio.lowlevel.checkpoint()


async def in_thread(fn: Any) -> None:
    """Run it in a thread that trio does not know."""
    failed: list[BaseException] = []

    def guarded() -> None:
        try:
            fn()
        except BaseException as error:  # noqa: BLE001  # told to the test
            failed.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    await trio.to_thread.run_sync(thread.join)
    if failed:
        raise failed[0]


async def test_a_raw_thread_sends_a_thousand_messages_and_all_arrive_in_order() -> None:
    """It blocks where there is no room, and nothing is refused that has time to wait."""
    heard: list[Envelope] = []
    async with open_system() as system:
        ref = await system.spawn(Heard, heard)
        await in_thread(lambda: [ref.send_from_thread(number, wait=5) for number in range(1000)])
        await system.wait_idle()
    assert [envelope.body for envelope in heard] == list(range(1000))


async def test_send_nowait_in_a_foreign_thread_is_refused_before_it_harms() -> None:
    """It would wake a task from outside; the error says what to use."""
    async with open_system() as system:
        ref = await system.spawn(Worker)
        await ref.ask(Add(1))
        for run in (trio.to_thread.run_sync, in_thread):
            with pytest.raises(RuntimeError, match="send_from_thread"):
                await run(lambda: ref.send_nowait(Add(1)))
        assert await ref.ask(Add(1)) == 2


async def test_send_from_thread_in_the_trio_thread_is_a_mistake() -> None:
    """It would wait for the very thread that it blocks."""
    async with open_system() as system:
        ref = await system.spawn(Worker)
        with pytest.raises(RuntimeError):
            ref.send_from_thread(1)


async def test_a_thread_reads_the_same_refusals() -> None:
    """They come through the thread's border as they are."""
    async with open_system() as system:
        ref = await system.spawn(Worker)
        await ref.stop()
        with pytest.raises(RecipientStopped):
            await in_thread(lambda: ref.send_from_thread(1))


async def test_a_bare_ref_to_a_session_goes_through_its_rules_every_time(autojump_clock: MockClock) -> None:
    """A session takes words; a ref that was let in once does not put other things into its mailbox."""

    class Quiet(Agent):
        """You are quiet."""

        model = ScriptedModel([say("yes")])

    async with open_system() as system:
        await system.open(Quiet, session="quiet")
        ref = ActorRef("quiet")
        for _ in range(2):
            ref.send_nowait("hello")
            with pytest.raises(TypeError, match="takes str, UserMessage"):
                ref.send_nowait(5)
