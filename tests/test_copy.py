"""Sessions taken elsewhere: exported, imported, forked."""

from pathlib import Path

import msgspec
import pytest
import trio
from scenes import Diary, Worker, real_time, scene, virtual_time

from actors import CodecError, ConfigError, Media, ModelError, RecipientStopped, RunFailed, UserItem, UserMessage
from actors.models import ScriptedModel, call, calls, fail, say
from actors.models._transcript import Validator
from supervision import open_system

pytestmark = virtual_time


class Clerk(Worker):
    """You work elsewhere."""

    model = ScriptedModel([])


# ------------------------------------------------------------------ export, import
async def test_an_exported_session_is_the_same_elsewhere() -> None:
    """Transcript, ledger, media; the next words go on from there."""
    picture = Media("image/png", b"\x00\xff")
    async with scene(call("work", text="é"), call("broken", text="x"), say("done"), agent=Clerk) as here:
        await here.session.ask(UserMessage("look", (picture,)))
        text, old = await here.session.export(), await here.record()
    model = ScriptedModel([say("here too")])
    Clerk.model = model
    async with open_system(agents=[Clerk]) as system:
        session = await system.import_session(text, session="copy")
        new = await session.record()
        assert (new.items, new.calls, new.agent, new.status) == (old.items, old.calls, "Clerk", "idle")
        assert await session.ask("and now?") == "here too"
        assert [item.text for item in model.requests[0].transcript if isinstance(item, UserItem)] == [
            "look\n[attached image/png]",
            "and now?",
        ]


async def test_a_session_that_ended_can_still_be_read_and_exported() -> None:
    """In memory as in a store: what it did is there until it is deleted."""
    async with scene(call("work"), say("done")) as here:
        await here.session.ask("go")
        await here.session.stop()
        record = await here.record()
        assert (record.status, len(record.items)) == ("stopped", 4)
        assert '"stopped"' not in await here.session.export()
        await here.session.delete()
        with pytest.raises(RecipientStopped):
            await here.record()


async def test_calls_of_a_copy_get_ids_that_are_new_in_it() -> None:
    """No id stands twice in a history."""
    async with scene(call("work"), say("a"), call("work"), say("b")) as here:
        await here.session.ask("go")
        other = await here.session.fork(session="t")
        await other.ask("again")
        assert [row.id for row in (await other.record()).calls] == ["call_1", "call_2"]


async def test_a_running_session_is_copied_with_every_call_settled() -> None:
    """What goes on, goes on in the original alone."""
    turn = calls(call("background", seconds=60), call("work", seconds=60), call("work", seconds=60))
    async with scene(turn, say("ok"), say("seen"), say("copy"), max_rounds=5) as here:
        await here.session.send("go")
        await trio.sleep(3)
        other = await here.session.fork(session="t")
        record = await other.record()
        Validator().check(record.items)
        assert [row.status for row in record.calls] == ["orphaned"] * 3
        assert (record.status, here.status()) == ("idle", "running")
        await here.session.stop_run()


async def test_a_detached_call_is_told_to_be_lost() -> None:
    """Its placeholder promised mail."""
    async with scene(call("background", seconds=60), say("later"), say("copy"), say("seen")) as here:
        await here.session.send("go")
        await trio.sleep(3)
        other = await here.session.fork(session="t")
        await trio.sleep(3)
        assert "orphaned" in here.words(2)
        assert (await other.record()).items[-1].text == "copy"  # type: ignore[union-attr]


async def test_a_fork_goes_on_from_an_item_with_a_fresh_mailbox() -> None:
    """What came after is not in it, unread mail neither."""
    async with scene(say("one"), say("two"), say("other two")) as here:
        await here.session.ask("1")
        await here.session.ask("2")
        await here.session.pause()
        await here.session.send("unread")
        other = await here.session.fork(1, session="t")
        assert [getattr(item, "text", "") for item in (await other.record()).items] == ["1", "one"]
        assert await other.ask("not 2") == "other two"
        assert len(here.request(2).transcript) == 3


async def test_a_fork_between_calls_and_their_results_has_results() -> None:
    """A provider would refuse it otherwise; those it had are kept."""
    async with scene(call("work"), say("done"), say("forked")) as here:
        await here.session.ask("go")
        other = await here.session.fork(1, session="t")
        assert await other.ask("and?") == "forked"
        assert here.results(2) == ["worked"]


async def test_what_a_provider_refused_stays_hidden_in_a_copy() -> None:
    """It would refuse it again."""
    async with scene(fail(ModelError(status=400, reason="too long")), say("ok")) as here:
        with pytest.raises(RunFailed):
            await here.session.ask("x" * 99)
        other = await here.session.fork(session="t")
        await other.ask("short")
        assert "x" * 9 not in here.words(1)
        assert "not shown: the provider refused it: too long" in here.words(1)


@real_time
async def test_copies_are_kept_where_the_original_is(tmp_path: Path) -> None:
    """A store has them as any other session, also the next time."""
    store = f"sqlite:///{tmp_path / 'x.db'}"
    Clerk.model = ScriptedModel([call("work"), say("one")])
    async with open_system(store=store) as system:
        session = await system.open(Clerk, session="s", deps=Diary())
        await session.ask("go")
        await session.fork(session="fork")
        await system.import_session(await session.export(), session="import")
        old = (await session.record()).items
    async with open_system(store=store, agents=[Clerk]) as system:
        assert [each.id for each in await system.sessions()] == ["s", "fork", "import"]
        for name in ("fork", "import"):
            assert (await system.session(name).record()).items == old


# ------------------------------------------------------------------ refusals
@pytest.mark.parametrize("at", [-1, 2, 99])
async def test_a_fork_from_an_item_that_is_not_there_is_refused(at: int) -> None:
    """The text says how many there are."""
    async with scene(say("one")) as here:
        await here.session.ask("1")
        with pytest.raises(ConfigError, match=f"s has 2 items, from 0; found at={at}"):
            await here.session.fork(at)


async def test_a_copy_takes_nobodys_id() -> None:
    """It is a new session."""
    async with scene(say("one")) as here:
        await here.session.ask("1")
        with pytest.raises(ConfigError, match="there is a session s already"):
            await here.session.fork(session="s")


async def test_a_session_of_an_agent_nobody_knows_is_not_imported() -> None:
    """The text says what to write."""
    async with scene(say("one"), agent=Clerk) as here:
        await here.session.ask("1")
        text = await here.session.export()
    async with open_system() as system:
        with pytest.raises(
            ConfigError, match=r"one of Clerk, which is not registered here; write open_system\(agents=\[Clerk\]\)"
        ):
            await system.import_session(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "this is no exported session"),
        ("[]", "found postroom_session=None, expected 1"),
        ('{"postroom_session": 2}', "found postroom_session=2, expected 1"),
        ('{"postroom_session": 1}', "damaged: KeyError"),
        ('{"postroom_session": 1, "agent": "A", "owner": null, "items": [{"type": "assistant"}], "calls": []}', "damaged"),
        ('{"postroom_session": 1, "agent": "A", "owner": null, "items": [7], "calls": []}', "damaged"),
    ],
)
async def test_a_text_that_is_no_session_says_what_is_wrong(text: str, told: str) -> None:
    """Nothing of it is kept."""
    async with open_system() as system:
        with pytest.raises(CodecError, match=told):
            await system.import_session(text)
        assert await system.sessions() == []


async def test_a_history_that_no_provider_would_take_is_not_imported() -> None:
    """Whoever edited it hears of it now, not at the next request."""
    async with scene(call("work"), say("one")) as here:
        await here.session.ask("1")
        doc = msgspec.json.decode(await here.session.export())
        del doc["items"][2]
        with pytest.raises(CodecError, match="calls are followed at once by their results"):
            await here.system.import_session(msgspec.json.encode(doc).decode())
