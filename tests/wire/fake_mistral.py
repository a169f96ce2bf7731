"""Mistral: OpenAI's wire with an accent of its own, and rules of its own on top."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import chat_rules
from fake_chat import CHAT
from fake_chat import chunks as chat_chunks
from fake_server import Answer, Json, Wire, pieces, sse

_ID = re.compile(r"[a-zA-Z0-9]{9}\Z")
_KNOWN = {"model", "messages", "stream", "tools", "tool_choice", "temperature", "max_tokens", "top_p", "stop", "random_seed"}


def chunks(answer: Answer, body: Json) -> Iterator[bytes]:
    """The chunks of an answer, in Mistral's manner: whole calls, thinking as a part of the content, the count unasked."""
    words = Answer(text=answer.text, finish=answer.finish or ("tool_calls" if answer.calls else "stop"))
    *spoken, end = chat_chunks(words, body)
    frame = {"id": "cmpl-1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
    for piece in pieces(answer.thinking):
        content = [{"type": "thinking", "thinking": [{"type": "text", "text": piece}]}]
        yield sse({**frame, "choices": [{"index": 0, "delta": {"content": content}, "finish_reason": None}]})
    yield from map(sse, spoken)
    calls = [
        {"id": f"{len(body['messages']):08x}{index}", "index": index, "function": {"name": name, "arguments": _json(arguments)}}
        for index, (name, arguments) in enumerate(answer.calls)
    ]
    if calls:
        end["choices"][0]["delta"] = {"role": "assistant", "content": "", "tool_calls": calls}
    tokens = {"prompt_tokens": 10 * len(body["messages"]), "completion_tokens": 7}
    yield sse({**end, **({"usage": {**tokens, "total_tokens": sum(tokens.values())}} if answer.usage else {})})
    yield b"data: [DONE]\n\n"


def _json(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def broken_rule(body: Any) -> str | None:
    """The first rule that a request's body breaks, with the place; None if a strict provider would take it."""
    return next(_broken(body), None)


def _broken(body: Any) -> Iterator[str]:
    yield from (f"extra_forbidden: {name}" for name in sorted(set(body) - _KNOWN))
    rule = chat_rules.broken_rule(body)
    if rule is not None:
        yield rule
        return
    for number, (before, message) in enumerate(pairwise(body["messages"]), 1):
        if (before["role"], message["role"]) == ("tool", "user"):
            yield f"messages[{number}]: Unexpected role 'user' after role 'tool'"
        names = [call["id"] for call in message.get("tool_calls", ())] + [message.get("tool_call_id")]
        wrong = [name for name in names if name is not None and not _ID.match(name)]
        if wrong:
            yield f"Tool call id was {wrong[0]} but must be a-z, A-Z, 0-9, with a length of 9."


MISTRAL = Wire(CHAT.path, broken_rule, chunks, CHAT.refusal, CHAT.key, CHAT.fail, base=CHAT.base)
