"""Runs: what begins one, what keeps it going, what ends it, and what is told when."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import pytest
import trio
from scenes import Worker, scene, virtual_time

from actors import (
    AgentMessage,
    FromActor,
    FromSession,
    FromSystem,
    FromUser,
    Limits,
    ModelError,
    RunFailed,
    Sender,
    UserItem,
    UserMessage,
    WakeKind,
)
from actors.models import Capabilities, Completion, ModelEvent, Request, Text, ToolCall, Usage, call, calls, fail, say, slow

pytestmark = virtual_time

LOOP = call("work")
MAIL = AgentMessage("news")


# ------------------------------------------------------------------ the budget of rounds
@pytest.mark.parametrize("cap", [1, 2, 3, 4])
async def test_a_cap_of_n_rounds_allows_one_more_to_wrap_up(cap: int) -> None:
    """N autonomous rounds, then one request that is told to say what it found."""
    async with scene(*[LOOP] * cap, say("so far"), max_rounds=cap) as here:
        assert await here.session.ask("go") == "so far"
        assert here.asked == cap + 1
        assert [request.tool_choice for request in here.model.requests] == ["auto"] * cap + ["none"]
        assert here.words(cap).startswith("You have used all rounds of this run.")
        assert here.request(cap).tools == here.request(0).tools
        assert [event.reason for event in here.events("run_stopped")] == ["limit"]


async def test_calls_in_the_wrap_up_are_answered_and_not_run() -> None:
    """A model that cannot be told to stop is stopped; its words are the answer."""
    stray = calls(say("what I have"), call("work"), call("work"))
    async with scene(LOOP, stray, say("next"), max_rounds=1) as here:
        assert await here.session.ask("go") == "what I have"
        await here.session.ask("and?")
        assert here.outcomes(2) == ["not_started", "not_started"]
        assert here.results(2)[0] == "not_started: the rounds of this run are used up"
        assert here.diary.began == ["call_1"]


async def test_a_wrap_up_without_words_ends_the_run_without_an_answer() -> None:
    """Nobody waits for ever."""
    async with scene(LOOP, LOOP, max_rounds=1) as here:
        with pytest.raises(RunFailed, match="the run ended: limit"):
            await here.session.ask("go")
        assert here.status() == "idle"


async def test_a_persons_mail_restarts_the_count() -> None:
    """The cap bounds what an agent does alone."""
    async with scene(*[slow(1, LOOP)] * 3, say("done"), max_rounds=2) as here:
        await here.session.send("go")
        await trio.sleep(1.5)
        assert await here.session.ask("go on") == "done"
        assert [request.tool_choice for request in here.model.requests] == ["auto"] * 4
        assert [event.round for event in here.events("turn_started")] == [1, 2, 1, 2]


async def test_a_run_woken_by_a_call_goes_on_with_the_count() -> None:
    """When it is spent, each such run gets one request to wrap up."""
    async with scene(calls(call("background", seconds=5)), say("ok"), say("told"), max_rounds=2) as here:
        await here.session.ask("go")
        await here.idle()
        assert [request.tool_choice for request in here.model.requests] == ["auto", "auto", "none"]
        assert here.words(2).endswith("worked")


async def test_mail_of_the_last_permitted_round_is_still_read() -> None:
    """The wrap-up is preceded by a last look."""
    async with scene(slow(5, LOOP), say("so far"), max_rounds=1) as here:
        await here.session.send("go")
        await trio.sleep(1)
        here.box.accept(MAIL, FromActor("clock"))
        await here.session.wait_answer()
        assert "You have used all rounds" in here.words(1)
        assert here.words(1).endswith("from actor clock]\nnews")


# ------------------------------------------------------------------ mail at the end of a turn
async def test_mail_after_a_final_answer_adds_a_round() -> None:
    """It came while the model was answering; nobody has to say it again."""
    async with scene(slow(5, say("first")), say("second")) as here:
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.send("and staging?")
        assert await here.session.wait_answer() == "second"
        assert [event.text for event in here.events("answer")] == ["first", "second"]
        assert [event.run for event in here.events("run_stopped")] == [1]


async def test_an_empty_turn_is_nudged_once_nobody_spoke() -> None:
    """The nudge is the loop's own and is told as such."""
    async with scene(say(""), say("done")) as here:
        assert await here.session.ask("go") == "done"
        assert here.words(1).startswith("Your last turn was empty.")
        assert [event.nudge for event in here.events("continuing")] == ["continuation"]
        [item] = here.request(1).transcript
        assert isinstance(item, UserItem)
        assert item.nudge == "continuation"


async def test_mail_after_an_empty_turn_replaces_the_nudge() -> None:
    """Somebody's words are better than ours."""
    async with scene(slow(5, say("")), say("done")) as here:
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.send("are you there?")
        await here.session.wait_answer()
        assert here.events("continuing") == []
        [item] = here.request(1).transcript
        assert isinstance(item, UserItem)
        assert [each.body.text for each in item.mail] == ["go", "are you there?"]


class Cut:
    """A model whose completion ends before it says anything."""

    name = "cut"
    capabilities = Capabilities()

    def __init__(self, stop: Literal["length", "refused"]) -> None:
        self._stop = stop

    @asynccontextmanager
    async def stream(self, _request: Request) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        """Nothing, and why."""
        yield self._events()

    async def _events(self) -> AsyncIterator[ModelEvent]:
        yield Completion((), Usage(), self._stop)


@pytest.mark.parametrize(
    ("stop", "reason"), [("length", "was cut off by its length limit"), ("refused", "the model refused to answer")]
)
async def test_an_empty_turn_that_was_cut_off_is_a_failure(stop: Literal["length", "refused"], reason: str) -> None:
    """A nudge would only be cut off again."""
    async with scene(model=Cut(stop)) as here:
        with pytest.raises(RunFailed, match=reason):
            await here.session.ask("go")
        assert here.status() == "failed"
        assert len(here.events("usage")) == 1


# ------------------------------------------------------------------ what wakes an idle session
WAKERS: list[tuple[Sender, WakeKind]] = [
    (FromActor("clock"), "tool"),
    (FromSystem("thread"), "tool"),
    (FromSession("boss"), "parent"),
    (FromSession("kid"), "child"),
    (FromSession("stranger"), "peer"),
]


@pytest.mark.parametrize(("sender", "kind"), WAKERS)
@pytest.mark.parametrize("wakes", [True, False])
async def test_mail_wakes_an_idle_session_if_its_kind_is_in_wake_on(sender: Sender, kind: WakeKind, *, wakes: bool) -> None:
    """What must not wake it waits with the rest."""
    kinds: list[WakeKind] = ["user", *([kind] if wakes else [])]
    async with scene(*[say("ok")] * 2, limits=Limits(wake_on=kinds)) as here:
        state = here.session._session().state
        state.parent = "boss"
        await here.system.open(Worker, session="kid", parent="s", model=here.model)
        here.box.accept(MAIL, sender)
        await here.idle()
        assert here.asked == wakes
        await here.session.ask("anything new?")
        assert "news" in here.request(-1).transcript[0].text  # type: ignore[union-attr]


async def test_by_default_all_but_peers_wake_a_session() -> None:
    """A stranger cannot make an agent spend money."""
    async with scene(say("ok")) as here:
        here.box.accept(MAIL, FromSession("stranger"))
        await here.idle()
        assert here.asked == 0
        assert len(here.unread()) == 1


async def test_a_run_waits_for_its_detached_calls() -> None:
    """Its status says so, and it ends when they have."""
    async with scene(call("background", seconds=5), say("ok"), say("seen")) as here:
        await here.session.ask("go")
        await trio.sleep(1)
        assert here.status() == "waiting"
        await here.idle()
        assert here.status() == "idle"
        statuses = [event.status.value for event in here.events("status")]
        assert statuses == ["running", "waiting", "running", "idle"]
        assert [event.run for event in here.events("run_stopped")] == [1]


async def test_a_session_that_calls_do_not_wake_ends_its_run_when_they_are_over() -> None:
    """What they bring waits for whatever wakes it next."""
    limits = Limits(wake_on=["user"])
    async with scene(call("background", seconds=5), say("ok"), say("seen"), limits=limits) as here:
        await here.session.ask("go")
        await here.idle()
        assert (here.status(), here.asked) == ("idle", 2)
        await here.session.ask("and?")
        assert "completed in 5 s" in here.words(2)


# ------------------------------------------------------------------ one fold
async def test_a_fold_takes_sixty_four_envelopes_and_announces_the_rest() -> None:
    """The rest stays unread and adds a round; nothing is dropped."""
    async with scene(*[say("ok")] * 3) as here:
        for number in range(150):
            here.session.send_nowait(str(number))
        await here.idle()
        folds = [request.transcript[-1] for request in here.model.requests]
        assert [(len(item.mail), item.waiting) for item in folds if isinstance(item, UserItem)] == [(64, 86), (64, 22), (22, 0)]
        assert here.words(0).endswith("[86 more messages waiting]")
        assert here.words(1).endswith("[22 more messages waiting]")


async def test_a_fold_takes_thirty_two_kibibytes() -> None:
    """A context window is worth more than a mailbox."""
    async with scene(*[say("ok")] * 2) as here:
        for _ in range(5):
            here.session.send_nowait("x" * 8 * 1024)
        await here.idle()
        folds = [request.transcript[-1] for request in here.model.requests]
        assert [(len(item.mail), item.waiting) for item in folds if isinstance(item, UserItem)] == [(4, 1), (1, 0)]


async def test_one_huge_mail_shows_its_head_and_what_is_left_out() -> None:
    """It goes through alone, cut on a character."""
    async with scene(say("ok")) as here:
        await here.session.ask("ä" * 40_000)
        assert here.words(0).startswith("ä" * 16_384 + "\n[23616 more characters of m-")


@pytest.mark.parametrize("text", ["", " ", "\n"])
async def test_blank_words_are_refused_and_where_they_come_all_the_same_shown_with_a_header(text: str) -> None:
    """A provider refuses an empty turn: nothing that comes as mail may fail the run."""
    async with scene(say("ok")) as here:
        with pytest.raises(ValueError, match="an empty message to s was refused"):
            await here.session.send(text)
        here.box.accept(UserMessage(text), FromUser())
        await here.idle()
        assert here.words(0).startswith("[mail m-")


# ------------------------------------------------------------------ the model fails
async def test_a_failed_run_is_tried_again_when_a_person_speaks() -> None:
    """One user item, amended: two in a row would be refused."""
    async with scene(fail(ModelError(reason="bad request")), say("ok")) as here:
        with pytest.raises(RunFailed, match="bad request") as told:
            await here.session.ask("first")
        assert told.value.status == here.status() == "failed"
        assert await here.session.ask("second") == "ok"
        [item] = here.request(1).transcript
        assert isinstance(item, UserItem)
        assert [each.body.text for each in item.mail] == ["first", "second"]


async def test_a_failed_run_is_tried_again_when_it_is_resumed() -> None:
    """Nobody has to repeat themselves, and it does not count as a round."""
    async with scene(fail(ModelError(reason="bad key")), say("ok"), max_rounds=1) as here:
        await here.session.send("go")
        await here.idle()
        await here.session.resume()
        assert await here.session.wait_answer() == "ok"
        assert here.request(1).transcript == here.request(0).transcript
        assert here.request(1).tool_choice == "auto"


async def test_only_a_person_wakes_a_failed_session() -> None:
    """What else comes is kept for then."""
    async with scene(fail(ModelError(reason="bad key")), say("ok")) as here:
        await here.session.send("go")
        await here.idle()
        here.box.accept(MAIL, FromActor("clock"))
        await here.idle()
        assert here.asked == 1
        await here.session.ask("again")
        assert "news" in here.words(1)


async def test_orders_to_a_failed_session_do_not_keep_it_busy() -> None:
    """An order is no words: it wakes nobody, however the cursors stand."""
    async with scene(slow(5, fail(ModelError(reason="bad key"))), fail(ModelError(reason="bad key")), say("ok")) as here:
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.send("more")
        await here.session.cancel_attached()
        await here.idle()
        assert here.status() == "failed"
        assert await here.session.ask("again") == "ok"


async def test_a_model_that_stays_away_fails_the_run_after_some_time() -> None:
    """The loop is started again with growing delays; then the session waits for a person."""
    away = ModelError(reason="overloaded", retryable=True)
    async with scene(*[fail(away)] * 6, say("ok")) as here:
        with pytest.raises(RunFailed, match="overloaded"):
            await here.session.ask("go")
        assert here.asked == 6
        assert here.status() == "failed"
        assert await here.session.ask("and now?") == "ok"


async def test_a_request_that_is_repeated_after_a_crash_is_no_round_of_its_own() -> None:
    """The cap counts what the agent did, not what its provider did."""
    away = ModelError(reason="overloaded", retryable=True)
    async with scene(fail(away), say("ok"), max_rounds=1) as here:
        assert await here.session.ask("go") == "ok"
        assert [request.tool_choice for request in here.model.requests] == ["auto", "auto"]


async def test_the_second_model_answers_when_the_first_fails() -> None:
    """What the first one had shown is taken back."""
    async with scene(say("from the second")) as here:
        first = type(here.model)([fail(ModelError(reason="down"))])
        session = await here.system.open(Worker, session="t", model=[first, here.model], deps=here.diary)
        assert await session.ask("go") == "from the second"
        kinds = [event.kind for event in here.seen if event.session == "t"]
        assert kinds.count("interrupted") == 1
        assert (await session.record()).items[-1].text == "from the second"  # type: ignore[union-attr]


async def test_thinking_alone_is_an_empty_turn_and_words_beside_calls_are_no_answer() -> None:
    """An answer is words without calls."""
    async with scene(calls(say("let me see"), LOOP), say("done")) as here:
        assert await here.session.ask("go") == "done"
        assert [event.text for event in here.events("answer")] == ["done"]
        [_, item, *_] = (await here.record()).items
        assert isinstance(item.blocks[0], Text)  # type: ignore[union-attr]
        assert isinstance(item.blocks[1], ToolCall)  # type: ignore[union-attr]
