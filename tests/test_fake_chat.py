"""The fake server is as strict as a provider, or the tests that use it prove nothing."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import trio
from chat_rules import broken_rule
from fake_chat import FakeChat, chunks, fake_chat
from fake_server import Answer

TOOL = {"type": "function", "function": {"name": "look", "description": "", "parameters": {"type": "object"}}}
USER = {"role": "user", "content": "hi"}
SAYS = {"role": "assistant", "content": "ho"}


def asks(*ids: Any, content: Any = "", name: Any = "look", arguments: Any = "{}", kind: str = "function") -> dict[str, Any]:
    calls = [{"id": key, "type": kind, "function": {"name": name, "arguments": arguments}} for key in ids]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def result(key: str, content: Any = "seen") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": key, "content": content}


def body(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m", "stream": True, "messages": [*messages], **more}


def shown(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": [*parts]}


FINE = {
    "a question": body(USER),
    "instructions first": body({"role": "system", "content": "Be brief."}, USER),
    "calls and results": body(USER, asks("a", "b"), result("a"), result("b"), asks("c"), result("c", "")),
    "mail behind results": body(USER, asks("a"), result("a"), USER, SAYS, USER),
    "a picture": body(
        shown({"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}})
    ),
    "a tool to choose": body(USER, tools=[TOOL], tool_choice={"type": "function", "function": {"name": "look"}}),
    "no tool, please": body(USER, tools=[TOOL], tool_choice="none"),
}
BROKEN = {
    "no object": ([], "model"),
    "no model": ({"messages": [USER], "stream": True}, "model"),
    "no stream": (body(USER, stream=False), "only streams"),
    "no messages": (body(), "at least one"),
    "no such role": (body({"role": "robot", "content": "hi"}), "no role 'robot'"),
    "instructions in the middle": (body(USER, {"role": "system", "content": "Be brief."}), "messages[1]: a system message does not"),
    "two of the user": (body(USER, USER), "messages[1]: a user message does not stand behind user"),
    "two answers": (body(USER, SAYS, SAYS, USER), "messages[2]"),
    "an answer first": (body(SAYS, USER), "messages[0]"),
    "an empty question": (body({"role": "user", "content": " "}), "a user message has content"),
    "a null question": (body({"role": "user", "content": None}), "a user message has content"),
    "an empty part": (body(shown({"type": "text", "text": ""})), "no part"),
    "a part of no kind": (body(shown({"type": "smell"})), "no part"),
    "a picture from a file": (body(shown({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}})), "no part"),
    "nothing said": (body(USER, {"role": "assistant", "content": ""}, USER), "content or tool calls"),
    "null beside calls": (body(USER, asks("a", content=None), result("a")), "also beside calls"),
    "an empty list of calls": (body(USER, asks(content="ho"), USER), "empty list"),
    "no result": (body(USER, asks("a")), "want their results: a"),
    "words before results": (body(USER, asks("a"), USER, result("a")), "want their results first: a"),
    "an answer before results": (body(USER, asks("a"), SAYS, USER), "want their results first: a"),
    "one result missing": (body(USER, asks("a", "b"), result("a"), USER), "want their results first: b"),
    "results out of order": (body(USER, asks("a", "b"), result("b"), result("a")), "next open call is ['a']"),
    "a result twice": (body(USER, asks("a"), result("a"), result("a")), "next open call is []"),
    "an orphan": (body(USER, result("a")), "a tool message does not stand behind user"),
    "an orphan behind words": (body(USER, SAYS, result("a")), "a tool message does not stand behind assistant"),
    "another's result": (body(USER, asks("a"), result("x")), "result of 'x'"),
    "a result that is no text": (body(USER, asks("a"), result("a", None)), "content is a string"),
    "an id used before": (body(USER, asks("a"), result("a"), asks("a"), result("a")), "'a' was used before"),
    "an id with a colon": (body(USER, asks("a:b"), result("a:b")), "an id of"),
    "no id": (body(USER, asks(None), result("None")), "an id of"),
    "a call of no kind": (body(USER, asks("a", kind="custom"), result("a")), "a call has type function"),
    "a tool name in two words": (body(USER, asks("a", name="look at"), result("a")), "no tool name"),
    "no tool name": (body(USER, asks("a", name=""), result("a")), "no tool name"),
    "arguments that are no JSON": (body(USER, asks("a", arguments="{"), result("a")), "the JSON of an object"),
    "arguments that are a list": (body(USER, asks("a", arguments="[]"), result("a")), "the JSON of an object"),
    "arguments as an object": (body(USER, asks("a", arguments={}), result("a")), "the JSON of an object"),
    "an answer last": (body(USER, SAYS), "the last one is of the user or of a tool"),
    "no tools in a list": (body(USER, tools=[]), "an empty list"),
    "a tool without parameters": (body(USER, tools=[{"type": "function", "function": {"name": "look"}}]), "not a function"),
    "two tools of one name": (body(USER, tools=[TOOL, TOOL]), "two of one name"),
    "a choice without tools": (body(USER, tool_choice="none"), "needs tools"),
    "a choice nobody has": (body(USER, tools=[TOOL], tool_choice="look"), "needs tools"),
    "a tool nobody has": (body(USER, tools=[TOOL], tool_choice={"type": "function", "function": {"name": "x"}}), "needs tools"),
    "a stream option nobody has": (body(USER, stream_options={"usage": True}), "stream_options"),
}  # fmt: skip


@pytest.mark.parametrize("request_body", FINE.values(), ids=FINE)
def test_what_a_provider_takes_is_taken(request_body: dict[str, Any]) -> None:
    """A fake that refuses the right thing sends people astray."""
    assert broken_rule(request_body) is None


@pytest.mark.parametrize(("request_body", "rule"), BROKEN.values(), ids=BROKEN)
def test_what_a_provider_refuses_is_refused_with_the_place(request_body: Any, rule: str) -> None:
    """Each of these is a 400 somewhere."""
    assert rule in (broken_rule(request_body) or "")


def test_an_answer_streams_as_openai_does() -> None:
    """Role, words in pieces, calls in pieces, the reason, and the count in a chunk of its own."""
    answer = Answer(text="Hello you", calls=[("look", {"at": 1})])
    *parts, end, count = chunks(answer, body(USER, stream_options={"include_usage": True}))
    deltas = [part["choices"][0]["delta"] for part in parts]
    assert [delta.get("content") for delta in deltas[:3]] == ["", "Hello", " you"]
    calls = [delta["tool_calls"][0] for delta in deltas[3:]]
    assert (calls[0]["id"], calls[0]["function"]) == ("call_1_0", {"name": "look", "arguments": ""})
    assert json.loads("".join(call["function"]["arguments"] for call in calls)) == {"at": 1}
    assert (end["choices"][0]["finish_reason"], end["usage"], count["choices"]) == ("tool_calls", None, [])
    assert count["usage"]["total_tokens"] == 17


def _post(url: str, request_body: dict[str, Any]) -> tuple[int, str]:
    """Without any SDK: what really comes over the wire."""
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(request_body).encode())
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def _posted(chat: FakeChat, request_body: dict[str, Any]) -> tuple[int, str]:
    return await trio.to_thread.run_sync(_post, chat.url, request_body)


async def test_a_broken_transcript_takes_no_answer() -> None:
    """The answer is for the request that is right."""
    async with fake_chat(Answer(text="Hello")) as chat:
        status, told = await _posted(chat, body(USER, asks("a")))
        assert (status, json.loads(told)["error"]["type"]) == (400, "invalid_request_error")
        status, told = await _posted(chat, body(USER))
        assert (status, told.splitlines()[-2]) == (200, "data: [DONE]")
        assert chat.broken == ["messages: the last tool calls want their results: a"]
        assert len(chat.bodies) == 2


async def test_an_answer_may_depend_on_what_was_asked() -> None:
    """For agents whose order nobody can foresee."""
    async with fake_chat(otherwise=lambda asked: Answer(text=asked["messages"][-1]["content"].upper())) as chat:
        assert '"content": "HI"' in (await _posted(chat, body(USER)))[1]


async def test_when_the_answers_are_used_up_it_says_so() -> None:
    """Silence would look like a hang of ours."""
    async with fake_chat() as chat:
        status, told = await _posted(chat, body(USER))
        assert (status, json.loads(told)["error"]["code"]) == (400, "used_up")


def test_another_process_can_be_given_a_server() -> None:
    """The command line is tested as people use it."""
    script, answers = Path(__file__).with_name("fake_chat.py"), '[{"text": "Hello"}]'
    command = [sys.executable, str(script), answers]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        url = server.stdout.readline().decode().strip()
        assert _post(url, body(USER))[0] == 200
        server.stdin.close()
        assert server.wait(10) == 0
