"""The fake servers are as strict as their providers, or the tests that use them prove nothing. Chat has a file of its own."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from fake_anthropic import broken_rule as anthropic_rule
from fake_anthropic import signature as signed
from fake_gemini import broken_rule as gemini_rule
from fake_gemini import signature
from fake_mistral import broken_rule as mistral_rule
from fake_ollama import broken_rule as ollama_rule
from fake_responses import broken_rule as responses_rule
from fake_responses import encrypted

Rule = Callable[[Any], str | None]


# ------------------------------------------------------------------ Anthropic
def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(*names: str) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": name, "name": "look", "input": {}} for name in names]


def result(*names: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": name, "content": [text("seen")]} for name in names]


def claude(*contents: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    messages = [{"role": ("user", "assistant")[place % 2], "content": content} for place, content in enumerate(contents)]
    tool = {"name": "look", "input_schema": {"type": "object"}}
    return {"model": "m", "stream": True, "max_tokens": 9000, "tools": [tool], "messages": messages, **more}


HI, THOUGHT = [text("hi")], {"type": "thinking", "thinking": "hm", "signature": signed("hm")}
ON = {"type": "enabled", "budget_tokens": 2000}
ANTHROPIC: Mapping[str, tuple[dict[str, Any], str | None]] = {
    "calls and results": (claude(HI, use("a", "b"), [*result("a", "b"), text("and?")]), None),
    "thinking back": (claude(HI, [THOUGHT, *use("a")], result("a"), thinking=ON), None),
    "no limit": ({**claude(HI), "max_tokens": None}, "max_tokens"),
    "an unknown parameter": (claude(HI, n=2), "Extra inputs"),
    "an answer last": (claude(HI, [text("ho")]), "prefill"),
    "nothing": (claude(), "at least one message"),
    "an empty message": (claude([]), "non-empty content"),
    "blank words": (claude([text(" ")]), "non-whitespace"),
    "no result": (claude(HI, use("a"), HI), "without `tool_result` blocks immediately after: a"),
    "one result missing": (claude(HI, use("a", "b"), result("a")), "immediately after: b"),
    "words before results": (claude(HI, use("a"), [text("so"), *result("a")]), "must come first"),
    "an orphan": (claude(result("a")), "unexpected `tool_use_id`"),
    "a result twice": (claude(HI, use("a"), result("a", "a")), "unexpected `tool_use_id`"),
    "an id used before": (claude(HI, use("a"), result("a"), use("a"), result("a")), "must be unique"),
    "another's signature": (claude(HI, [{**THOUGHT, "signature": "x"}, *use("a")], result("a")), "Invalid `signature`"),
    "thinking on without": (claude(HI, use("a"), result("a"), thinking=ON), "Expected `thinking`"),
    "thinking and force": (claude(HI, thinking=ON, tool_choice={"type": "any"}), "forces tool use"),
    "calls without tools": (claude(HI, use("a"), result("a"), tools=[]), "must define tools"),
    "a choice nobody has": (claude(HI, tool_choice={"type": "tool", "name": "x"}), "tool_choice"),
    "an image of nothing": (
        claude([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}]),
        "empty",
    ),
    "an image of no kind": (
        claude([{"type": "image", "source": {"type": "base64", "media_type": "image/x", "data": "eA=="}}]),
        "media_type",
    ),
}


# ------------------------------------------------------------------ Responses
def message(role: str, words: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": words}] if role == "user" else words}


def called(name: str, arguments: str = "{}") -> dict[str, Any]:
    return {"type": "function_call", "call_id": name, "name": "look", "arguments": arguments}


def output(name: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": name, "output": "seen"}


def asked(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "stream": True, "store": False, "input": [*items], **more}


def reasoned(words: str, locked: str | None = None) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": words}]
    return {"type": "reasoning", "id": "rs", "summary": summary, "encrypted_content": locked or encrypted(words)}


USER = message("user", "hi")
RESPONSES: Mapping[str, tuple[dict[str, Any], str | None]] = {
    "calls and outputs": (asked(USER, reasoned("hm"), called("a"), called("b"), output("a"), output("b"), USER), None),
    "kept at the server": (asked(USER, store=True), "store"),
    "an unknown parameter": (asked(USER, n=2), "Unknown parameter: 'n'"),
    "nothing": (asked(), "at least one item"),
    "no output": (asked(USER, called("a"), USER), "No tool output found for function call a"),
    "no output at the end": (asked(USER, called("a")), "No tool output found"),
    "an orphan": (asked(USER, output("a")), "No tool call found"),
    "an output twice": (asked(USER, called("a"), output("a"), output("a")), "No tool call found"),
    "an id used before": (asked(USER, called("a"), output("a"), called("a"), output("a")), "Duplicate"),
    "botched arguments": (asked(USER, called("a", "{"), output("a")), "Invalid 'arguments'"),
    "reasoning that led to nothing": (asked(USER, reasoned("hm"), USER), "required following item"),
    "another's reasoning": (asked(USER, reasoned("hm", "x"), called("a"), output("a")), "could not be verified"),
    "the model's words last": (asked(USER, message("assistant", "ho")), "nothing to answer"),
    "an empty message": (asked(USER, message("assistant", " "), USER), "empty message"),
    "a choice without tools": (asked(USER, tool_choice="none"), "tool_choice"),
}


# ------------------------------------------------------------------ Gemini
def said(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "parts": [*parts]}


def call(name: str, sign: str | None = signature("look")) -> dict[str, Any]:
    told = {"functionCall": {"id": name, "name": "look", "args": {}}}
    return {**told, "thoughtSignature": sign} if sign else told


def response(name: str) -> dict[str, Any]:
    return {"functionResponse": {"id": name, "name": "look", "response": {"output": "seen"}}}


def told(*contents: Any, **more: Any) -> dict[str, Any]:
    return {"contents": [*contents], **more}


HELLO = said("user", {"text": "hi"})
GEMINI: Mapping[str, tuple[dict[str, Any], str | None]] = {
    "calls and responses": (
        told(HELLO, said("model", call("a"), call("b", None)), said("user", response("a"), response("b")), HELLO),
        None,
    ),
    "snake case": (told(HELLO, system_instruction=said("user", {"text": "Be brief."})), None),
    "an unknown name": (told(HELLO, messages=[]), 'Unknown name "messages"'),
    "nothing": (told(), "not specified"),
    "no parts": (told(said("user")), "must not be empty"),
    "an empty part": (told(said("user", {"text": ""})), "text parameter"),
    "a response missing": (
        told(HELLO, said("model", call("a"), call("b", None)), said("user", response("a"))),
        "number of function",
    ),
    "no response": (told(HELLO, said("model", call("a")), HELLO), "number of function response parts"),
    "an orphan": (told(said("user", response("a"))), "number of function response parts"),
    "mail among responses": (told(HELLO, said("model", call("a")), said("user", response("a"), {"text": "x"})), "stand alone"),
    "unsigned": (told(HELLO, said("model", call("a", None)), said("user", response("a"))), "missing a thought_signature"),
    "another's signature": (told(HELLO, said("model", call("a", "eA==")), said("user", response("a"))), "or has another's"),
    "the model first": (told(said("model", {"text": "ho"}), HELLO), "does not speak first"),
    "the model last": (told(HELLO, said("model", {"text": "ho"})), "ends with a user turn"),
    "a choice without tools": (told(HELLO, toolConfig={"functionCallingConfig": {"mode": "NONE"}}), "toolConfig"),
}


# ------------------------------------------------------------------ Mistral and Ollama
def chat(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m", "stream": True, "messages": [*messages], **more}


def calling(*names: str, wire: str) -> dict[str, Any]:
    function = {"name": "look", "arguments": {} if wire == "ollama" else "{}"}
    kind = {} if wire == "ollama" else {"type": "function"}
    return {"role": "assistant", "content": "", "tool_calls": [{"id": name, **kind, "function": function} for name in names]}


def tool(name: str) -> dict[str, Any]:
    return {"role": "tool", "content": "seen", "tool_call_id": name, "tool_name": "look"}


PERSON, WORDS = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}
MISTRAL: Mapping[str, tuple[dict[str, Any], str | None]] = {
    "a bridge": (chat(PERSON, calling("abcdefgh1", wire="chat"), tool("abcdefgh1"), WORDS, PERSON), None),
    "a user behind results": (
        chat(PERSON, calling("abcdefgh1", wire="chat"), tool("abcdefgh1"), PERSON),
        "Unexpected role 'user' after role 'tool'",
    ),
    "an id of ours": (chat(PERSON, calling("call_1", wire="chat"), tool("call_1")), "length of 9"),
    "an unknown parameter": (chat(PERSON, stream_options={}), "extra_forbidden"),
    "no result": (chat(PERSON, calling("abcdefgh1", wire="chat"), PERSON), "want their results"),
}
OLLAMA: Mapping[str, tuple[dict[str, Any], str | None]] = {
    "calls and results": (chat(PERSON, calling("", "", wire="ollama"), tool(""), tool(""), PERSON), None),
    "an unknown field": (chat(PERSON, tool_choice="none"), "unknown field"),
    "a result missing": (chat(PERSON, calling("", "", wire="ollama"), tool(""), PERSON), "open calls"),
    "an orphan": (chat(PERSON, tool("")), "does not stand behind user"),
    "two of the user": (chat(PERSON, PERSON), "does not stand behind user"),
    "arguments as text": (chat(PERSON, calling("", wire="chat"), tool("")), "an object as arguments"),
    "an answer last": (chat(PERSON, WORDS), "the last one is"),
    "nothing said": (chat(PERSON, {"role": "assistant", "content": ""}, PERSON), "says nothing"),
}

RULES: Mapping[str, tuple[Rule, Mapping[str, tuple[dict[str, Any], str | None]]]] = {
    "anthropic": (anthropic_rule, ANTHROPIC),
    "openai-responses": (responses_rule, RESPONSES),
    "google": (gemini_rule, GEMINI),
    "mistral": (mistral_rule, MISTRAL),
    "ollama": (ollama_rule, OLLAMA),
}
CASES = [
    pytest.param(rule, body, broken, id=f"{name}: {case}")
    for name, (rule, cases) in RULES.items()
    for case, (body, broken) in cases.items()
]


@pytest.mark.parametrize(("rule", "body", "broken"), CASES)
def test_a_fake_refuses_what_its_provider_refuses_and_says_where(rule: Rule, body: Any, broken: str | None) -> None:
    """Each of these is a 400 somewhere; and what is right is taken."""
    found = rule(body)
    assert found is None if broken is None else broken in (found or "")
