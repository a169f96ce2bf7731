"""The model that plays a script, on virtual time."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest
import trio
from transcripts import answers, asks, says, user
from trio.testing import MockClock

from actors._errors import ConfigError, ModelError, TranscriptInvalid
from actors.models import (
    Completion,
    Model,
    Request,
    Said,
    ScriptedModel,
    Text,
    TextDelta,
    ToolCall,
    call,
    calls,
    fail,
    raw_call,
    say,
    slow,
)
from actors.models._items import Item

HELLO = Request("", (user("hello"),))


async def ask(model: Model, request: Request = HELLO) -> tuple[list[str], Completion]:
    """The pieces of text, and the completion."""
    async with model.stream(request) as events:
        *deltas, last = [event async for event in events]
    assert isinstance(last, Completion)
    return [delta.text for delta in deltas if isinstance(delta, TextDelta)], last


async def test_words_come_in_a_few_pieces_and_then_whole() -> None:
    """A test of streaming needs more than one delta, and no more than a few."""
    pieces, completion = await ask(ScriptedModel([say("Two warnings, no errors.")]))
    assert (len(pieces), "".join(pieces)) == (4, "Two warnings, no errors.")
    assert (completion.blocks, completion.stop) == ((Text("Two warnings, no errors."),), "end")


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        (call("look", at="a"), ToolCall("", "look", {"at": "a"}, "scripted_1")),
        (call("look"), ToolCall("", "look", {}, "scripted_1")),
        (call("look", tool="x", self=1), ToolCall("", "look", {"tool": "x", "self": 1}, "scripted_1")),
        (raw_call("look", "{at: a"), ToolCall("", "look", {}, "scripted_1", unparsable="{at: a")),
        (raw_call("look", "[1]"), ToolCall("", "look", {}, "scripted_1", unparsable="[1]")),
    ],
)
async def test_a_call_has_the_providers_id_and_leaves_ours_to_the_session(entry: Said, wanted: ToolCall) -> None:
    """As with a real provider."""
    _, completion = await ask(ScriptedModel([entry]))
    assert (completion.blocks, completion.stop) == ((wanted,), "calls")


async def test_an_answer_can_hold_words_and_several_calls() -> None:
    """Models often say what they are about to do."""
    pieces, completion = await ask(ScriptedModel([calls(say("A moment."), call("look"), call("look"))]))
    assert "".join(pieces) == "A moment."
    assert [block.provider_id for block in completion.blocks if isinstance(block, ToolCall)] == ["scripted_1", "scripted_2"]


async def test_an_entry_played_twice_makes_two_calls() -> None:
    """A provider never gives an id twice."""
    entry = call("look")
    model = ScriptedModel([entry, entry])
    assert (await ask(model))[1] != (await ask(model))[1]


async def test_a_slow_entry_takes_its_time(autojump_clock: MockClock) -> None:
    """A model that thinks for an hour is tested in no time."""
    await ask(ScriptedModel([slow(3600, slow(2, say("at last")))]))
    assert trio.current_time() == 3602


async def test_a_slow_function_is_called_after_its_time(autojump_clock: MockClock) -> None:
    """It decides by what is known then."""
    model = ScriptedModel([slow(5, lambda _: slow(2, say(f"at {trio.current_time():.0f}")))])
    assert (await ask(model))[1].blocks == (Text("at 5"),)
    assert trio.current_time() == 7


async def test_a_cancelled_entry_is_taken_and_the_next_request_gets_the_next(autojump_clock: MockClock) -> None:
    """An interrupted completion is asked anew, with a new answer."""
    model = ScriptedModel([slow(10, say("old")), say("new")])
    with trio.move_on_after(1):
        await ask(model)
    assert (await ask(model))[1].blocks == (Text("new"),)


async def test_a_request_can_be_cancelled_although_nothing_is_slow() -> None:
    """The model is a checkpoint in every loop that asks it."""
    with trio.CancelScope() as scope:
        scope.cancel()
        await ask(ScriptedModel([say("never read")]))
    assert scope.cancelled_caught


async def test_a_failing_entry_raises_its_error() -> None:
    """Whatever a provider can do to us."""
    with pytest.raises(ModelError, match="overloaded"):
        await ask(ScriptedModel([fail(ModelError("overloaded", retryable=True))]))


async def test_a_function_sees_the_request() -> None:
    """For answers that depend on what was said."""
    model = ScriptedModel([lambda request: say(request.transcript[-1].text.upper())])  # type: ignore[union-attr]
    assert (await ask(model))[1].blocks == (Text("HELLO"),)


async def test_every_request_is_kept() -> None:
    """What the model was told is what most tests are about."""
    model = ScriptedModel([say("a"), say("b")])
    other = Request("be brief", HELLO.transcript)
    await ask(model)
    await ask(model, other)
    assert model.requests == [HELLO, other]


async def test_a_script_that_is_over_names_the_request() -> None:
    """The one line that somebody debugging a test needs."""
    model = ScriptedModel([say("a")])
    await ask(model)
    with pytest.raises(ModelError, match=r"script of 1 answers is over, and request 2 came, whose last item is user: 'hello'"):
        await ask(model)


async def test_the_named_item_is_shortened() -> None:
    """A megabyte of log in an error hides the error."""
    results = Request("", (user("hi"), asks("a"), answers("a", text="x" * 5000)))
    with pytest.raises(ModelError, match=r"whose last item is results: 'look: x{150,160}'\.\.\.") as caught:
        await ask(ScriptedModel([]), results)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("broken", [(), (says("hi"),), (user("hi"), asks("a"), user("well?")), (user("hi"), says("done"))])
async def test_an_invalid_transcript_is_refused_and_takes_nothing(broken: tuple[Item, ...]) -> None:
    """What a provider would refuse must fail in the cheapest test."""
    model = ScriptedModel([say("fine")])
    with pytest.raises(TranscriptInvalid):
        await ask(model, Request("", broken))
    assert (await ask(model))[1].blocks == (Text("fine"),)


async def test_sessions_that_share_a_model_are_validated_apart() -> None:
    """`model` is a class attribute: every session of the class asks the same object, in any order."""
    model = ScriptedModel([say("x")] * 4)
    one, other = (user("one"), asks("a"), answers("a")), (user("other"), asks("a"), answers("a"))
    for transcript in (one, other, (*one, says("x"), user("on")), (*other, says("x"), user("on"))):
        await ask(model, Request("", transcript))
    model.assert_finished()


async def test_conversations_are_forgotten_with_their_items() -> None:
    """A model that serves for months must not remember every session."""
    model = ScriptedModel([say("x")] * 10)
    for _ in range(10):
        await ask(model, Request("", (user("hi"),)))
    model.requests.clear()
    gc.collect()
    assert len(model._validators) == 0


def test_an_unfinished_script_says_what_comes_next() -> None:
    """A run that ended early is a failed test."""
    with pytest.raises(AssertionError, match=r"2 of 2 entries .* the next is Said\(.*'first'"):
        ScriptedModel([say("first"), say("second")]).assert_finished()


@pytest.mark.parametrize("entry", ["hello", None, Text("hello")])
def test_an_entry_that_is_no_answer_is_refused_at_once(entry: object) -> None:
    """A bare text is the mistake everybody makes once."""
    with pytest.raises(ConfigError, match=r"entry 1 of the script is .*; write say\(\.\.\.\)"):
        ScriptedModel([say("fine"), entry])  # type: ignore[list-item]


async def test_a_function_that_returns_no_answer_is_named() -> None:
    """Else the error would come from deep inside."""
    with pytest.raises(ModelError, match="answered 'hello'; it must return say"):
        await ask(ScriptedModel([lambda _: "hello"]))  # type: ignore[list-item, return-value]


@pytest.mark.parametrize("entry", [fail(ValueError("no")), slow(1, say("x")), slow(1, lambda _: say("x"))])
def test_only_plain_answers_can_be_joined(entry: Said) -> None:
    """Half an answer cannot be late or fail."""
    with pytest.raises(ConfigError, match="argument 2"):
        calls(call("look"), entry)


async def test_a_round_is_the_same_work_at_the_end_of_a_long_conversation() -> None:
    """The floor under every agent round: what was checked is not checked again."""
    model, transcript, steps = ScriptedModel([call("look")] * 500), [*HELLO.transcript], []
    for number in range(500):
        with _counting() as counted:
            await ask(model, Request("", tuple(transcript)))
        steps.append(counted[0])
        transcript += [asks(f"c{number}"), answers(f"c{number}")]
    assert min(steps[10:60]) == min(steps[-50:]) < 150  # the least: a collection of garbage may call something in between


@contextmanager
def _counting() -> Iterator[list[int]]:
    """Counts the functions that are called: time that does not depend on the machine."""
    counted = [0]

    def count(_frame: FrameType, event: str, _arg: object) -> None:
        counted[0] += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        yield counted
    finally:
        sys.setprofile(None)
