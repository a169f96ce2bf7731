"""Sessions as children of a tree: started, stopped and restarted with their siblings, and none of that loses a word."""

from typing import Any

import pytest
import trio
from attrs import frozen
from cast import Boom, Crash, Noting, Worker
from hands import Hand, asking
from scenes import Diary, virtual_time
from scenes import Worker as Clerk

from actors import (
    ActorCrashed,
    Agent,
    ConfigError,
    Exit,
    Limits,
    ModelError,
    RecipientStopped,
    RunFailed,
    StartFailed,
    Status,
    Stopped,
    handle,
)
from actors.models import Request, Scripted, ScriptedModel, call, fail, say, slow
from supervision import Backoff, ChildSpec, Supervisor, System, open_system, run

pytestmark = virtual_time


@frozen
class Count:
    """What an agent's own handler takes."""


def outage(_request: Request) -> Any:
    """A provider that is down."""
    return fail(ModelError(model="cloud", status=503, reason="overloaded", retryable=True))


def clerk(name: str, *script: Scripted, agent: type[Agent] = Clerk, diary: Diary | None = None, **how: Any) -> ChildSpec:
    """A session of a tree, and what its model says."""
    options = {"model": ScriptedModel(script), "deps": diary or Diary(), **how.pop("options", {})}
    return ChildSpec(agent, name=name, options=options, **how)


def noted(diary: list[str], **how: Any) -> type[Clerk]:
    """A clerk that notes its starts and stops; each takes a second. `fails`: at which starts it raises."""
    fails = how.get("fails", ())

    class Noted(Clerk):
        async def on_start(self) -> None:
            await trio.sleep(1)
            diary.append("+clerk")
            if diary.count("+clerk") in fails:
                raise Boom("no start")

        async def on_stop(self, exit: Exit) -> None:
            await trio.sleep(1)
            diary.append("-clerk")

    return Noted


async def crash(system: System, address: str) -> None:
    """Let a plain actor fail."""
    with pytest.raises(ActorCrashed):
        await system.ref(address).ask(Crash(Boom(address)))


def lives(system: System) -> dict[str, int]:
    """How many lives each has had."""
    return {node.address: node.generation for node in system.tree()}


# ------------------------------------------------------------------ started and stopped
async def test_a_session_of_a_tree_is_reached_by_its_path() -> None:
    """As any session: by its id, by opening it, by a plain sibling."""
    async with open_system() as system:
        await system.start(
            Supervisor(ChildSpec(Hand, name="hand"), clerk("clerk", say("one"), say("two"), say("three")), name="p")
        )
        assert await system.session("p/clerk").ask("go") == "one"
        assert await (await system.open(Clerk, session="p/clerk")).ask("go") == "two"
        assert await system.ref("p/hand").ask(asking("p/clerk", "go")) == "three"
        drawn = "`-- p (supervisor: idle)\n    |-- hand (actor: idle)\n    `-- clerk (session: idle)"
        assert str(system.tree()).endswith(drawn)


async def test_a_session_is_ready_before_the_next_child_starts_and_stops_after_it() -> None:
    """Its `on_start` is awaited, and so is its `on_stop`."""
    diary: list[str] = []
    a, c = (ChildSpec(Noting, diary, name, name=name) for name in "ac")
    async with open_system() as system:
        ref = await system.start(Supervisor(a, clerk("b", agent=noted(diary)), c, name="p"))
        assert (diary, trio.current_time()) == (["+a", "+clerk", "+c"], 1)
        await ref.stop()
        assert diary[3:] == ["-c", "-clerk", "-a"]


async def test_a_session_that_does_not_start_takes_back_what_had_started() -> None:
    """And is named."""
    diary: list[str] = []
    async with open_system() as system:
        tree = Supervisor(ChildSpec(Noting, diary, "a", name="a"), clerk("b", agent=noted(diary, fails=[1])), name="p")
        with pytest.raises(StartFailed, match="p/b did not start: Boom: no start"):
            await system.start(tree)
        assert (diary, list(system.tree())) == (["+a", "+clerk", "-a"], [])


async def test_an_address_that_somebody_has_is_not_taken() -> None:
    """Opened before, it is somebody's."""
    async with open_system() as system:
        await system.open(Clerk, session="p/a", model=ScriptedModel([]), deps=Diary())
        with pytest.raises(StartFailed, match="p/a is already there"):
            await system.start(Supervisor(clerk("a"), name="p"))


async def test_a_session_may_be_the_whole_tree() -> None:
    """Its ref is a session's."""
    async with open_system() as system:
        session = await system.start(clerk("solo", say("here")))
        assert await system.session(session.address).ask("go") == "here"
        assert await session.stop() == Stopped("stop")


def test_a_tree_of_sessions_is_run_until_it_ends() -> None:
    """`run` takes it as any tree."""

    class Leaver(Hand):
        async def on_start(self) -> None:
            self.spawn_later = self.send_after(0.01, b"")

        @handle
        async def leave(self, message: bytes) -> None:
            assert await self.find("p/clerk").ask("go") == "done"
            self.finish("bye")

    leaver = ChildSpec(Leaver, name="leaver", significant=True)
    assert run(Supervisor(clerk("clerk", say("done")), leaver, name="p", auto_shutdown="any")).normal


async def test_stopping_the_tree_is_no_end_of_its_sessions() -> None:
    """The next start finds each as it was left: its words, its unread mail, a call that was cut off."""
    diary = Diary()
    tree = Supervisor(clerk("a", call("work", seconds=50), say("I know"), diary=diary), name="p")
    async with open_system() as system:
        ref = await system.start(tree)
        await system.session("p/a").send("first")
        await trio.sleep(1)
        await system.session("p/a").send("second")
        await ref.stop()
        with pytest.raises(RecipientStopped):
            await system.session("p/a").send("third")
        await system.start(tree)
        assert await system.session("p/a").wait_answer() == "I know"
        [row] = (await system.session("p/a").record()).calls
        assert (row.status, diary.cancelled) == ("cancelled", ["call_1"])
        assert [
            item.text.count("second") for item in (await system.session("p/a").record()).items if hasattr(item, "text")
        ].count(1)


async def test_a_session_that_somebody_stopped_stays_stopped() -> None:
    """Through its own ref it ends for good: no restart of its group, and no later start of the tree, revives it."""
    tree = Supervisor(ChildSpec(Worker, name="w"), clerk("a"), name="p", strategy="one_for_all")
    async with open_system() as system:
        ref = await system.start(tree)
        await system.session("p/a").stop()
        await crash(system, "p/w")
        await system.wait_idle()
        assert lives(system) == {"p": 1, "p/w": 2}
        await ref.stop()
        await system.start(tree)
        assert lives(system) == {"p": 1, "p/w": 1}


# ------------------------------------------------------------------ crashes of its own
async def test_an_outage_is_the_session_s_own_affair() -> None:
    """Ten fail at once, each keeps its mail and says why; the tree has seen nothing."""
    clerks = (clerk(f"c{number}", *[outage] * 6, say("back again")) for number in range(10))
    async with open_system() as system:
        await system.start(Supervisor(ChildSpec(Worker, name="w"), *clerks, name="p", strategy="one_for_all", max_restarts=0))
        for number in range(10):
            await system.session(f"p/c{number}").send("hello?")
        await system.wait_idle()
        assert {system.session(f"p/c{number}").status for number in range(10)} == {Status.FAILED}
        assert lives(system)["p/w"] == 1
        assert await system.session("p/c7").ask("and now?") == "back again"


async def test_the_backoff_of_the_spec_is_its_loop_s() -> None:
    """Two attempts, a second apart, whatever its kind of restart."""
    spec = clerk("a", *[outage] * 3, restart="temporary", backoff=Backoff(first=1, factor=1, jitter=0, max_attempts=2))
    async with open_system() as system:
        await system.start(Supervisor(spec, name="p"))
        with pytest.raises(RunFailed, match="overloaded"):
            await system.session("p/a").ask("hello?")
        assert trio.current_time() == 2
        assert lives(system)["p/a"] == 4


# ------------------------------------------------------------------ restarted with its group
async def test_a_group_restart_loses_no_word_of_a_session() -> None:
    """A new activation goes on from the last commit; what was asked is answered, what was unread is read."""
    diary: list[str] = []
    spec = clerk("a", slow(5, say("never said")), say("all of it"), agent=noted(diary))
    answers: list[str] = []
    async with open_system() as system:
        await system.start(Supervisor(ChildSpec(Worker, name="w"), spec, name="p", strategy="one_for_all"))

        async def ask(words: str) -> None:
            answers.append(await system.session("p/a").ask(words))

        async with trio.open_nursery() as nursery:
            for words in ("first", "second"):
                nursery.start_soon(ask, words)
                await trio.sleep(1)
            await crash(system, "p/w")
        assert answers == ["all of it"] * 2
        assert diary == ["+clerk", "-clerk", "+clerk"]
        assert lives(system) == {"p": 1, "p/w": 2, "p/a": 2}


async def test_a_group_restart_ends_the_calls_of_a_session() -> None:
    """Also while its loop waits for a restart of its own: what they stand on is new."""
    for between in (say("I wait"), fail(RuntimeError("lost the thread"))):
        diary = Diary()
        spec = clerk(
            "a", call("background", seconds=500), between, say("and then?"), say("cut off"), diary=diary, backoff=Backoff(9)
        )
        async with open_system() as system:
            await system.start(Supervisor(spec, ChildSpec(Worker, name="w"), name="p", strategy="one_for_all"))
            await system.session("p/a").send("go")
            await trio.sleep(1)
            await crash(system, "p/w")
            await system.wait_idle()
            assert (diary.cancelled, trio.current_time() % 100 < 20) == (["call_1"], True)
            assert [row.status for row in (await system.session("p/a").record()).calls] == ["cancelled"]


@pytest.mark.parametrize(("strategy", "restarted"), [("one_for_one", 1), ("rest_for_one", 2), ("one_for_all", 2)])
async def test_which_sessions_a_crash_of_a_sibling_restarts(strategy: Any, restarted: int) -> None:
    """As the table has it for any child."""
    async with open_system() as system:
        await system.start(Supervisor(ChildSpec(Worker, name="w"), clerk("a"), name="p", strategy=strategy))
        await crash(system, "p/w")
        await system.wait_idle()
        assert lives(system)["p/a"] == restarted


async def test_a_temporary_session_goes_down_with_its_group_and_is_kept() -> None:
    """It is not started again with it, only with the next start of the tree."""
    tree = Supervisor(ChildSpec(Worker, name="w"), clerk("a", say("here")), name="p", strategy="one_for_all")
    temporary = Supervisor(tree.children[0], clerk("a", say("here"), restart="temporary"), name="p", strategy="one_for_all")
    async with open_system() as system:
        ref = await system.start(temporary)
        await crash(system, "p/w")
        await system.wait_idle()
        assert lives(system) == {"p": 1, "p/w": 2}
        await ref.stop()
        await system.start(tree)
        assert await system.session("p/a").ask("go") == "here"


async def test_a_new_activation_that_fails_counts_and_too_many_escalate() -> None:
    """Then the failure is the tree's, and the session is kept for the next start."""
    diary: list[str] = []
    spec = clerk("a", agent=noted(diary, fails=[2, 3, 4]))
    with pytest.raises(Exception, match="p/a"):
        async with open_system() as system:
            await system.start(Supervisor(ChildSpec(Worker, name="w"), spec, name="p", strategy="one_for_all", max_restarts=3))
            await crash(system, "p/w")
            await trio.sleep(100)
    assert diary == ["+clerk", "-clerk", *["+clerk"] * 3]


async def test_a_new_activation_that_fails_once_is_tried_again() -> None:
    """Within the count."""
    diary: list[str] = []
    async with open_system() as system:
        spec = clerk("a", say("at last"), agent=noted(diary, fails=[2]))
        await system.start(Supervisor(ChildSpec(Worker, name="w"), spec, name="p", strategy="one_for_all"))
        await crash(system, "p/w")
        await trio.sleep(0.5)
        assert await system.session("p/a").ask("go") == "at last"


async def test_the_stop_of_a_significant_session_is_no_auto_shutdown() -> None:
    """Somebody asked for it, as with any child."""
    async with open_system() as system:
        spec = clerk("a", restart="temporary", significant=True)
        ref = await system.start(Supervisor(ChildSpec(Worker, name="w"), spec, name="p", auto_shutdown="any"))
        await system.session("p/a").stop()
        await system.wait_idle()
        assert ref.status is Status.IDLE


async def test_a_nested_supervisor_that_starts_again_finds_its_sessions() -> None:
    """The tree below it is made afresh, the session is the same one."""
    inner = Supervisor(ChildSpec(Worker, name="w"), clerk("a", say("one"), say("two")), name="q", max_restarts=0)
    async with open_system() as system:
        await system.start(Supervisor(inner, name="p"))
        assert await system.session("p/q/a").ask("go") == "one"
        await crash(system, "p/q/w")
        await system.wait_idle()
        assert lives(system) == {"p": 1, "p/q": 2, "p/q/w": 1, "p/q/a": 1}
        assert await system.session("p/q/a").ask("go") == "two"
        assert len((await system.session("p/q/a").record()).items) == 4


async def test_a_handler_that_outlives_its_activation_commits_nothing() -> None:
    """The message it had is the new activation's."""
    begun: list[float] = []

    class Stubborn(Clerk):
        @handle
        async def count(self, message: Count) -> None:
            begun.append(trio.current_time())
            if len(begun) == 1:
                with trio.CancelScope(shield=True):
                    await trio.sleep(60)

    async with open_system() as system:
        spec = clerk("a", agent=Stubborn, shutdown=2)
        await system.start(Supervisor(ChildSpec(Worker, name="w"), spec, name="p", strategy="one_for_all"))
        await system.session("p/a").send(Count())
        await trio.sleep(1)
        await crash(system, "p/w")
        await trio.sleep(100)
        assert begun == [0, pytest.approx(3, abs=0.1)]
        assert system.tree().zombies == ()


# ------------------------------------------------------------------ limits, stores
async def test_the_limits_of_the_tree_bind_its_sessions() -> None:
    """Its own may be narrower; what the supervisor and the spec say holds."""
    spec = clerk("a", limits=Limits(max_unread=5), options={"limits": Limits(max_calls=2)})
    async with open_system(limits=Limits(max_wait=9)) as system:
        await system.start(Supervisor(spec, name="p", limits=Limits(max_unread=7, max_hops=3)))
        limits = system.session("p/a")._session().state.limits
        assert (limits.max_unread, limits.max_hops, limits.max_wait, limits.max_calls) == (5, 3, 9, 2)
        with pytest.raises(ConfigError, match="max_wait=10 is wider"):
            await system.start(clerk("b", options={"limits": Limits(max_wait=10)}))


async def test_a_tree_that_spent_its_requests_makes_no_more() -> None:
    """Its sessions share what their supervisor may spend."""
    async with open_system() as system:
        await system.start(Supervisor(clerk("a", say("one")), clerk("b", say("two")), name="p", limits=Limits(max_requests=1)))
        assert await system.session("p/a").ask("go") == "one"
        with pytest.raises(RunFailed, match="what runs below p"):
            await system.session("p/b").ask("go")
