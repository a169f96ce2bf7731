"""Sessions that outlive their process: what is found again, what goes on by itself, what is told of the rest."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from durable import Clerk, Effects, killed, outcomes, played, said, system_on, until, url_of

from actors import (
    Agent,
    AskTimeout,
    ConfigError,
    IdConflict,
    Limits,
    MailboxFull,
    RecipientStopped,
    ResultsItem,
    Status,
    StoreError,
    UnknownRecipient,
)
from actors.models import call, calls, say, slow
from supervision import open_system, run


# ------------------------------------------------------------------ found again
async def test_a_session_is_found_again_as_it_was_left(place: Path | str) -> None:
    """Its words, its calls, its answers: the next process goes on where the last one stopped."""
    effects = Effects(waits=False)
    agent = played(call("book"), say("done"))
    async with system_on(place, agent) as system:
        session = await system.open(agent, session="s", owner="ada", deps=effects)
        assert await session.ask("go") == "done"
        await system.wait_idle()
        before = await session.record()
    later = played(say("and on"))
    async with system_on(place, later) as system:
        session = system.session("s")
        assert (await session.record()).items == before.items
        assert (await session.record()).calls == before.calls
        assert (await session.record()).owner == "ada"
        assert await session.ask("more") == "and on"
    assert effects.keys == ["s/call_1"]


def test_run_takes_a_store_by_name(place: Path | str) -> None:
    """One option more is all it takes."""
    assert run(played(say("first")), "go", store=url_of(place), session="s") == "first"
    assert run(played(say("second")), "more", store=url_of(place), session="s") == "second"


async def test_a_name_that_is_no_store_is_refused_with_what_would_be() -> None:
    """A typo must not keep sessions in memory."""
    for name in ("agents.db", "sqlite:/agents.db", "sqlite:///", "mysql://host"):
        with pytest.raises(ConfigError, match=r'names no store; write "sqlite:///agents.db"'):
            open_system(store=name)


async def test_sessions_are_listed_also_those_that_nobody_here_can_run(
    place: Path | str, caplog: pytest.LogCaptureFixture
) -> None:
    """They are left alone, and accept mail for whoever runs them."""
    async with system_on(place) as system:
        await system.open(played(), session="s", deps=Effects())
    async with system_on(place) as system:
        [found] = await system.sessions()
        assert (found.id, found.agent, found.status, found.unread) == ("s", "Clerk", Status.READY, 0)
        await system.ref("s").send("for later", id="one")
        [found] = await system.sessions()
        assert found.unread == 1
        with pytest.raises(AskTimeout):
            await system.session("s").wait_answer(0.1)
        assert "open_system(agents=[Clerk]); what waits for it here waits until a process runs it" in caplog.text
    async with system_on(place, played(say("heard"))) as system:
        assert await system.session("s").wait_answer() == "heard"
        assert said(await system.session("s").record()) == ["for later"]


async def test_a_session_that_was_stopped_for_good_stays_stopped(place: Path | str) -> None:
    """Nothing revives it."""
    async with system_on(place, Clerk) as system:
        session = await system.open(Clerk, session="s", deps=Effects())
        await session.stop()
    async with system_on(place, Clerk) as system:
        with pytest.raises(RecipientStopped):
            await system.session("s").send("still there?")
        with pytest.raises(RecipientStopped):
            await system.open(Clerk, session="s")
        with pytest.raises(UnknownRecipient, match="nobody has the address"):
            await system.session("t").send("hello")


async def test_a_session_that_is_deleted_leaves_its_id_behind(place: Path | str) -> None:
    """Late mail is refused, in this process and in the next; nobody can tell what it said."""
    async with system_on(place, Clerk) as system:
        live = await system.open(played(say("done")), session="live", deps=Effects())
        await live.ask("remember this")
        await system.open(Clerk, session="other", deps=Effects())
        await live.delete()
        with pytest.raises(UnknownRecipient):
            await system.session("nobody").delete()
    async with system_on(place, Clerk) as system:
        await system.session("other").delete()
        assert list(await system.sessions()) == []
        for session in ("live", "other"):
            with pytest.raises(RecipientStopped):
                await system.session(session).send("late")
            with pytest.raises(RecipientStopped):
                await system.open(Clerk, session=session)


# ------------------------------------------------------------------ mail
async def test_mail_to_a_stored_session_waits_for_the_disk(place: Path | str) -> None:
    """What cannot be durable at once is refused at once."""
    async with system_on(place) as system:
        session = await system.open(played(say("heard")), session="s", deps=Effects())
        with pytest.raises(trio.WouldBlock):
            session.send_nowait("now")
        assert (await session.send("then")).seq == 1


async def test_a_message_is_accepted_once_under_its_id_whoever_runs(place: Path | str) -> None:
    """The table remembers: there is no window in memory to fall out of."""
    async with system_on(place) as system:
        session = await system.open(played(say("heard")), session="s", deps=Effects())
        first = await session.send("once", id="web-1")
        await system.wait_idle()
    async with system_on(place, played()) as system:
        again = await system.session("s").send("once", id="web-1")
        assert (again.seq, first.duplicate, again.duplicate) == (first.seq, False, True)
        with pytest.raises(IdConflict):
            await system.session("s").send("twice", id="web-1")
        assert said(await system.session("s").record()) == ["once"]


async def test_threads_and_portals_send_durably(place: Path | str) -> None:
    """A web server's worker gets its receipt when the disk has it."""
    async with system_on(place) as system:
        session = await system.open(played(slow(60, say("late"))), session="s", deps=Effects())
        portal = system.portal("ada")
        assert (await trio.to_thread.run_sync(lambda: session.send_from_thread("one"))).seq == 1
        assert (await trio.to_thread.run_sync(lambda: portal.send("s", "two", id="x"))).seq == 2
        assert (await trio.to_thread.run_sync(lambda: portal.send("s", "two", id="x"))).duplicate


async def test_whoever_waits_for_room_gets_it_in_order(place: Path | str) -> None:
    """As in memory: the mailbox is bounded, and nobody is overtaken."""
    agent = played(slow(0.3, say("one")), say("two"), say("three"))
    async with system_on(place) as system:
        session = await system.open(agent, session="s", deps=Effects(), limits=Limits(max_unread=1))
        await session.send("first")
        await until(lambda: session.status is Status.RUNNING)
        await session.send("second")
        with pytest.raises(MailboxFull):
            await session.send("no room")
        async with trio.open_nursery() as nursery:
            for words in ("third", "fourth"):
                nursery.start_soon(partial(session.send, words, wait=10))
                await trio.sleep(0.02)
        await system.wait_idle()
        assert said(await session.record()) == ["first", "second", "third", "fourth"]


async def test_twenty_who_send_at_once_share_their_commits(path: Path) -> None:
    """One flush of the disk serves all that wait."""
    async with system_on(path) as system:
        await system.open(played(*[say("x")] * 40), session="s", deps=Effects())
        writer: Any = vars(system._root.store)["_writer"]
        before = writer.commits
        async with trio.open_nursery() as nursery:
            for number in range(100):
                nursery.start_soon(system.session("s").send, f"{number}")
        assert writer.commits - before < 60


# ------------------------------------------------------------------ what goes on by itself
async def test_a_run_that_was_cut_off_goes_on_without_being_asked(place: Path | str) -> None:
    """The request without an answer is made again."""
    async with system_on(place) as system:
        session = await system.open(played(slow(60, say("never"))), session="s", deps=Effects())
        await session.send("go")
        await until(lambda: session.status is Status.RUNNING)
    async with system_on(place, played(say("here I am"))) as system:
        assert await system.session("s").wait_answer() == "here I am"
        assert said(await system.session("s").record()) == ["go"]


async def test_a_call_that_was_killed_is_orphaned(place: Path | str) -> None:
    """Nobody knows how far it came, and the model is told so."""
    effects = Effects()
    await killed(place, played(call("book")), effects)
    async with system_on(place, played(say("I see")), deps=effects) as system:
        assert await system.session("s").wait_answer() == "I see"
        record = await system.session("s").record()
    assert (outcomes(record), record.calls[0].status, effects.keys) == (["orphaned"], "orphaned", [])
    [item] = [item for item in record.items if isinstance(item, ResultsItem)]
    assert item.results[0].text == "outcome unknown; it may have run"


async def test_an_idempotent_call_that_was_killed_is_started_again_under_its_key(place: Path | str) -> None:
    """Whoever keeps the key can tell the second start from a second call."""
    effects = Effects()
    await killed(place, played(call("note")), effects)
    async with system_on(place, played(say("noted")), deps=effects) as system:
        assert await system.session("s").wait_answer() == "noted"
        assert outcomes(await system.session("s").record()) == ["completed"]
    assert effects.keys == ["s/call_1"]


async def test_a_detached_idempotent_call_is_started_again_too(place: Path | str) -> None:
    """Its outcome was promised as mail, and comes as mail."""
    effects = Effects()
    await killed(place, played(call("note_later"), say("it runs")), effects)
    async with system_on(place, played(say("it has run")), deps=effects) as system:
        await system.session("s").wait_answer()
        await system.wait_idle()
        record = await system.session("s").record()
    assert (outcomes(record), record.calls[0].status, effects.keys) == (["running"], "completed", ["s/call_1"])


async def test_a_call_that_had_not_begun_begins(place: Path | str) -> None:
    """It was asked for, and no line of it ran: it waits for its slot in the next process."""
    effects = Effects()
    one_at_a_time = {"limits": Limits(max_calls=1)}
    await killed(place, type("Clerk", (played(calls(call("note"), call("book"))),), one_at_a_time), effects)
    async with system_on(place, played(say("both")), deps=effects) as system:
        assert await system.session("s").wait_answer() == "both"
        assert outcomes(await system.session("s").record()) == ["completed", "completed"]
    assert sorted(effects.keys) == ["s/call_1", "s/call_2"]


async def test_an_orderly_stop_tells_what_it_cut_off(place: Path | str) -> None:
    """A call that ran is cancelled and says why; one that may be started twice is started again."""
    effects = Effects()
    agent = played(calls(call("book"), call("note")))
    async with system_on(place, agent, deps=effects) as system:
        session = await system.open(agent, session="s", deps=effects)
        await session.send("go")
        await until(lambda: len(effects.keys) == 2)
        effects.waits = False
    async with system_on(place, played(say("back")), deps=effects) as system:
        assert await system.session("s").wait_answer() == "back"
        record = await system.session("s").record()
    assert [row.status for row in record.calls] == ["cancelled", "completed"]
    assert record.calls[0].outcome is not None
    assert record.calls[0].outcome.error == "shutdown"


async def test_a_pause_outlives_the_process(place: Path | str) -> None:
    """Mail waits with it, until somebody resumes."""
    async with system_on(place, Clerk) as system:
        session = await system.open(Clerk, session="s", deps=Effects())
        await session.pause()
        await session.send("wait")
        await system.wait_idle()
    async with system_on(place, played(say("at last"))) as system:
        session = system.session("s")
        await trio.sleep(0.05)
        assert (await session.record()).status is Status.PAUSED
        await session.resume()
        assert await session.wait_answer() == "at last"


async def test_limits_are_kept_with_the_session(place: Path | str) -> None:
    """Any process knows what may be sent to it."""
    async with system_on(place, Clerk) as system:
        await system.open(Clerk, session="s", deps=Effects(), limits=Limits(max_unread=1))
    async with system_on(place) as system:
        await system.session("s").send("one")
        with pytest.raises(MailboxFull):
            await system.session("s").send("two")


# ------------------------------------------------------------------ classes by name
async def test_two_classes_of_one_name_are_refused(place: Path | str) -> None:
    """Stored sessions know their class by name."""

    class Other(Agent):
        model = Clerk.model

    Other.__name__ = "Clerk"
    with pytest.raises(ConfigError, match="two agent classes are called Clerk"):
        open_system(store=url_of(place), agents=[Clerk, Other])


async def test_a_file_that_cannot_be_opened_is_told_on_entering(tmp_path: Path) -> None:
    """Before anything runs."""
    with pytest.raises(StoreError, match="its folder exists"):
        async with open_system(store=f"sqlite:///{tmp_path}/no/such/folder/agents.db"):
            pass


async def test_a_session_without_a_name_gets_one_soon_however_many_there_are(place: Path | str) -> None:
    """Each process begins to count at one; the store has all the names of those before it."""
    async with system_on(place) as system:
        names = {(await system.open(Clerk, deps=Effects())).address for _ in range(8)}
    looked = 0
    async with system_on(place) as system:
        store: Any = system._root.store
        find = store.find

        async def counted(session: str) -> Any:
            nonlocal looked
            looked += 1
            return await find(session)

        store.find = counted
        assert (await system.open(Clerk, deps=Effects())).address not in names
    assert looked < 8
