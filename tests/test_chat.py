"""What goes out on the chat-completions wire."""

import json
from typing import Any

import pytest
from chat_rules import broken_rule
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts import answers, asks, says, user

from actors._outcome import Media, Outcome
from actors.models._api import Capabilities, Request, ToolSchema
from actors.models._blocks import Text, Thinking, ToolCall
from actors.models._chat import body_of, estimated_input, messages_of
from actors.models._items import AssistantItem, Item, Placeholder, Result, ResultsItem

EYES, BLIND = Capabilities(images=True), Capabilities()
PNG = Media("image/png", b"\x89PNG")
PDF = Media("application/pdf", b"%PDF")
LOOK = ToolSchema("look", "Look at it.", {"type": "object", "properties": {}})
LOOK_ON_THE_WIRE = {
    "type": "function",
    "function": {"name": "look", "description": "Look at it.", "parameters": {"type": "object", "properties": {}}},
}


def wired(*calls: tuple[str, str, str]) -> list[dict[str, Any]]:
    return [{"id": key, "type": "function", "function": {"name": name, "arguments": text}} for key, name, text in calls]


def assistant(*blocks: Any) -> AssistantItem:
    return AssistantItem(blocks, "openai:m")


RENDERED: dict[str, tuple[Item, list[dict[str, Any]]]] = {
    "words of a person": (user("hi"), [{"role": "user", "content": "hi"}]),
    "words of the model": (says("ho"), [{"role": "assistant", "content": "ho"}]),
    "a call has empty content, not null": (
        asks("a"),
        [{"role": "assistant", "content": "", "tool_calls": wired(("a", "look", '{"id":"a"}'))}],
    ),
    "words beside calls": (
        asks("a", "b", text="wait"),
        [
            {
                "role": "assistant",
                "content": "wait",
                "tool_calls": wired(("a", "look", '{"id":"a"}'), ("b", "look", '{"id":"b"}')),
            }
        ],
    ),
    "our id, not the provider's": (
        assistant(ToolCall("ours", "look", {}, "theirs")),
        [{"role": "assistant", "content": "", "tool_calls": wired(("ours", "look", "{}"))}],
    ),
    "botched arguments go back as an object": (
        assistant(ToolCall("a", "look", {}, unparsable='{"at": ')),
        [{"role": "assistant", "content": "", "tool_calls": wired(("a", "look", '{"unparsable":"{\\"at\\": "}'))}],
    ),
    "an invented tool name goes back in letters": (
        assistant(ToolCall("a", "look at/ü", {}), ToolCall("b", "", {})),
        [{"role": "assistant", "content": "", "tool_calls": wired(("a", "look_at__", "{}"), ("b", "unnamed", "{}"))}],
    ),
    "thinking stays here": (
        assistant(Thinking("hm", opaque="sig"), Text("one "), Text("two")),
        [{"role": "assistant", "content": "one two"}],
    ),
    "one message per result, in order": (
        answers("a", "b"),
        [{"role": "tool", "tool_call_id": "a", "content": "seen"}, {"role": "tool", "tool_call_id": "b", "content": "seen"}],
    ),
    "a failure in words": (
        ResultsItem([Result("a", "look", Outcome.failed("too dark"))]),
        [{"role": "tool", "tool_call_id": "a", "content": "failed: too dark"}],
    ),
    "what a tool attached is named": (
        ResultsItem([Result("a", "look", Outcome.completed(PNG))]),
        [{"role": "tool", "tool_call_id": "a", "content": "[attached image/png]"}],
    ),
    "an image is shown beside its place": (
        user("this", PNG),
        [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "this\n[attached image/png]"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
                ],
            }
        ],
    ),
    "what cannot be shown is named": (user("this", PDF), [{"role": "user", "content": "this\n[attached application/pdf]"}]),
}


@pytest.mark.parametrize(("item", "messages"), RENDERED.values(), ids=RENDERED)
def test_an_item_becomes_these_messages(item: Item, messages: list[dict[str, Any]]) -> None:
    """Rendering is a pure function of the item: prompt prefixes stay cached."""
    assert list(messages_of(item, "openai:m", EYES)) == messages


def test_a_model_without_eyes_gets_words_only() -> None:
    """A text model's server refuses a list of parts."""
    assert messages_of(user("this", PNG), "openai:m", BLIND) == ({"role": "user", "content": "this\n[attached image/png]"},)


def test_a_placeholder_is_a_result_like_any_other() -> None:
    """The call goes on; the wire wants its one result now."""
    (message,) = messages_of(
        ResultsItem([Result("a", "look", Placeholder("running", "still running after 10s"))]), "openai:m", EYES
    )
    assert json.loads(message["content"])["detached"] == "still running after 10s"


@pytest.mark.parametrize(
    ("choice", "tools", "wanted"),
    [
        ("auto", (LOOK,), {"tools": [LOOK_ON_THE_WIRE]}),
        ("none", (LOOK,), {"tools": [LOOK_ON_THE_WIRE], "tool_choice": "none"}),
        ("required", (LOOK,), {"tools": [LOOK_ON_THE_WIRE], "tool_choice": "required"}),
        ("look", (LOOK,), {"tools": [LOOK_ON_THE_WIRE], "tool_choice": {"type": "function", "function": {"name": "look"}}}),
        ("none", (), {}),
    ],
)
def test_the_choice_of_tools_passes_through(choice: str, tools: tuple[ToolSchema, ...], wanted: dict[str, Any]) -> None:
    """The wrap-up says `none`; without tools there is nothing to choose, and servers refuse the word."""
    body = body_of(Request("", (user("hi"),), tools, choice), "m", (), EYES)
    assert body == {"model": "m", "messages": [], "stream": True, **wanted}


@pytest.mark.parametrize(("instructions", "roles"), [("Be brief.", ["system", "user"]), (" \n", ["user"])])
def test_instructions_come_first_if_there_are_any(instructions: str, roles: list[str]) -> None:
    """An empty system message is refused by some and wastes tokens of all."""
    body = body_of(Request(instructions, ()), "m", messages_of(user("hi"), "openai:m", EYES), EYES)
    assert [message["role"] for message in body["messages"]] == roles


def test_tokens_are_estimated_from_the_words() -> None:
    """For servers that count nothing: four characters each."""
    messages = [*messages_of(user("x" * 400), "openai:m", EYES), *messages_of(user("this", PNG), "openai:m", EYES)]
    assert estimated_input(body_of(Request("", ()), "m", messages, EYES)) == 100


_rounds = st.lists(
    st.tuples(
        st.lists(st.dictionaries(st.text(), st.none() | st.integers() | st.text()), max_size=3), st.text(), st.booleans()
    ),
    max_size=4,
)


@settings(deadline=None)  # a busy machine is no finding
@given(_rounds, st.text())
def test_a_valid_transcript_is_a_valid_request(rounds: list[tuple[list[dict[str, Any]], str, bool]], raw: str) -> None:
    """Whatever models and tools say, a strict server takes it back."""
    transcript: list[Item] = [user("hi")]
    for number, (calls, text, mail) in enumerate(rounds):
        ids = [f"c{number}_{index}" for index in range(len(calls))]
        blocks = [ToolCall(key, text, arguments) for key, arguments in zip(ids, calls, strict=True)]
        botched = ToolCall(f"r{number}", text, {}, unparsable=raw)
        transcript += [assistant(Text(text), *blocks, botched), answers(*ids, botched.id, text=text)]
        transcript += [user("and?")] if mail else []
    messages = [message for item in transcript for message in messages_of(item, "openai:m", EYES)]
    assert broken_rule(body_of(Request("", ()), "m", messages, EYES)) is None
