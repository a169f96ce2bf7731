"""Every provider through its real SDK, against its strict server: what all have in common. Real sockets, so little of them."""

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from fake_server import Answer, FakeServer, Scripted, serving
from providers import PROVIDERS, Provider
from stage import PATIENCE, PNG, each_provider, point_to
from transcripts import answers, asks, user

from actors import ConfigError, ModelError, Outcome, ResultsItem, _extras
from actors.models import Completion, ModelEvent, Request, Text, TextDelta, Thinking, ThinkingDelta, ToolCall, ToolSchema
from actors.models._items import AssistantItem, Item, Placeholder, Result

LOOK = ToolSchema("look", "Look at it.", {"type": "object", "properties": {"at": {"type": "string"}}})
LONG = {"anthropic": "max_tokens", "google": "MAX_TOKENS", "openai-responses": "max_output_tokens"}
REFUSED = {"anthropic": "refusal", "google": "SAFETY"}
each_with_a_key = pytest.mark.parametrize("provider", [each for each in PROVIDERS if each.key is not None], ids=str)
EXTRA = {"openai-responses": "openai", "mistral": "openai"}


@asynccontextmanager
async def at(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, *answers: Scripted, **options: Any
) -> AsyncIterator[FakeServer]:
    with trio.fail_after(PATIENCE):
        async with serving(provider.wire, *answers, **options) as server:
            point_to(provider, server.url, monkeypatch)
            yield server


async def ask(
    provider: Provider, *items: Item, choice: str = "auto", tools: tuple[ToolSchema, ...] = (LOOK,), **options: Any
) -> tuple[list[ModelEvent], Completion]:
    request = Request("Be brief.", items or (user("hi"),), tools, choice, options)
    async with provider.model().stream(request) as events:
        *deltas, last = [event async for event in events]
    assert isinstance(last, Completion)
    return deltas, last


def words(completion: Completion) -> str:
    return "".join(block.text for block in completion.blocks if isinstance(block, Text))


@each_provider
async def test_an_answer_comes_in_pieces_and_then_whole(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """People read along; the transcript gets the whole."""
    answer = Answer(thinking="Short log.", text="Two warnings.", calls=[("look", {"at": "prod"}), ("look", {})])
    async with at(provider, monkeypatch, answer):
        deltas, completion = await ask(provider)
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == words(completion) == "Two warnings."
    thought = [block.text for block in completion.blocks if isinstance(block, Thinking)]
    assert "".join(delta.text for delta in deltas if isinstance(delta, ThinkingDelta)) == "".join(thought) == "Short log."
    calls = [(call.id, call.tool, call.arguments) for call in completion.blocks if isinstance(call, ToolCall)]
    assert calls == [("", "look", {"at": "prod"}), ("", "look", {})]
    assert (completion.stop, completion.usage.output_tokens, completion.usage.estimated) == ("calls", 7, False)


@each_provider
async def test_why_an_answer_ended_is_told_in_our_words(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop asks for no provider."""
    cut = Answer(text="And then", finish=LONG.get(str(provider), "length"))
    refused = Answer(text="I", finish=REFUSED.get(str(provider), "content_filter"))
    async with at(provider, monkeypatch, cut, Answer(text="Done."), refused):
        assert (await ask(provider))[1].stop == "length"
        assert (await ask(provider))[1].stop == "end"
        assert (await ask(provider))[1].stop == ("end" if str(provider) == "ollama" else "refused")


@each_provider
async def test_what_the_server_does_not_count_is_estimated(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says so."""
    async with at(provider, monkeypatch, Answer(text="12345678", usage=False)):
        usage = (await ask(provider, user("x" * 400)))[1].usage
    assert usage.estimated == (str(provider) != "anthropic")  # which always counts
    assert not usage.estimated or (usage.input_tokens >= 100 and usage.output_tokens == 2)


@each_provider
async def test_a_server_that_stumbles_is_asked_again(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the SDK where it does that, else by the session, whose backoff begins where the SDK's retries end."""
    async with at(provider, monkeypatch, Answer(status=503, message="back at noon"), Answer(text="Here.")) as server:
        if not provider.retries:
            with pytest.raises(ModelError, match=r"\(HTTP 503\): back at noon; the same request may succeed later") as caught:
                await ask(provider)
            assert (caught.value.retryable, caught.value.status) == (True, 503)
        assert words((await ask(provider))[1]) == "Here."
        assert len(server.bodies) == 2


@each_provider
async def test_a_refusal_carries_the_servers_reason(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """A 400 repeated is a 400 again: the run ends with what the provider said."""
    async with at(provider, monkeypatch) as server:
        with pytest.raises(ModelError) as caught:
            await ask(provider, user("hi"), asks("a"), user("well?"))
    assert (caught.value.retryable, caught.value.status, len(server.bodies)) == (False, 400, 1)
    assert caught.value.reason == server.broken[0].rstrip(".")


@each_provider
@pytest.mark.parametrize(
    "spoilt",
    [Answer(text="The log says", fail_after=2), Answer(text="The log says", end_after=2), Answer(text="12345678", cut_after=1)],
    ids=["told", "ended", "cut"],
)
async def test_half_an_answer_is_none(spoilt: Answer, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the transcript it would be a lie of ours; and it is worth another try."""
    async with at(provider, monkeypatch, spoilt):
        with pytest.raises(ModelError) as caught:
            await ask(provider)
    assert caught.value.retryable
    assert "busy" in caught.value.reason or spoilt.fail_after is None


@each_provider
async def test_leaving_a_stream_closes_its_socket_and_the_next_request_succeeds(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nobody reads must not be paid for, and must not clog the connection."""
    async with at(provider, monkeypatch, Answer(text="one two three four", hang_after=4), Answer(text="Next.")) as server:
        async with provider.model().stream(Request("", (user("hi"),))) as events:
            await anext(aiter(events))
        await server.aborted.wait_value(1)
        assert words((await ask(provider))[1]) == "Next."


@each_provider
async def test_a_history_of_another_model_is_taken_without_its_thinking(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fallback, or a change of mind: signatures of others are refused, and their thinking is nobody's business."""
    theirs = AssistantItem(
        [
            Thinking("secret", {"signature": "x", "encrypted": "y", "id": "z"}),
            Text("I look."),
            ToolCall("a", "look", {}, opaque=1),
        ],
        "another:model",
    )
    async with at(provider, monkeypatch, Answer(text="Fine.")) as server:
        assert words((await ask(provider, user("hi"), theirs, answers("a"), **provider.options))[1]) == "Fine."
    assert "secret" not in str(server.bodies)


STRANGE: dict[str, list[Item]] = {
    "botched arguments, an invented name": [
        AssistantItem([ToolCall("a", "look at/ü", {}, unparsable='{"at": '), ToolCall("b", "", {})], "x:y"),
        ResultsItem([Result("a", "look at/ü", Outcome.failed("no")), Result("b", "", Outcome.failed("no"))]),
    ],
    "deferred": [asks("a"), ResultsItem([Result("a", "look", Placeholder("deferred", "a person has to say yes"))])],
    "nothing returned": [asks("a", "b"), ResultsItem([Result(name, "look", Outcome.completed(" \n")) for name in "ab"])],
    "an image of a failure": [asks("a"), ResultsItem([Result("a", "look", Outcome("cancelled", [PNG], "stopped"))])],
    "blank words beside a call": [asks("a", text=" \n"), answers("a")],
    "an image and no words": [asks("a"), answers("a"), user("", PNG)],
}


@each_provider
@pytest.mark.parametrize("items", STRANGE.values(), ids=STRANGE)
async def test_what_models_and_tools_come_up_with_is_taken(
    items: list[Item], provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these is a 400 somewhere if it is sent as it is."""
    async with at(provider, monkeypatch, Answer(text="Fine.")) as server:
        assert words((await ask(provider, user("hi"), *items))[1]) == "Fine."
    assert server.broken == []


@each_provider
@pytest.mark.parametrize("choice", ["none", "required", "look"])
async def test_the_choice_of_tools_is_told_where_it_can_be(
    choice: str, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wrap-up says `none` and keeps the tools declared."""
    async with at(provider, monkeypatch, Answer(text="Fine."), Answer(text="Fine.")) as server:
        await ask(provider, choice=choice)
        await ask(provider, choice=choice, tools=())
    told, untold = [str({name: body.get(name) for name in ("tool_choice", "toolConfig")}).lower() for body in server.bodies]
    expected = {"none": "none'", "required": "any'" if "any" in told else "required'", "look": "look'"}[choice]
    assert (expected in told) == provider.model().capabilities.tool_choice
    assert "'" not in untold.replace("'tool_choice'", "").replace("'toolconfig'", "")


@each_with_a_key
async def test_a_key_is_read_when_it_is_used(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is rotated, or set late, counts from the next request."""
    async with at(provider, monkeypatch, Answer(text="Open."), key="another"):
        with pytest.raises(ModelError, match="this key opens nothing") as caught:
            await ask(provider)
        assert (caught.value.status, caught.value.retryable) == (401, False)
        monkeypatch.setenv(str(provider.key), "another")
        assert words((await ask(provider))[1]) == "Open."


@each_with_a_key
async def test_without_key_and_server_the_error_says_what_to_set(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first thing that goes wrong for everybody."""
    for name in (provider.url, provider.key, "GEMINI_API_KEY"):
        monkeypatch.delenv(str(name), raising=False)
    with pytest.raises(ConfigError, match=rf"{provider.key} is not set.* set {provider.url} to a server of your own"):
        await ask(provider)


@each_provider
async def test_without_the_sdk_the_error_says_what_to_install(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each SDK is an extra."""

    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(_extras, "import_module", missing)
    point_to(provider, "http://127.0.0.1:1", monkeypatch)
    extra = EXTRA.get(str(provider), str(provider))
    with pytest.raises(ConfigError, match=rf"{provider.name} needs .* pip install 'postroom\[{extra}\]'"):
        await ask(provider)


@each_provider
async def test_an_option_that_is_ours_is_refused_by_name(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silently winning or losing against the session would both be wrong."""
    async with at(provider, monkeypatch):
        with pytest.raises(ConfigError, match="'tools' is no option of"):
            async with provider.model().stream(Request("", (user("hi"),), options={"tools": []})):
                pass


@each_provider
async def test_options_reach_the_server(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a server understands is between the author and the server."""
    async with at(provider, monkeypatch, Answer(text="Fine.")) as server:
        await ask(provider, temperature=0.5)
    assert "'temperature': 0.5" in str(server.bodies[0])


@each_provider
async def test_nobody_listening_names_the_address(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """A typo in a URL must be seen at a glance."""
    point_to(provider, "http://127.0.0.1:1", monkeypatch)
    with pytest.raises(ModelError, match=r"127\.0\.0\.1:1") as caught:
        await ask(provider)
    assert caught.value.retryable


@each_provider
def test_one_model_serves_one_run_after_another(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class attribute outlives `trio.run`, sockets do not; nothing is left to the collector, whose warnings are errors."""

    async def main() -> None:
        async with at(provider, monkeypatch, Answer(text="Once more.")):
            assert words((await ask(provider))[1]) == "Once more."

    trio.run(main)
    trio.run(main)
    gc.collect()
