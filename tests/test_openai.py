"""`openai:` through the real SDK against a strict server on loopback. Real sockets, so real time, and little of it."""

import gc
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
from fake_chat import FakeChat, fake_chat
from fake_server import Answer, Scripted
from transcripts import answers, asks, user

from actors import _extras
from actors._errors import ConfigError, ModelError, ModelUnusable
from actors.models._api import Request, ToolSchema
from actors.models._blocks import Completion, ModelEvent, Text, TextDelta, Thinking, ThinkingDelta, ToolCall
from actors.models._items import Item
from actors.models._trouble import worded
from actors.models.openai import OpenAIChat

Serving = Callable[..., AbstractAsyncContextManager[FakeChat]]

READ_LOG = ToolSchema("read_log", "Read a log.", {"type": "object", "properties": {"name": {"type": "string"}}})
BUSY = Answer(status=500)
SLOW = Answer(text="one two three four five six", delay=0.05)


@asynccontextmanager
async def _serving(monkeypatch: pytest.MonkeyPatch, *answers: Scripted, **options: Any) -> AsyncIterator[FakeChat]:
    with trio.fail_after(20):
        async with fake_chat(*answers, **options) as chat:
            monkeypatch.setenv("OPENAI_BASE_URL", chat.url)
            yield chat


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> Serving:
    """Starts a fake server that the environment points to, and sets no key."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
    return partial(_serving, monkeypatch)


@pytest.fixture
def model() -> OpenAIChat:
    return OpenAIChat("gpt-5.2")


def asking(*items: Item, **options: object) -> Request:
    return Request("Be brief.", items or (user("hello"),), (READ_LOG,), options=options)


async def ask(model: OpenAIChat, request: Request | None = None) -> tuple[list[ModelEvent], Completion]:
    async with model.stream(request or asking()) as events:
        *deltas, last = [event async for event in events]
    assert isinstance(last, Completion)
    return deltas, last


async def test_an_answer_comes_in_pieces_and_then_whole(serving: Serving, model: OpenAIChat) -> None:
    """People read along; the transcript gets the whole."""
    async with serving(Answer(thinking="Short log.", text="Two warnings, no errors.")):
        deltas, completion = await ask(model)
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "Two warnings, no errors."
    assert "".join(delta.text for delta in deltas if isinstance(delta, ThinkingDelta)) == "Short log."
    assert completion.blocks == (Thinking("Short log."), Text("Two warnings, no errors."))
    assert (completion.stop, completion.usage.input_tokens, completion.usage.estimated) == ("end", 20, False)


async def test_a_tool_call_makes_the_round_trip_under_our_id(serving: Serving, model: OpenAIChat) -> None:
    """The provider's id is kept beside, ours goes over the wire."""
    async with serving(Answer(calls=[("read_log", {"name": "prod"})]), Answer(text="No errors.")) as chat:
        _, first = await ask(model)
        assert first.blocks == (ToolCall("", "read_log", {"name": "prod"}, "call_2_0"),)
        _, second = await ask(model, asking(user("hello"), asks("call_1"), answers("call_1"), user("and staging?")))
        assert [message.get("tool_call_id") for message in chat.messages] == [None, None, None, "call_1", None]
    assert (first.stop, second.blocks) == ("calls", (Text("No errors."),))


async def test_a_server_that_stumbles_is_asked_again(serving: Serving, model: OpenAIChat) -> None:
    """One overload in a long run is no reason to stop it."""
    async with serving(Answer(status=429), BUSY, Answer(text="Here I am.")) as chat:
        _, completion = await ask(model)
        assert (len(chat.bodies), completion.blocks) == (3, (Text("Here I am."),))


async def test_a_server_that_stays_down_is_worth_another_try_later(serving: Serving, model: OpenAIChat) -> None:
    """The supervisor's backoff begins where the SDK's own retries end."""
    async with serving(otherwise=Answer(status=503, message="back at noon")):
        with pytest.raises(ModelError, match=r"openai:gpt-5.2 gave no answer \(HTTP 503\): back at noon") as caught:
            await ask(model)
    assert (caught.value.retryable, caught.value.status) == (True, 503)


async def test_a_refused_request_carries_the_servers_reason(serving: Serving, model: OpenAIChat) -> None:
    """A 400 repeated is a 400 again: the run ends with what the provider said."""
    async with serving() as chat:
        with pytest.raises(ModelError, match=r"want.* results.*call_1") as caught:
            await ask(model, asking(user("hello"), asks("call_1"), user("well?")))
        assert len(chat.bodies) == 1
    assert (caught.value.retryable, caught.value.status) == (False, 400)


async def test_a_spent_quota_is_not_waited_for(serving: Serving, model: OpenAIChat) -> None:
    """It comes as 429 like an overload, but no waiting cures it."""
    async with serving(otherwise=Answer(status=429, message="your quota is spent", code="insufficient_quota")):
        with pytest.raises(ModelError, match="your quota is spent") as caught:
            await ask(model)
    assert not caught.value.retryable


class _Raised(Exception):
    """An error of the SDK, by what it says of itself."""

    def __init__(self, **facts: object) -> None:
        super().__init__("Error code: 418")
        self.__dict__.update(facts)


WORDED: dict[str, tuple[_Raised, int | None, bool, str]] = {
    **{
        str(code): (_Raised(status_code=code, body={"message": "no"}), code, False, "no")
        for code in (400, 401, 403, 404, 413, 422)
    },
    **{
        str(code): (_Raised(status_code=code, body={"message": "no"}), code, True, "no")
        for code in (408, 409, 429, 500, 503, 529)
    },
    "a body of another shape": (_Raised(status_code=422, body={"detail": "no such field"}), 422, False, "no such field"),
    "a page of HTML": (_Raised(status_code=502, body="<html>", message="<html>" * 999), 502, True, "<html><html>"),
    "in mid-stream": (_Raised(body={"message": "out of memory", "type": "server_error"}), None, True, "out of memory"),
    "in mid-stream, ours": (_Raised(body={"message": "too long", "type": "invalid_request_error"}), None, False, "too long"),
    "in mid-stream, of a gateway": (_Raised(body={"message": "gone", "code": 502}), 502, True, "gone"),
    "in mid-stream, ours, of a gateway": (_Raised(body={"message": "too long", "code": 400}), 400, False, "too long"),
    "without a word": (_Raised(), None, True, "Error code: 418"),
}


@pytest.mark.parametrize(("error", "status", "retryable", "reason"), WORDED.values(), ids=WORDED)
def test_an_error_says_why_and_whether_to_try_again(error: _Raised, status: int | None, retryable: bool, reason: str) -> None:
    """The one fails the run, the other is for the supervisor's backoff."""
    told = worded("openai:m", error)
    assert (told.model, told.status, told.retryable) == ("openai:m", status, retryable)
    assert told.reason.startswith(reason)
    assert len(str(told)) < 1200


@pytest.mark.parametrize("sent", [1, 3])
async def test_a_cut_stream_is_no_answer(serving: Serving, model: OpenAIChat, sent: int) -> None:
    """Half an answer in the transcript would be a lie of ours."""
    async with serving(Answer(text="The log says that all", cut_after=sent)):
        with pytest.raises(ModelError) as caught:
            await ask(model)
    assert caught.value.retryable


async def test_a_stream_that_ends_without_a_reason_was_cut(serving: Serving, model: OpenAIChat) -> None:
    """A proxy that gives up closes politely."""
    async with serving(Answer(text="The log says", end_after=2)):
        with pytest.raises(ModelError, match="ended before the answer did"):
            await ask(model)


async def test_a_connection_lost_after_the_end_loses_nothing(serving: Serving, model: OpenAIChat) -> None:
    """The model had said why it stopped; only the count is missing, and estimated."""
    async with serving(Answer(text="12345", cut_after=3)):
        _, completion = await ask(model)
    assert (completion.blocks, completion.usage.estimated) == ((Text("12345"),), True)


async def test_leaving_a_stream_closes_its_socket_and_the_next_request_succeeds(serving: Serving, model: OpenAIChat) -> None:
    """What nobody reads must not be paid for, and must not clog the connection."""
    async with serving(SLOW, Answer(text="Next.")) as chat:
        async with model.stream(asking()) as events:
            await anext(events)
        await chat.aborted.wait_value(1)
        _, completion = await ask(model)
    assert completion.blocks == (Text("Next."),)


async def test_a_cancelled_request_closes_its_socket_and_the_next_one_succeeds(serving: Serving, model: OpenAIChat) -> None:
    """An interrupt, a stop and Ctrl-C all come as a cancel, here while the server says nothing."""
    async with serving(Answer(text="Wait", hang_after=2), Answer(text="Next.")) as chat, trio.open_nursery() as nursery:
        nursery.start_soon(ask, model)
        await chat.streaming.wait_value(1)
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await chat.aborted.wait_value(1)
            _, completion = await ask(model)
    assert completion.blocks == (Text("Next."),)


async def test_a_slow_stream_is_read_as_it_comes(serving: Serving, model: OpenAIChat) -> None:
    """The first words are there long before the last."""
    async with serving(SLOW), model.stream(asking()) as events:
        began = trio.current_time()
        await anext(events)
        first = trio.current_time() - began
        [_ async for _ in events]
        assert trio.current_time() - began - first >= 4 * SLOW.delay


async def test_two_requests_at_once_share_a_client_and_nothing_else(serving: Serving, model: OpenAIChat) -> None:
    """Sessions of one agent share the model object."""
    completions: list[Completion] = []

    async def one() -> None:
        completions.append((await ask(model))[1])

    async with serving(otherwise=lambda body: Answer(text="Yes.", delay=0.01)), trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(one)
    assert [completion.blocks for completion in completions] == [(Text("Yes."),)] * 5


async def test_a_server_that_knows_no_usage_option_is_asked_without_it(serving: Serving, model: OpenAIChat) -> None:
    """Small servers refuse what they do not know; then tokens are an estimate that says so."""
    async with serving(otherwise=Answer(text="Fine.", usage=False), counts=False) as chat:
        _, completion = await ask(model)
        await ask(model)
        assert ["stream_options" in body for body in chat.bodies] == [True, False, False]
    assert completion.usage.estimated
    assert completion.usage.output_tokens == 2


async def test_options_become_parameters_and_unknown_ones_extra(serving: Serving, model: OpenAIChat) -> None:
    """What a server understands is between the author and the server."""
    async with serving(Answer(text="Fine.")) as chat:
        await ask(model, asking(temperature=0.5, max_tokens=20, top_k=3, extra_body={"min_p": 0.1}))
    assert {"temperature": 0.5, "max_tokens": 20, "top_k": 3, "min_p": 0.1}.items() <= chat.bodies[0].items()


@pytest.mark.parametrize("name", ["messages", "model", "stream", "tool_choice", "tools"])
async def test_an_option_that_is_ours_is_refused_by_name(serving: Serving, model: OpenAIChat, name: str) -> None:
    """Silently winning or losing against the session would both be wrong."""
    async with serving():
        with pytest.raises(ConfigError, match=f"'{name}' is no option of openai:gpt-5.2"):
            await ask(model, asking(**{name: []}))


async def test_a_key_is_read_when_it_is_used(serving: Serving, model: OpenAIChat, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is rotated, or set late, counts from the next request."""
    async with serving(Answer(text="Open."), key="sesame"):
        with pytest.raises(ModelError, match="this key opens nothing") as caught:
            await ask(model)
        assert (caught.value.status, caught.value.retryable) == (401, False)
        monkeypatch.setenv("OPENAI_API_KEY", "sesame")
        assert (await ask(model))[1].blocks == (Text("Open."),)


@pytest.mark.usefixtures("serving")
async def test_without_key_and_server_the_error_says_what_to_set(model: OpenAIChat) -> None:
    """The first thing that goes wrong for everybody."""
    with pytest.raises(ConfigError, match=r"OPENAI_API_KEY is not set; set it, or set OPENAI_BASE_URL"):
        await ask(model)


async def test_nobody_listening_names_the_address(serving: Serving, model: OpenAIChat, monkeypatch: pytest.MonkeyPatch) -> None:
    """A typo in a URL must be seen at a glance."""
    async with serving():
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
        with pytest.raises(ModelError, match=r"127\.0\.0\.1:1 ") as caught:
            await ask(model)
    assert caught.value.retryable


async def test_without_the_sdk_the_error_says_what_to_install(
    serving: Serving, model: OpenAIChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK is an extra."""

    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(_extras, "import_module", missing)
    async with serving():
        with pytest.raises(ModelUnusable, match=r"pip install 'postroom\[openai\]'"):
            await ask(model)


def test_one_model_serves_one_run_after_another(serving: Serving, model: OpenAIChat) -> None:
    """A class attribute outlives `trio.run`, sockets do not; nothing is left to the collector, whose warnings are errors."""

    async def main() -> None:
        async with serving(Answer(text="Once more.")):
            assert (await ask(model))[1].blocks == (Text("Once more."),)

    trio.run(main)
    trio.run(main)
    gc.collect()
