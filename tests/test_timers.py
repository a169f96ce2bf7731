"""Timers: what a session is told later, by its host and by itself."""

import pytest
import trio
from scenes import scene, virtual_time
from storms import SlowStore

from actors import ConfigError, LeaseLost, Limits, RecipientStopped, Stopped, StoreError, TimerFired, UserItem
from actors.agent._record import Commit, State
from actors.agent._timers import Timers, timer
from actors.models import call, calls, say, slow
from actors.store.memory import MemoryStore
from supervision import open_system

pytestmark = virtual_time
TIMERS = ("set_timer", "cancel_timer")


# ------------------------------------------------------------------ a host's
async def test_a_timer_wakes_an_idle_session_with_its_text() -> None:
    """As mail of a kind of its own; nobody polls."""
    async with scene(say("ok")) as here:
        await here.session.send_after(60, "look again", label="watch")
        await trio.sleep(61)
        assert [event.at for event in here.events("answer")] != []
        [header, text] = here.words(0).splitlines()
        assert header.endswith(" from timer watch]")
        assert text == "look again"


async def test_without_a_label_a_timer_is_called_by_its_id() -> None:
    """The id is what cancels it."""
    async with scene(say("ok")) as here:
        id = await here.session.send_after(1, "x")
        await trio.sleep(2)
        assert f"from timer {id}]" in here.words(0)


async def test_a_cancelled_timer_never_fires() -> None:
    """Cancelling says whether it came in time."""
    async with scene(say("ok")) as here:
        id = await here.session.send_after(5, "x")
        fired = await here.session.send_after(1, "y")
        await trio.sleep(2)
        told = [await here.session.cancel_timer(each) for each in (id, id, fired, "nobody")]
        await trio.sleep(10)
        assert (told, here.asked) == ([True, False, False, False], 1)


@pytest.mark.parametrize("at", [4.5, 5, 5.5, 6.5])
async def test_a_timer_is_cancelled_or_fires_however_long_the_store_takes(at: float) -> None:
    """Not both: whoever was told that it never will relies on it."""
    async with scene(say("told"), store=SlowStore(1)) as here:
        id, began = await here.session.send_after(5, "x"), trio.current_time()
        await trio.sleep_until(began + at)
        cancelled = await here.session.cancel_timer(id)
        await trio.sleep(20)
        assert (cancelled, here.asked) == ((True, 0) if at <= 5 else (False, 1))


@pytest.mark.parametrize("seconds", [2, 3, 4, 5])
async def test_a_model_that_cancels_its_timer_is_told_the_truth(seconds: float) -> None:
    """Its timer may be on its way to it."""
    cancels = slow(seconds, call("cancel_timer", timer_id="timer-1"))
    script = (call("set_timer", after_seconds=5, text="ding"), cancels, say("ok"), say("heard"))
    async with scene(*script, store=SlowStore(1), toolbox=TIMERS) as here:
        await here.session.ask("go")
        await here.idle()
        await trio.sleep(20)
        told = any("ding" in each.text for each in here.request(-1).transcript if isinstance(each, UserItem))
        assert here.results(2) == ['{"cancelled":false}' if told else '{"cancelled":true}']


async def test_a_timer_is_cancelled_once() -> None:
    """Two who do it at once are not both told that they did."""
    async with scene(store=SlowStore(1)) as here, trio.open_nursery() as nursery:
        id, told = await here.session.send_after(5, "x"), []

        async def cancel() -> None:
            told.append(await here.session.cancel_timer(id))

        nursery.start_soon(cancel)
        nursery.start_soon(cancel)
        await trio.sleep(3)
        assert sorted(told) == [False, True]


async def test_a_timer_that_fires_in_a_run_is_read_at_the_next_receive_point() -> None:
    """It interrupts nobody."""
    async with scene(call("work", seconds=10), say("ok")) as here:
        await here.session.send_after(3, "mind the time", label="t")
        await here.session.ask("go")
        assert trio.current_time() == 10
        assert "mind the time" in here.words(1)


async def test_a_full_mailbox_makes_a_timer_wait() -> None:
    """It is refused like anybody else's words, but not lost."""
    async with scene(call("work", seconds=10), say("ok"), say("seen"), limits=Limits(max_unread=1)) as here:
        await here.session.send_after(3, "late", label="t")
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.send("full")
        await trio.sleep(4)
        assert len(here.session._session().state.timers) == 1
        await trio.sleep(20)
        assert (here.asked, "late" in here.words(1) + here.words(2)) == (3, True)


async def test_the_end_of_a_session_is_the_end_of_its_timers() -> None:
    """Nobody is left to tell."""
    async with scene() as here:
        await here.session.send_after(5, "x")
        await here.session.stop()
        await trio.sleep(10)
        assert here.system.dead_letters.total == 0


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
async def test_what_is_no_time_is_refused(seconds: float) -> None:
    """Now is the soonest."""
    async with scene() as here:
        with pytest.raises(ConfigError, match="send_after: found seconds="):
            await here.session.send_after(seconds, "x")


async def test_timers_are_kept_with_the_session_and_taken_up_again() -> None:
    """What fell due meanwhile fires at once, the rest in its time."""
    store, fired = MemoryStore(), []
    state = State("s", "Worker")
    await store.create(state)
    early, late = timer("a", -5, "early", None, 0), timer("b", 3600, "late", "l", 2)

    class Clock:
        def after(self, seconds: float, fn: object) -> object:
            fired.append((round(seconds), fn))
            return fn

        def forget(self, entry: object) -> None:
            fired.remove(next(each for each in fired if each[1] is entry))

    await Timers(state, store, Clock()).set(early, 0)
    await Timers(state, store, Clock()).set(late, 3600)
    fired.clear()
    again = Timers(state, store, Clock())
    again.arm_all()
    again.arm_all()
    assert [seconds for seconds, _ in fired] == [0, 3600]
    await fired[0][1]()  # type: ignore[operator]
    await fired[0][1]()  # type: ignore[operator]
    assert [envelope.body for envelope in store.mailbox("s").unread(0)] == [TimerFired("a", "early")]
    assert list(state.timers) == ["b"]


class Failing(MemoryStore):
    """A store whose disk is full for some commits that send mail, once somebody says so."""

    error: Exception = StoreError("the disk is full")
    left = 0

    async def commit(self, state: State, commit: Commit) -> None:
        """Keep it, or not."""
        if commit.mail and self.left:
            self.left -= 1
            raise self.error
        await super().commit(state, commit)


async def test_a_store_that_fails_makes_a_timer_wait(caplog: pytest.LogCaptureFixture) -> None:
    """It is told when there is room again; the system is not harmed."""
    store = Failing()
    async with scene(say("ok"), store=store) as here:
        store.left = 3
        await here.session.send_after(5, "late", label="t")
        await trio.sleep(7)
        assert here.asked == 0
        await trio.sleep(2)
        assert (here.asked, here.words(0).splitlines()[-1]) == (1, "late")
        assert caplog.text.count("could not be kept yet: the disk is full") == 3


@pytest.mark.parametrize("error", [LeaseLost("another process has it"), RecipientStopped(address="s", exit=Stopped())])
async def test_a_timer_of_a_session_that_is_gone_ends_quietly(error: Exception) -> None:
    """Whoever has the session now has its timers; of one that has ended nobody is told."""
    store = Failing()
    async with scene(say("ok"), store=store) as here:
        store.error, store.left = error, 1
        await here.session.send_after(5, "late")
        await trio.sleep(60)
        assert (here.asked, store.left) == (0, 0)
        assert await here.session.ask("hello") == "ok"


# ------------------------------------------------------------------ a model's
async def test_a_model_sets_a_timer_and_is_told() -> None:
    """Its run ends meanwhile; the count of rounds goes on."""
    script = (call("set_timer", after_seconds=60, text="check the build", label="build"), say("later"), say("checked"))
    async with scene(*script, toolbox=TIMERS) as here:
        await here.session.ask("go")
        assert here.results(1) == ['{"timer_id":"timer-1"}']
        await trio.sleep(70)
        assert here.asked == 3
        assert here.words(2).endswith("from timer build]\ncheck the build")
        assert here.session._session().state.rounds == 3


async def test_a_model_cancels_its_timer() -> None:
    """It says whether there was one."""
    setting, dropping = call("set_timer", after_seconds=60, text="x"), calls(*[call("cancel_timer", timer_id="timer-1")] * 2)
    async with scene(setting, dropping, say("ok"), toolbox=TIMERS) as here:
        await here.session.ask("go")
        assert here.results(2) == ['{"cancelled":true}', '{"cancelled":false}']
        await trio.sleep(100)
        assert here.asked == 3


@pytest.mark.parametrize("seconds", [-1, 1e12])
async def test_a_model_is_told_what_is_no_time(seconds: float) -> None:
    """A failed outcome, with what to write."""
    async with scene(call("set_timer", after_seconds=seconds, text="x"), say("ok"), toolbox=TIMERS) as here:
        await here.session.ask("go")
        assert here.results(1)[0].endswith("give a number from 0 to 31622400")


async def test_a_model_cannot_set_timers_without_end() -> None:
    """The refusal names those that are set."""
    async with scene(
        calls(*[call("set_timer", after_seconds=9, text="x")] * 65), say("ok"), *[say("x")] * 64, toolbox=TIMERS
    ) as here:
        await here.session.ask("go")
        assert here.outcomes(1) == ["completed"] * 64 + ["failed"]
        assert here.results(1)[64].startswith("failed: 64 timers are set, as many as may be: timer-")
        await here.session.stop()


async def test_mail_of_a_timer_carries_the_hops_of_the_run_that_set_it() -> None:
    """Else a timer would launder them."""
    async with open_system():
        assert timer("t", 1, "x", None, 5).hops == 5
