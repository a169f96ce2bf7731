"""What a crash costs: one message, one line in the log; and who is restarted with whom."""

from functools import partial
from typing import Any

import pytest
import trio
from cast import Add, Boom, Crash, Sleep, Worker
from trio.testing import wait_all_tasks_blocked

from actors import Actor, ActorCrashed, ActorRef, Failed, Fenced, RestartIntensityExceeded, Status, Stopped, handle
from supervision import ChildSpec, Supervisor, System, open_system

pytestmark = pytest.mark.virtual_time


async def crash(ref: ActorRef, error: BaseException | None = None) -> None:
    """Let it fail, and hear of it."""
    with pytest.raises(ActorCrashed):
        await ref.ask(Crash(error or Boom()))


def generations(system: System) -> dict[str, int]:
    """How many lives each has had."""
    return {node.address: node.generation for node in system.tree()}


# ------------------------------------------------------------------ one message
@pytest.mark.parametrize("how", ["ask", "tell"])
async def test_an_ask_and_a_tell_that_raise_have_the_same_fate(how: str) -> None:
    """The actor crashes and begins anew; the message is a dead letter with its error, and is not handled again."""
    async with open_system() as system:
        ref = await system.spawn(Worker, name="a")
        message = Crash(Boom("why"))
        if how == "ask":
            with pytest.raises(ActorCrashed):
                await ref.ask(message)
        else:
            ref.send_nowait(message)
        await system.wait_idle()
        assert generations(system) == {"a": 2}
        assert [letter.envelope.body for letter in (system.dead_letters[0],)] == [message]
        assert "Boom('why')" in system.dead_letters[0].reason
        assert system.dead_letters.total == 1


async def test_the_mail_behind_a_crash_is_handled_by_the_next_life() -> None:
    """Tells and asks alike, in order; nobody's asker is told a lie."""
    seen: list[Any] = []
    async with open_system() as system, trio.open_nursery() as nursery:
        ref = await system.spawn(Worker, seen)
        for message in (1, Crash(Boom()), 2):
            ref.send_nowait(message)
        nursery.start_soon(_expect, ref, Add(3), 3)
        await system.wait_idle()
        assert [each for each in seen if isinstance(each, int)] == [1, 2]


async def _expect(ref: ActorRef, message: object, wanted: object) -> None:
    assert await ref.ask(message) == wanted


class Flaky(Worker):
    """Fails so many times on each bytes message, over all its lives."""

    def __init__(self, seen: list[Any], failures: int) -> None:
        super().__init__(seen)
        self.failures = failures

    @handle
    def flaky(self, message: bytes) -> str:
        self.seen.append(message)
        if self.seen.count(message) <= self.failures:
            raise Boom
        return "done"


@pytest.mark.parametrize(("deliveries", "failures", "tries", "lost"), [(1, 1, 1, 1), (2, 1, 2, 0), (3, 2, 3, 0), (3, 9, 3, 1)])
async def test_a_message_is_begun_as_often_as_is_allowed(deliveries: int, failures: int, tries: int, lost: int) -> None:
    """Once, unless its handler can be trusted to be repeated; then the asker waits for the last try."""
    seen: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Flaky, seen, failures, max_deliveries=deliveries, max_restarts=9)
        if lost:
            with pytest.raises(ActorCrashed):
                await ref.ask(b"x")
        else:
            assert await ref.ask(b"x") == "done"
        await ref.ask(Add(1))
        assert (seen.count(b"x"), system.dead_letters.total) == (tries, lost)


async def test_redelivery_leaves_no_trace() -> None:
    """Messages that needed a second try are forgotten once they are done."""
    seen: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Flaky, seen, 1, name="flaky", max_deliveries=2, max_restarts=999)
        for number in range(100):
            await ref.ask(b"%d" % number)
        assert len(system._root.router.places["flaky"].deliveries or {}) <= 1


# ------------------------------------------------------------------ one line in the log
async def test_a_crash_is_logged_once_with_what_follows(caplog: pytest.LogCaptureFixture) -> None:
    """Path, attempt n of m, what happens next, and the traceback; a reader of the log needs no more."""
    async with open_system() as system:
        ref = await system.spawn(Worker, name="a", max_restarts=2)
        await system.start(Supervisor(ChildSpec(Worker, name="b"), ChildSpec(Worker, name="c", restart="temporary"), name="p"))
        for each in (ref, ref, ref, system.ref("p/b"), system.ref("p/c")):
            await crash(each, Boom("why"))
            await system.wait_idle()
    assert [record.getMessage().split("\n")[0] for record in caplog.records] == [
        "a crashed in life 1: Boom('why'); restart 1 of at most 2 within 5 s",
        "a crashed in life 2: Boom('why'); restart 2 of at most 2 within 5 s",
        "a crashed in life 3: Boom('why'); no more than 2 restarts: it has failed",
        "p/b crashed in life 1: Boom('why'); restart 1 of at most 3 within 5 s",
        "p/c crashed in life 1: Boom('why'); it is not restarted",
    ]
    assert all("Traceback (most recent call last)" in record.getMessage() for record in caplog.records)


async def test_every_member_of_a_group_that_crashes_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Two at once, one of them while it is being stopped for the other; and one on its way out."""

    class Clumsy(Worker):
        async def on_stop(self, exit: object) -> None:
            raise Boom("clumsy")

    async with open_system() as system:
        specs = [ChildSpec(kind, name=name) for name, kind in (("a", Worker), ("b", Worker), ("c", Clumsy))]
        await system.start(Supervisor(*specs, name="p", strategy="one_for_all"))
        for name in "ab":
            system.ref(f"p/{name}").send_nowait(Crash(Boom(name)))
        await system.wait_idle()
        assert generations(system) == {"p": 1, "p/a": 2, "p/b": 2, "p/c": 2}
        assert sorted(record.getMessage()[:3] for record in caplog.records) == ["p/a", "p/b", "p/c"]
        caplog.clear()
    assert [record.getMessage()[:3] for record in caplog.records] == ["p/c"]


# ------------------------------------------------------------------ groups
async def test_all_for_one_stops_in_reverse_and_starts_in_order() -> None:
    """With fresh state, and mail that waits."""
    diary: list[str] = []

    class Noted(Worker):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        async def on_start(self) -> None:
            diary.append(f"+{self.name}")

        async def on_stop(self, exit: object) -> None:
            diary.append(f"-{self.name}")

    async with open_system() as system:
        specs = (ChildSpec(Noted, name, name=name) for name in "abc")
        await system.start(Supervisor(*specs, name="p", strategy="one_for_all"))
        await system.ref("p/a").ask(Add(5))
        await crash(system.ref("p/b"))
        await system.wait_idle()
        assert diary[3:] == ["-b", "-c", "-a", "+a", "+b", "+c"]
        assert await system.ref("p/a").ask(Add(1)) == 1


async def test_rest_for_one_leaves_those_before_alone() -> None:
    """They do not stand on what failed."""
    async with open_system() as system:
        specs = (ChildSpec(Worker, name=name) for name in "abc")
        await system.start(Supervisor(*specs, name="p", strategy="rest_for_one"))
        await crash(system.ref("p/b"))
        await system.wait_idle()
        assert generations(system) == {"p": 1, "p/a": 1, "p/b": 2, "p/c": 2}


async def test_a_busy_sibling_that_will_not_stop_can_commit_nothing_late() -> None:
    """The group goes on without it; what it still sends or answers is refused, and its successor is fresh."""
    fenced: list[str] = []

    class Committer(Worker):
        @handle
        async def sleep(self, message: Sleep) -> str:
            self.total, mail = 99, self.mail
            with trio.CancelScope(shield=True):
                await trio.sleep(message.seconds)
            for act in (partial(store.send_nowait, "late"), partial(self.reply, "late", to=mail)):
                try:
                    act()
                except Fenced:
                    fenced.append("refused")
            return "late"

    async with open_system() as system, trio.open_nursery() as nursery:
        store = await system.spawn(Worker)
        specs = (ChildSpec(Committer, name="busy", shutdown=1), ChildSpec(Worker, name="other"))
        await system.start(Supervisor(*specs, name="p", strategy="one_for_all"))
        busy = system.ref("p/busy")
        nursery.start_soon(_stopped, busy, Sleep(10))
        await trio.sleep(1)
        await crash(system.ref("p/other"))
        assert await busy.ask(Add(1)) == 1
        await trio.sleep(20)
        assert fenced == ["refused", "refused"]


async def _stopped(ref: ActorRef, message: object) -> None:
    with pytest.raises(Exception, match="ended"):
        await ref.ask(message, timeout=None)


async def test_two_ends_at_once_restart_a_group_once() -> None:
    """The second is answered by the restart for the first: one attempt, one new life each."""
    async with open_system() as system:
        specs = (ChildSpec(Worker, name=name) for name in "ab")
        await system.start(Supervisor(*specs, name="p", strategy="one_for_all", max_restarts=1))
        for name in "ab":
            system.ref(f"p/{name}").send_nowait(Crash(Boom()))
        await system.wait_idle()
        assert generations(system) == {"p": 1, "p/a": 2, "p/b": 2}


async def test_a_temporary_sibling_goes_down_with_its_group_for_good() -> None:
    """Its name is free and its mail dead letters: nothing waits for a life that never comes."""
    async with open_system() as system:
        specs = [ChildSpec(Worker, name="a"), ChildSpec(Worker, name="once", restart="temporary")]
        await system.start(Supervisor(*specs, name="p", strategy="one_for_all"))
        once = system.ref("p/once")
        await crash(system.ref("p/a"))
        assert await once.wait() == Stopped("its group restarts")
        await system.wait_idle()
        assert generations(system) == {"p": 1, "p/a": 2}


async def test_a_finished_transient_sibling_starts_again_with_its_group() -> None:
    """OTP's reading: a group is restarted whole."""

    async def brief(_context: Actor) -> None:
        await trio.sleep(1)

    async with open_system() as system:
        await system.start(
            Supervisor(ChildSpec(Worker, name="a"), ChildSpec(brief, name="brief"), name="p", strategy="one_for_all")
        )
        await trio.sleep(2)
        assert generations(system) == {"p": 1, "p/a": 1}
        await crash(system.ref("p/a"))
        await wait_all_tasks_blocked()
        assert generations(system) == {"p": 1, "p/a": 2, "p/brief": 1}


async def test_a_start_that_fails_in_a_group_restart_is_tried_again_from_there() -> None:
    """Each try counts; those before it are not started twice."""
    starts: list[str] = []

    class Starting(Worker):
        def __init__(self, name: str) -> None:
            super().__init__()
            starts.append(name)
            if name == "b" and starts.count("b") in {2, 3}:
                raise Boom

    async with open_system() as system:
        specs = (ChildSpec(Starting, name, name=name) for name in "abc")
        await system.start(Supervisor(*specs, name="p", strategy="one_for_all"))
        await crash(system.ref("p/a"))
        await system.wait_idle()
        assert "".join(starts) == "abc" + "abbb" + "c"
        assert generations(system) == {"p": 1, "p/a": 2, "p/b": 4, "p/c": 2}


# ------------------------------------------------------------------ spawned ones
async def test_a_spawned_actor_past_its_budget_has_failed_and_nothing_else_has() -> None:
    """A bad actor never takes the system down; its exit says how often it was tried."""
    async with open_system() as system:
        bad, good = await system.spawn(Worker, name="bad"), await system.spawn(Worker)
        for _ in range(4):
            await crash(bad, Boom("why"))
        exit = await bad.wait()
        assert isinstance(exit, Failed)
        assert isinstance(exit.error, RestartIntensityExceeded)
        assert str(exit.error) == "bad gave up after 3 restarts within 5 s; last: bad: Boom: why"
        assert (bad.status, await good.ask(Add(1))) == (Status.FAILED, 1)


@pytest.mark.parametrize(("most", "within", "pause", "lives"), [(1, 5, 0, 0), (1, 5, 6, 3), (5, 5, 0, 3)])
async def test_a_budget_can_be_given(most: int, within: float, pause: float, lives: int) -> None:
    """So many in so many seconds."""
    async with open_system() as system:
        ref = await system.spawn(Worker, name="a", max_restarts=most, within=within)
        for _ in range(2):
            await crash(ref)
            await trio.sleep(pause)
        assert generations(system).get("a", 0) == lives


async def test_a_started_actor_is_counted_like_a_spawned_one_then_raised() -> None:
    """It is the program, not a part that can be spared."""

    async def fail_twice() -> None:
        async with open_system() as system:
            ref = await system.start(ChildSpec(Worker, name="a", restart="permanent"))
            for _ in range(4):
                await crash(ref)
            await trio.sleep_forever()

    with pytest.raises(RestartIntensityExceeded):
        await fail_twice()


@pytest.mark.parametrize("grouped", [False, True])
async def test_a_cancelled_that_nobody_meant_is_a_crash(grouped: bool) -> None:
    """Kept from a scope that was left and raised again: it must not pass for an orderly stop, which is not restarted."""

    class Stale(Worker):
        @handle
        async def stale(self, message: bytes) -> None:
            kept: list[trio.Cancelled] = []
            with trio.CancelScope() as scope:
                scope.cancel()
                try:
                    await trio.sleep(1)
                except trio.Cancelled as cancelled:
                    kept.append(cancelled)
            raise BaseExceptionGroup("of a nursery", kept) if grouped else kept[0]

    async with open_system() as system:
        ref = await system.spawn(Stale, name="a")
        with pytest.raises(ActorCrashed, match="nobody had cancelled it"):
            await ref.ask(b"")
        assert await ref.ask(Add(1)) == 1
        assert generations(system) == {"a": 2}
