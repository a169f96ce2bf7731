"""What a person sees of a system."""

import pytest
import trio
from cast import Add, Boom, Crash, Sleep, Worker

from actors import ActorCrashed, Status
from supervision import ChildSpec, Supervisor, open_system

pytestmark = pytest.mark.virtual_time


async def test_the_tree_is_drawn_with_what_stands_out() -> None:
    """Kinds, states, lives past the first, unread mail; children under their parents, in order."""
    async with open_system(name="main") as system:
        inner = Supervisor(ChildSpec(Worker, name="a"), ChildSpec(Worker, name="b"), name="inner")
        await system.start(Supervisor(inner, ChildSpec(Worker, name="c"), name="p"))
        other = await system.spawn(Worker, name="other")
        with pytest.raises(ActorCrashed):
            await system.ref("p/inner/b").ask(Crash(Boom()))
        other.send_nowait(Sleep(5))
        other.send_nowait(1)
        await trio.sleep(1)
        assert str(system.tree()).splitlines() == [
            "main",
            "|-- p (supervisor: idle)",
            "|   |-- inner (supervisor: idle)",
            "|   |   |-- a (actor: idle)",
            "|   |   `-- b (actor: idle, life 2)",
            "|   `-- c (actor: idle)",
            "`-- other (actor: running, 2 unread)",
        ]


async def test_a_tree_is_a_snapshot_of_nodes_parents_first() -> None:
    """A program reads it as data; it does not change under its reader."""
    async with open_system() as system:
        await system.start(Supervisor(ChildSpec(Worker, name="a"), name="p"))
        tree = system.tree()
        await system.ref("p/a").stop()
        assert [(node.address, node.kind, node.status, node.restarts) for node in tree] == [
            ("p", "supervisor", Status.IDLE, 0),
            ("p/a", "actor", Status.IDLE, 0),
        ]
        assert [node.address for node in system.tree()] == ["p"]


async def test_the_statistics_count_what_there_is_and_what_happened() -> None:
    """Numbers for a dashboard."""
    async with open_system() as system:
        ref = await system.spawn(Worker)
        await system.start(Supervisor(ChildSpec(Worker, name="a"), name="p"))
        with pytest.raises(ActorCrashed):
            await ref.ask(Crash(Boom()))
        await ref.ask(Add(1))
        ref.send_nowait({})
        ref.send_nowait(Sleep(5))
        await trio.sleep(1)
        numbers = system.statistics()
        assert (numbers.actors, numbers.supervisors, numbers.sessions, numbers.calls, numbers.zombies) == (2, 1, 0, 0, 0)
        assert (numbers.unread, numbers.restarts, numbers.crashes, numbers.dead_letters, numbers.late_replies) == (
            1,
            1,
            1,
            2,
            0,
        )
