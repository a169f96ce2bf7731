"""Who sends: stamped by the runtime, never said by the sender."""

import ast
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FunctionType
from typing import Any

import pytest
import trio
from cast import Add, Boom, Worker
from source import Module, modules
from trio.testing import MockClock, wait_all_tasks_blocked

from actors import (
    Actor,
    ActorCrashed,
    ActorRef,
    Envelope,
    Fenced,
    FromActor,
    FromSystem,
    FromUser,
    NotPermitted,
    Sender,
    handle,
)
from actors._identity import STRANGER, current
from supervision import System, open_system

PERSON, THREAD = FromUser(None), FromSystem("thread")


class Ear(Actor):
    """Keeps the envelopes it hears."""

    seconds = 0.0

    def __init__(self, heard: list[Envelope]) -> None:
        self.heard = heard

    @handle
    async def hear(self, message: object) -> None:
        await trio.sleep(self.seconds)
        self.heard.append(self.mail)


class Mouth(Actor):
    """Runs a function in its handler."""

    @handle
    async def do(self, message: FunctionType) -> object:
        return await message(self)


async def senders(system: System, act: Callable[[ActorRef, ActorRef], Any]) -> list[Sender]:
    """Let it act on an ear and a mouth, and say who the ear thinks has spoken."""
    heard: list[Envelope] = []
    ear = await system.spawn(Ear, heard)
    mouth = await system.spawn(Mouth, name="mouth")
    await act(ear, mouth)
    await system.wait_idle()
    return [envelope.sender for envelope in heard]


# ------------------------------------------------------------------ the stamps
async def test_host_code_speaks_for_the_user(autojump_clock: MockClock) -> None:
    """The task that opened the system, and the tasks it starts."""

    async def act(ear: ActorRef, _mouth: ActorRef) -> None:
        ear.send_nowait(1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ear.send, 2)
        with trio.move_on_after(1):
            await ear.ask(3)

    async with open_system() as system:
        assert await senders(system, act) == [PERSON] * 3


async def test_an_actor_speaks_as_itself_also_from_its_tasks_and_cleanup(autojump_clock: MockClock) -> None:
    """In a handler, a nursery of it, and on its way out."""
    heard: list[Envelope] = []

    class Leaving(Actor):
        async def on_start(self) -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ear.send, 1)
            ear.send_nowait(2)

        async def on_stop(self, exit: object) -> None:
            ear.send_nowait(3)

    async with open_system() as system:
        ear = await system.spawn(Ear, heard)
        await (await system.spawn(Leaving, name="a")).stop()
        await system.wait_idle()
    assert [envelope.sender for envelope in heard] == [FromActor("a")] * 3


async def test_a_system_task_is_nobody(autojump_clock: MockClock) -> None:
    """It descends from no person and no actor, whoever started it."""

    async def act(ear: ActorRef, mouth: ActorRef) -> None:
        async def start(_actor: Actor) -> None:
            trio.lowlevel.spawn_system_task(ear.send, 1)
            await wait_all_tasks_blocked()

        await mouth.ask(start)

    async with open_system() as system:
        assert await senders(system, act) == [THREAD]


async def test_a_raw_thread_is_nobody() -> None:
    """Also one that a handler started: it could be anyone's."""

    async def act(ear: ActorRef, mouth: ActorRef) -> None:
        async def start(_actor: Actor) -> None:
            thread = threading.Thread(target=ear.send_from_thread, args=(1,))
            thread.start()
            await trio.to_thread.run_sync(thread.join)

        await mouth.ask(start)

    async with open_system() as system:
        assert await senders(system, act) == [THREAD]


async def test_trios_thread_of_a_handler_speaks_as_the_actor() -> None:
    """It carries the handler's context."""

    async def act(ear: ActorRef, mouth: ActorRef) -> None:
        async def start(_actor: Actor) -> None:
            await trio.to_thread.run_sync(ear.send_from_thread, 1)

        await mouth.ask(start)

    async with open_system() as system:
        assert await senders(system, act) == [FromActor("mouth")]


async def test_a_portal_speaks_for_its_person_and_is_made_by_no_actor() -> None:
    """A web host's threads speak for whoever is logged in; what a model can reach must not."""
    async with open_system() as system:

        async def act(ear: ActorRef, mouth: ActorRef) -> None:
            portal = system.portal(owner="ann")
            await trio.to_thread.run_sync(portal.send, ear.address, 1)

            async def forge(_actor: Actor) -> None:
                with pytest.raises(NotPermitted, match="speaks for people"):
                    system.portal(owner="ann")

            await mouth.ask(forge)

        assert await senders(system, act) == [FromUser("ann")]


# ------------------------------------------------------------------ what outlives a life
def everything(actor: Actor, mail: Envelope, other: ActorRef) -> list[Callable[[], Any]]:
    """All that an actor can do."""
    return [
        partial(other.send_nowait, 1), partial(other.send, 1), partial(other.ask, Add(1)), other.stop, partial(actor.spawn, Worker),
        partial(actor.watch, other), partial(actor.send_after, 0, 1), actor.receive, actor.finish, partial(actor.reply, 1, to=mail),
    ]  # fmt: skip


class Leaver(Actor):
    """Its handler starts a task in a nursery that is not its own; when `go` is set, the task tries everything."""

    def __init__(self, nursery: trio.Nursery, go: trio.Event, other: ActorRef, told: list[Fenced]) -> None:
        self.nursery, self.go, self.other, self.told = nursery, go, other, told

    @handle
    def start(self, message: str) -> None:
        self.nursery.start_soon(self.linger, self.mail)
        if message == "crash":
            raise Boom

    async def linger(self, mail: Envelope) -> None:
        await self.go.wait()
        for act in everything(self, mail, self.other):
            try:
                done = act()
                if inspect.isawaitable(done):
                    await done
            except Fenced as error:
                self.told.append(error)


@pytest.mark.parametrize("end", ["now", "drain", "kill", "crash"])
async def test_a_task_left_behind_can_do_nothing_as_the_actor(autojump_clock: MockClock, end: str) -> None:
    """Neither send, ask, stop, spawn, watch, time, read, end nor answer; nor does it become a person."""
    told: list[Fenced] = []
    go = trio.Event()
    async with trio.open_nursery() as nursery, open_system() as system:
        other = await system.spawn(Worker, name="other")
        ref = await system.spawn(Leaver, nursery, go, other, told)
        with suppress(ActorCrashed):
            await ref.ask(end)
        if end != "crash":
            await ref.stop(end)  # type: ignore[arg-type]
        go.set()
        await wait_all_tasks_blocked()
        assert len(told) == 10
        assert await other.ask(Add(0)) == 0


async def test_a_thread_left_behind_is_fenced_too() -> None:
    """Trio cannot stop a thread; what it sends is refused."""
    go = threading.Event()
    told: list[BaseException] = []
    over = trio.Event()

    def thread(ear: ActorRef) -> None:
        go.wait(5)
        try:
            ear.send_from_thread(1)
        except Fenced as error:
            told.append(error)
        trio.from_thread.run_sync(over.set, trio_token=token)

    async with open_system() as system:
        token = trio.lowlevel.current_trio_token()
        ear = await system.spawn(Ear, [])

        async def start(_actor: Actor) -> None:
            await trio.to_thread.run_sync(thread, ear, abandon_on_cancel=True)

        mouth = await system.spawn(Mouth)
        mouth.send_nowait(start)
        await trio.sleep(0.05)
        await mouth.stop()
        go.set()
        await over.wait()
    assert [type(error) for error in told] == [Fenced]


async def test_a_message_that_waits_for_room_is_refused_with_its_dead_sender(autojump_clock: MockClock) -> None:
    """A life that outlived its stop sends nothing, also not what it began to send before."""
    heard: list[Envelope] = []

    class Late(Actor):
        @handle
        async def late(self, message: str) -> None:
            with trio.CancelScope(shield=True), pytest.raises(Fenced):
                await ear.send("late", wait=200)

    class SlowEar(Ear):
        seconds = 100.0

    async with open_system() as system:
        ear = await system.spawn(SlowEar, heard)
        for _ in range(256):
            ear.send_nowait("early")
        late = await system.spawn(Late, shutdown=1)
        late.send_nowait("go")
        await trio.sleep(5)
        await late.stop()
        await trio.sleep(300)
        assert {str(envelope.body) for envelope in heard} == {"early"}
        await ear.stop("kill")


# ------------------------------------------------------------------ several systems
async def test_two_systems_do_not_mix_identities(autojump_clock: MockClock) -> None:
    """An actor's name means nothing elsewhere: there its voice is nobody's."""
    async with open_system() as first, open_system() as second:

        async def act(ear: ActorRef, _mouth: ActorRef) -> None:
            stranger = await first.spawn(Mouth, name="mouth")
            await stranger.ask(lambda _actor: ear.send(1))
            await stranger.ask(lambda _actor: ear.ask(2, timeout=None))

        assert await senders(second, act) == [THREAD] * 2


async def test_the_host_of_two_systems_is_a_person_in_both(autojump_clock: MockClock) -> None:
    """The one that was opened first, too."""
    async with open_system() as first, open_system() as second:

        async def act(ear: ActorRef, _mouth: ActorRef) -> None:
            ear.send_nowait(1)
            await ear.send(2)

        assert await senders(first, act) == [PERSON] * 2
        assert await senders(second, act) == [PERSON] * 2


async def test_an_actor_that_opens_a_system_is_no_person_outside_it(autojump_clock: MockClock) -> None:
    """In the inner system it is the host; in its own it is what it was."""
    async with open_system() as outer:

        async def act(ear: ActorRef, mouth: ActorRef) -> None:
            async def nested(_actor: Actor) -> None:
                async with open_system() as inner:
                    ear.send_nowait(1)
                    assert await senders(inner, lambda ear, _mouth: ear.send(2)) == [PERSON]

            await mouth.ask(nested)

        assert await senders(outer, act) == [FromActor("mouth")]


async def test_after_the_block_the_task_is_who_it_was(autojump_clock: MockClock) -> None:
    """A host that opens one system after another carries nothing over."""
    async with open_system():
        assert current.get() is not STRANGER
    assert current.get() is STRANGER


# ------------------------------------------------------------------ nothing is written into a message
FIELDS = {"key", "seq", "sender", "priority", "hops", "sent", "trace", "body", "token", "duplicate"}
HOLDERS = ("envelope", "receipt", "mail", "message", "to", "chosen", "old", "known", "first")


def assigned(module: Module) -> list[str]:
    """What the module assigns to that could be a field of an envelope or a receipt."""
    found = []
    for node in ast.walk(module.tree):
        targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [getattr(node, "target", None)]
        for target in targets:
            if isinstance(target, ast.Attribute) and target.attr in FIELDS:
                holder = ast.unparse(target.value)
                if holder.split(".")[-1] in HOLDERS:
                    found.append(f"{holder}.{target.attr}")
    return found


@pytest.mark.parametrize("module", modules("actors", "supervision"), ids=str)
def test_nothing_assigns_to_an_envelope_or_a_receipt(module: Module) -> None:
    """They are shared by everybody who reads; a change would be seen by all, and stored by none."""
    assert assigned(module) == []


@pytest.mark.parametrize("field", ["body", "sender", "seq", "hops", "id", "new"])
async def test_an_envelope_and_a_receipt_refuse_a_change(autojump_clock: MockClock, field: str) -> None:
    """A handler that tries is told."""
    heard: list[Envelope] = []
    async with open_system() as system:
        ear = await system.spawn(Ear, heard)
        receipt = await ear.send(1)
        await system.wait_idle()
    for record in (heard[0], receipt):
        with pytest.raises(AttributeError):
            setattr(record, field, 1)
