"""Sessions of trees on a store: found again by the next start, taken over from what woke them, back in the tree after a rest."""

from pathlib import Path
from typing import Any

import pytest
import trio
from durable import Clerk, Effects, killed, outcomes, played, system_on, until

from actors import LeaseLost, RecipientStopped, StartFailed
from actors.models import call, fail, say, slow
from supervision import ChildSpec, Supervisor, open_system


def tree(agent: type[Clerk], name: str = "s", **options: Any) -> Supervisor:
    """A tree `p` of one session."""
    return Supervisor(ChildSpec(agent, name=name, options={"deps": Effects(waits=False), **options}), name="p")


def drawn(system: Any) -> list[str]:
    """The addresses of the tree."""
    return [node.address for node in system.tree()]


async def test_the_next_start_of_the_tree_finds_its_session_as_it_was_left(path: Path) -> None:
    """Same id, same owner, same transcript; the options are the spec's."""
    for number, agent in enumerate((played(call("book"), say("first")), played(say("second")))):
        async with system_on(path) as system:
            await system.start(tree(agent, owner="ada"))
            assert await system.session("p/s").ask("go") == ("first", "second")[number]
            record = await system.session("p/s").record()
            assert (record.owner, len(record.items)) == ("ada", (4, 6)[number])


async def test_the_tree_s_stop_is_not_told_to_the_store(path: Path) -> None:
    """Nor undone by what looks for sessions with something to do."""
    agent = played(slow(60, say("never")))
    async with system_on(path, agent, deps=Effects()) as system:
        ref = await system.start(tree(agent))
        await system.session("p/s").send("go")
        await until(lambda: system.session("p/s").status.value == "running")
        await ref.stop()
        await system._root.waking.scan()
        await trio.sleep(0.05)
        assert drawn(system) == []
        assert [(each.id, each.status.value) for each in await system.sessions()] == [("p/s", "running")]


async def test_a_session_that_the_store_has_woken_gives_way_to_its_tree(path: Path) -> None:
    """The system begins and takes it up; a moment later its tree starts: one session, the tree's, and nothing is lost."""
    first = played(slow(60, say("never")))
    async with system_on(path) as system:
        await system.start(tree(first))
        await system.session("p/s").send("go")
        await until(lambda: system.session("p/s").status.value == "running")
    agent = played(slow(60, say("never")), say("here I am"))
    async with system_on(path, agent, deps=Effects()) as system:
        await until(lambda: drawn(system) == ["p/s"] and system.session("p/s").status.value == "running")
        await trio.sleep(0.05)
        await system.start(tree(agent))
        assert drawn(system) == ["p", "p/s"]
        assert await system.session("p/s").wait_answer() == "here I am"


async def test_a_session_that_rests_leaves_memory_and_comes_back_into_its_tree(path: Path) -> None:
    """Neither is an end: its supervisor does nothing, and stops it with the rest."""
    seen: list[list[str]] = []

    def second(_request: Any) -> Any:
        seen.append(drawn(system))
        return say("two")

    agent = played(say("one"), second)
    async with system_on(path, agent, idle_timeout=0.05) as system:
        ref = await system.start(tree(agent))
        assert await system.session("p/s").ask("go") == "one"
        await until(lambda: drawn(system) == ["p"])
        assert await system.session("p/s").ask("go") == "two"
        assert seen == [["p", "p/s"]]
        await ref.stop()
        assert drawn(system) == []


async def test_a_session_that_another_process_runs_is_named_by_the_start(path: Path) -> None:
    """Two cannot have it; the second tree does not start."""
    agent = played(say("one"))
    async with system_on(path) as system:
        await system.start(tree(agent))
        async with open_system(store=f"sqlite:///{path}") as other:
            with pytest.raises(StartFailed, match="p/s did not start") as caught:
                await other.start(tree(agent))
            assert isinstance(caught.value.error, LeaseLost)
            assert drawn(other) == []


async def test_a_killed_process_s_session_goes_on_in_its_tree(path: Path) -> None:
    """A call that may have run is orphaned, as with any session."""
    deps = Effects()
    await killed(path, played(call("book"), fail(RuntimeError("not reached"))), deps)
    agent = played(say("what became of it?"))
    async with system_on(path) as system:
        await system.start(ChildSpec(agent, name="s", options={"deps": deps}))
        assert await system.session("s").wait_answer() == "what became of it?"
        assert outcomes(await system.session("s").record()) == ["orphaned"]


async def test_a_session_stopped_for_good_is_passed_over_by_the_tree_and_refused_alone(path: Path) -> None:
    """Nothing revives it."""
    agent = played(say("one"))
    async with system_on(path) as system:
        await system.start(tree(agent))
        await system.session("p/s").stop()
    async with system_on(path) as system:
        await system.start(tree(agent))
        assert drawn(system) == ["p"]
        await system.session("p/s").delete()
        await system.open(agent, session="t", deps=Effects())
        await system.session("t").stop()
        with pytest.raises(RecipientStopped):
            await system.start(ChildSpec(agent, name="t"))
