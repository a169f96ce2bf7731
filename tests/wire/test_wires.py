"""What goes out on each wire: what no scene shows, and that whatever models and tools say, a strict server takes it back."""

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from providers import PROVIDERS
from stage import each_provider
from transcripts import answers, asks, says, user

from actors import Outcome, ResultsItem
from actors.models import Request, Text, Thinking, ToolCall, ToolSchema
from actors.models._capabilities import capabilities_of
from actors.models._chat import messages_of as chat_messages
from actors.models._items import AssistantItem, Item, Result, UserItem
from actors.models._messages import must_not_think
from actors.models._ollama_chat import body_of as ollama_body
from actors.models._resolve import PROVIDERS as EXIST
from actors.models.anthropic import AnthropicMessages
from actors.models.google import Gemini

LOOK = ToolSchema("look", "", {"type": "object", "properties": {}})
ENABLED = {"type": "enabled", "budget_tokens": 2000}


def claude(*items: Item, tools: tuple[ToolSchema, ...] = (LOOK,)) -> dict[str, Any]:
    return AnthropicMessages("claude-sonnet-4-6")._body(Request("", items, tools))


@pytest.mark.parametrize(
    ("items", "thinking", "must_not"),
    [
        ([user("hi")], ENABLED, False),
        ([user("hi"), asks("a"), answers("a")], ENABLED, True),
        ([user("hi"), asks("a"), answers("a")], {"type": "adaptive"}, False),
        ([user("hi"), asks("a"), answers("a")], None, False),
        ([user("hi"), says("ho"), user("and?")], ENABLED, False),
        ([user("hi"), asks("a"), answers("a"), user("and?")], ENABLED, True),
    ],
)
def test_calls_made_without_thinking_are_gone_on_with_without(items: list[Item], thinking: Any, must_not: bool) -> None:
    """Claude refuses to think on where the calls just answered had no thinking before them."""
    assert must_not_think(claude(*items), thinking) is must_not


def test_an_agent_that_lost_its_tools_declares_those_that_were_called() -> None:
    """Claude refuses a history with calls where no tool is declared; it is told to call none."""
    body = claude(user("hi"), asks("a", "b"), answers("a", "b"), tools=())
    assert body["tools"] == [{"name": "look", "input_schema": {"type": "object"}}]
    assert body["tool_choice"] == {"type": "none"}


@pytest.mark.parametrize(("model", "signed"), [("gemini-2.5-pro", False), ("gemini-3-pro", True), ("gemini-9", True)])
def test_a_call_of_another_model_is_signed_where_signatures_are_wanted(model: str, signed: bool) -> None:
    """By the word that Google documents for it; older models want none."""
    [_, told, _] = Gemini(model)._body(Request("", (user("hi"), asks("a", "b"), answers("a", "b"))))["contents"]
    assert [("thought_signature" in part) for part in told["parts"]] == [signed, False]


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "string", "description": "Where."}, {"type": "string", "description": "Where."}),
        ({"type": "array", "items": {"type": "object"}}, {"type": "array", "items": {"type": "object"}}),
        ({"type": "integer", "default": 3}, {"type": "integer"}),
        (
            {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "Who."},
            {"description": 'Who. JSON Schema: {"anyOf":[{"type":"string"},{"type":"null"}]}'},
        ),
    ],
)
def test_what_ollamas_sdk_drops_of_a_schema_is_told_in_words(schema: dict[str, Any], told: dict[str, Any]) -> None:
    """Its record of a parameter knows four things; the model should hear of the others."""
    tool = ToolSchema("look", "", {"type": "object", "properties": {"at": schema}})
    [declared] = ollama_body(Request("", (user("hi"),), (tool,)), "m", [])["tools"]
    assert declared["function"]["parameters"]["properties"] == {"at": told}


@pytest.mark.parametrize(
    ("model", "field", "there"),
    [
        ("openai:deepseek-reasoner", "hm", True),
        ("openai:kimi-k2-thinking", "hm", True),
        ("openai:deepseek-reasoner", "", True),
        ("openai:gpt-5.2", "hm", False),
    ],
)
def test_gateways_that_want_their_thinking_back_get_it(model: str, field: str, there: bool) -> None:
    """In a field of its own, empty where there was none: some refuse a message without."""
    item = AssistantItem([*([Thinking(field)] if field else []), ToolCall("a", "look", {})], model)
    [message] = chat_messages(item, model, capabilities_of(model))
    assert message.get("reasoning_content") == (field if there else None)


@pytest.mark.parametrize("model", ["openai:mistralai/Mistral-Small", "ollama:mistral-nemo", "mistral:ministral-8b"])
def test_a_family_keeps_its_rules_whoever_serves_it(model: str) -> None:
    """The chat template refuses a user turn behind results, not the company."""
    assert capabilities_of(model).mail_after_results == "bridge"


# ------------------------------------------------------------------ whatever comes
def on_the_wire(provider: str, body: dict[str, Any]) -> Any:
    """A body as JSON, as far as the session makes it."""
    wired = {"contents": body["contents"]} if provider == "google" else {**body}
    wired |= {"max_tokens": 100} if provider == "anthropic" else {}
    return json.loads(json.dumps(wired, default=lambda data: b64encode(data).decode()))


_texts = st.text(max_size=20)
_calls = st.lists(
    st.tuples(_texts, st.dictionaries(_texts, st.none() | st.integers() | _texts, max_size=2) | _texts), max_size=3
)
_rounds = st.lists(st.tuples(_calls, _texts, _texts, st.booleans(), st.booleans()), max_size=4)


def transcript(rounds: list[Any], model: str) -> list[Item]:
    """A history of calls, words, mail and thinking, of this model or another."""
    items: list[Item] = [user("hi")]
    for number, (calls, text, result, mail, own) in enumerate(rounds):
        blocks: list[Any] = [Thinking(text), Text(text)]
        for index, (tool, arguments) in enumerate(calls):
            whole = isinstance(arguments, dict)
            blocks.append(
                ToolCall(f"c{number}_{index}", tool, arguments if whole else {}, unparsable=None if whole else arguments)
            )
        if not calls and not text.strip():
            continue
        said = AssistantItem(blocks, model if own else "another:model")
        items.append(said)
        if calls:
            items.append(ResultsItem([Result(call.id, call.tool, Outcome.completed(result)) for call in said.calls]))
        if mail or not calls:
            items.append(user("and?"))
    return items


@each_provider
@settings(deadline=None, max_examples=40)  # a busy machine is no finding
@given(rounds=_rounds)
def test_a_valid_transcript_is_a_valid_request(rounds: list[Any], provider: Any) -> None:
    """Whatever models and tools say, a strict server takes it back."""
    model: Any = provider.model()
    items = transcript(rounds, model.name)
    assert isinstance(items[-1], UserItem | ResultsItem)
    body = on_the_wire(str(provider), model._body(Request("", tuple(items), (LOOK,))))
    assert provider.wire.broken(body) is None


def test_every_provider_that_there_is_is_tested() -> None:
    """A row in the table of providers is a row here; what runs in this process has no wire."""
    assert {str(provider) for provider in PROVIDERS} | {"local"} == set(EXIST)
