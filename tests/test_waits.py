"""Who waits for whom: a wait that would never end is refused at once, every other one ends."""

from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from hands import Do, Hand, asking, napping
from hypothesis import given
from hypothesis import strategies as st
from scenes import scene
from trio.testing import MockClock, wait_all_tasks_blocked

from actors import Actor, Agent, AskCycle, AskTimeout, Exit, Limits, Mailbox, handle, tool
from actors.models import call, say
from actors.testing import Gate
from supervision import System, open_system
from supervision._waits import Waits

Wait = Callable[[Actor], Awaitable[Any]]


# ------------------------------------------------------------------ cycles
@pytest.mark.parametrize("size", [1, 2, 3])
async def test_a_cycle_is_refused_at_once_and_names_its_path(size: int, autojump_clock: MockClock) -> None:
    """Waiting would never end: whoever would close the ring learns it now, and all of them live on."""
    names = [f"a{number}" for number in range(size)]
    async with open_system() as system:
        for name in names:
            await system.spawn(Hand, name=name)
        message: Any = "never read"
        for name in [names[0], *reversed(names[1:])]:
            message = asking(name, message)
        with pytest.raises(AskCycle) as caught:
            await system.ref("a0").ask(message)
        assert caught.value.path == (names[-1], *names)
        assert trio.current_time() == 0
        assert {node.generation for node in system.tree()} == {1}


async def test_a_cycle_disturbs_nobody_else(autojump_clock: MockClock) -> None:
    """One who waits for a member of the ring gets its answer."""
    async with open_system() as system:
        for name in "abc":
            await system.spawn(Hand, name=name)

        async def both(actor: Actor) -> str:
            with pytest.raises(AskCycle):
                await actor.find("b").ask(asking("a", "never read"))
            return "went on"

        async with trio.open_nursery() as nursery:
            nursery.start_soon(system.ref("c").ask, asking("a", Do(both)))
            assert await system.ref("a").ask(Do(both)) == "went on"


async def test_a_send_that_finds_room_waits_for_nobody(autojump_clock: MockClock) -> None:
    """Whoever is asked may write to the asker: only a send to a full mailbox would wait, and close the ring."""
    async with open_system() as system:
        for name in "ab":
            await system.spawn(Hand, name=name, limits=Limits(max_unread=2))

        async def tell(actor: Actor) -> list[int]:
            receipt = await actor.find("b").send(napping(0), wait=1)
            with pytest.raises(AskCycle):
                await actor.find("b").send(napping(0), wait=1)
            return [receipt.seq]

        assert await system.ref("b").ask(asking("a", Do(tell))) == [2]


async def test_an_edge_lasts_as_long_as_the_last_wait_for_the_same_actor(autojump_clock: MockClock) -> None:
    """A handler that waits twice for one actor still waits for it when the first answer came."""

    async def twice(actor: Actor) -> Any:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(actor.find("b").ask, napping(1))
            await trio.sleep(0.5)
            with pytest.raises(AskCycle) as caught:
                await actor.find("b").ask(asking("a", "never read"))
        return caught.value.path

    async with open_system() as system:
        await system.spawn(Hand, name="b")
        a = await system.spawn(Hand, name="a")
        assert await a.ask(Do(twice)) == ("b", "a", "b")
        assert trio.current_time() == 1


async def test_host_tasks_add_no_edges(autojump_clock: MockClock) -> None:
    """They handle no messages, so nobody can wait for them in turn."""
    held = Gate()
    async with open_system() as system, trio.open_nursery() as nursery:
        ref = await system.spawn(held.actor)
        nursery.start_soon(ref.ask, "hold")
        await wait_all_tasks_blocked()
        assert len(system._root.waits) == 0
        held.open()


async def test_no_edge_is_left_behind_when_waits_end_badly(autojump_clock: MockClock) -> None:
    """A timeout, a crash and a stop of the one that waits take their edges along."""
    held = Gate()
    async with open_system() as system:
        await system.spawn(held.actor, name="held")
        for name in "abc":
            await system.spawn(Hand, name=name)
        system.ref("a").send_nowait(asking("held", "hold", 1))
        system.ref("b").send_nowait(asking("held", "hold"))
        await wait_all_tasks_blocked()
        assert len(system._root.waits) == 2
        await trio.sleep(1.5)
        await system.ref("b").stop()
        assert len(system._root.waits) == 0


ADDRESSES = st.sampled_from("abcd")


@given(st.lists(st.tuples(st.booleans(), ADDRESSES, ADDRESSES), max_size=60))
def test_the_graph_never_has_a_cycle(steps: list[tuple[bool, str, str]]) -> None:
    """Whatever is entered and left: refused is exactly what would close one, and its path is one that exists."""
    places = {address: SimpleNamespace(mailbox=Mailbox(address)) for address in "abcd"}
    waits, edges = Waits(places), Counter[tuple[str, str]]()
    for enter, waiter, target in steps:
        if not enter and edges[waiter, target]:
            mine = places[waiter].mailbox
            if mine.awaits == target:
                mine.awaits = None
            else:
                waits.leave(waiter, target)
            edges[waiter, target] -= 1
        elif enter and alone(waits, places[waiter].mailbox, places[target].mailbox):
            places[waiter].mailbox.awaits = target
            edges[waiter, target] += 1
        elif enter:
            path = refused(waits, waiter, target)
            edges[waiter, target] += not path
            assert not path or (path[:2] == (waiter, target) and path[-1] == waiter)
            assert all(edges[edge] for edge in list(pairwise(path))[1:])
        assert not has_cycle(+edges)
        assert len(waits) == edges.total()


def alone(waits: Waits, waiter: Mailbox, target: Mailbox) -> bool:
    """When `ask` writes the edge itself."""
    return not waits.edges and waiter is not target and waiter.awaits is None and target.awaits is None


def refused(waits: Waits, waiter: str, target: str) -> tuple[str, ...]:
    """The path for which an edge is refused; empty if it is not."""
    try:
        waits.enter(waiter, target)
    except AskCycle as cycle:
        return cycle.path
    return ()


def has_cycle(edges: Counter[tuple[str, str]]) -> bool:
    """By taking away, again and again, whoever waits for nobody."""
    left = set(edges)
    while True:
        waiters = {waiter for waiter, _ in left}
        fewer = {(waiter, target) for waiter, target in left if target in waiters}
        if fewer == left:
            return bool(left)
        left = fewer


# ------------------------------------------------------------------ deadlines
class Slow(Actor):
    """Takes a thousand seconds to start, or to stop."""

    def __init__(self, starts: float, stops: float) -> None:
        self.starts, self.stops = starts, stops

    async def on_start(self) -> None:
        await trio.sleep(self.starts)

    async def on_stop(self, exit: Exit) -> None:
        await trio.sleep(self.stops)


async def stage(system: System, held: Gate) -> None:
    """Somebody busy, somebody full, somebody who does not stop."""
    await system.spawn(held.actor, name="busy")
    full = await system.spawn(held.actor, name="full", limits=Limits(max_unread=1))
    full.send_nowait("hold")
    await system.spawn(Slow, 0, 1000, name="slow", shutdown=1000)


WAITS: dict[str, Wait] = {
    "ask": lambda actor: actor.find("busy").ask("hold", timeout=None),
    "a long ask": lambda actor: actor.find("busy").ask("hold", timeout=1000),
    "wait": lambda actor: actor.find("busy").wait(),
    "stop": lambda actor: actor.find("slow").stop(),
    "spawn": lambda actor: actor.spawn(Slow, 1000, 0, name="kid", init_timeout=2000),
    "send for room": lambda actor: actor.find("full").send("more", wait=1000),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=list(WAITS))
@pytest.mark.parametrize("limit", [None, 7.0])
async def test_every_wait_of_an_actor_has_an_end(wait: Wait, limit: float | None, autojump_clock: MockClock) -> None:
    """Also the one that was written without: after five minutes, or the limit set on it or above it, it raises `AskTimeout`."""
    held = Gate()
    async with open_system() as system:
        await stage(system, held)
        limits = None if limit is None else Limits(max_wait=limit)
        ref = await system.spawn(Hand, name="hand", limits=limits)
        with pytest.raises(AskTimeout) as caught:
            await ref.ask(Do(wait), timeout=None)
        assert trio.current_time() == caught.value.seconds == (limit or 300.0)
        assert [node.address for node in system.tree()] == ["busy", "full", "slow", "hand"]
        held.open()


async def test_a_shorter_timeout_goes_before_the_limit(autojump_clock: MockClock) -> None:
    """The limit is an upper bound, not a time to wait."""
    held = Gate()
    async with open_system() as system:
        await stage(system, held)
        ref = await system.spawn(Hand)
        with pytest.raises(AskTimeout):
            await ref.ask(asking("busy", "hold", 2), timeout=None)
        assert trio.current_time() == 2
        held.open()


async def test_a_host_waits_as_long_as_it_likes(autojump_clock: MockClock) -> None:
    """The limit is for those whom others wait for."""
    async with open_system() as system:
        ref = await system.spawn(Hand)
        await ref.ask(napping(1000), timeout=None)
        assert trio.current_time() == 1000


# ------------------------------------------------------------------ sessions
class Curious(Agent):
    """You ask."""

    @tool
    async def ask_me(self) -> str:
        """Ask one's own session."""
        try:
            return str(await self.ref.ask("who am I?"))
        except AskCycle as cycle:
            return " ".join(cycle.path)

    @tool
    async def look(self) -> str:
        """Tell who waits for whom."""
        return str(self.deps._root.waits.listing())


async def test_a_call_that_asks_its_own_session_is_refused(autojump_clock: MockClock) -> None:
    """The session waits for the call: it would answer when the call has ended, and the call would end when it answers."""
    async with scene(call("ask_me"), say("done"), agent=Curious) as here:
        await here.session.ask("go")
        (found,) = here.results(1)
        (name,) = await here.calls()
        assert found == f"s/{name} s s/{name}"


class Clerk(Actor):
    """Asks a session from within a handler."""

    @handle
    async def forward(self, message: str) -> str:
        answer: str = await self.find("s").ask(message)
        return answer


async def test_an_actor_that_a_call_waits_for_cannot_ask_its_session(autojump_clock: MockClock) -> None:
    """The ring has three members: the session waits for its call, the call for the clerk, the clerk for the session."""
    found: list[str] = []

    class Office(Agent):
        @tool
        async def go(self) -> str:
            try:
                await self.find("clerk").ask("hello")
            except AskCycle as cycle:
                found.extend(cycle.path)
            return "done"

    async with scene(call("go"), say("done"), agent=Office) as here:
        await here.system.spawn(Clerk, name="clerk")
        await here.session.ask("go")
        (name,) = await here.calls()
        assert found == ["clerk", "s", f"s/{name}", "clerk"]
