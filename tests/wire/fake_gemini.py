"""Google's Gemini: how the fake server streams, and what it refuses; as strict as the newest models."""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from typing import Any

from fake_server import Answer, Json, Wire, pieces, sse

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}\Z")
_KNOWN = {
    "version",
    "model",
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "generationConfig",
    "safetySettings",
    "cachedContent",
}
_ANY = b64encode(b"skip_thought_signature_validator").decode()


def signature(what: str) -> str:
    """What the server signs a part with."""
    return b64encode(f"gemini {what}".encode()).decode()


# ------------------------------------------------------------------ the stream
def chunks(answer: Answer, body: Json) -> Iterator[bytes]:
    """The chunks of an answer, in Google's manner: whole calls, the first of them signed."""

    def chunk(*parts: Json, **more: Any) -> bytes:
        return sse({"candidates": [{"index": 0, "content": {"role": "model", "parts": [*parts]}, **more}], "modelVersion": "g"})

    yield from (chunk({"text": piece, "thought": True}) for piece in pieces(answer.thinking))
    yield from (chunk({"text": piece}) for piece in pieces(answer.text))
    for index, (name, arguments) in enumerate(answer.calls):
        args = arguments if isinstance(arguments, dict) else {"raw": arguments}
        signed = {} if index else {"thoughtSignature": signature(name)}
        yield chunk({"functionCall": {"id": f"fc_{len(body['contents'])}_{index}", "name": name, "args": args}, **signed})
    if answer.text and answer.thinking and not answer.calls:
        yield chunk({"text": "", "thoughtSignature": signature("end")})
    prompt = 10 * len(body["contents"])
    counts = {"promptTokenCount": prompt, "candidatesTokenCount": 5, "thoughtsTokenCount": 2, "cachedContentTokenCount": 4}
    last = {"candidates": [{"index": 0, "content": {"role": "model", "parts": []}, "finishReason": answer.finish or "STOP"}]}
    yield sse({**last, **({"usageMetadata": {**counts, "totalTokenCount": prompt + 7}} if answer.usage else {})})


# ------------------------------------------------------------------ the rules
def broken_rule(body: Any) -> str | None:
    """The first rule that a request's body breaks, with the place; None if a strict provider would take it."""
    return next(_broken(_camel(body)), None)


def _camel(value: Any) -> Any:
    """Google reads names written either way, and its SDK writes both; what is a user's own stays as it is."""
    if isinstance(value, list):
        return [_camel(each) for each in value]
    if not isinstance(value, dict):
        return value
    named = {re.sub("_([a-z])", lambda found: found[1].upper(), name): each for name, each in value.items()}
    return {
        name: each if name in {"args", "response", "parametersJsonSchema"} else _camel(each) for name, each in named.items()
    }


def _broken(body: Any) -> Iterator[str]:
    yield from (f'Unknown name "{name}": Cannot find field.' for name in sorted(set(body) - _KNOWN))
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        yield "contents is not specified"
        return
    yield from _contents(contents)
    yield from _tools(body)


def _contents(contents: Sequence[Json]) -> Iterator[str]:
    before = ""
    called: list[Any] = []
    for number, content in enumerate(contents):
        role, parts = content.get("role"), content.get("parts")
        if role not in {"user", "model"}:
            yield f"contents[{number}]: Please use a valid role: user, model."
        if not isinstance(parts, list) or not parts:
            yield f"contents[{number}].parts: contents.parts must not be empty."
            return
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        if [answer.get("id") for answer in answers] != called:
            yield "Please ensure that the number of function response parts is equal to the number of function call parts"
        if answers and len(answers) < len(parts):
            yield f"contents[{number}]: function responses stand alone"
        called = [part["functionCall"].get("id") for part in parts if "functionCall" in part]
        if called and before != "user":
            yield "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
        if role == "model" and before != "user":
            yield f"contents[{number}]: the model does not speak first, nor twice"
        first = next((part for part in parts if "functionCall" in part), None)
        if first is not None and first.get("thoughtSignature") not in {signature(str(first["functionCall"]["name"])), _ANY}:
            yield f"Function call {first['functionCall']['name']} is missing a thought_signature, or has another's"
        yield from (f"contents[{number}]: {rule}" for rule in _parts(str(role), parts))
        before = str(role)
    if called or before != "user":
        yield "Please ensure that the conversation ends with a user turn or a function response"


def _parts(role: str, parts: Sequence[Json]) -> Iterator[str]:
    for part in parts:
        match part:
            case {"text": "", "thoughtSignature": signed} if role == "model":
                if signed != signature("end"):
                    yield "Thought signature is not valid"
            case {"text": str(text)}:
                if not text.strip():
                    yield "Unable to submit request because it must have a text parameter"
            case {"inlineData": {"mimeType": str(), "data": str(data)}} if role == "user":
                if not b64decode(data, validate=True):
                    yield "inlineData: empty"
            case {"functionCall": {"name": str(name), "args": dict()}} if role == "model" and _NAME.match(name):
                pass
            case {"functionResponse": {"name": str(name), "response": dict()}} if role == "user" and _NAME.match(name):
                pass
            case _:
                yield f"required oneof field 'data' must have one initialized field: {part!r}"


def _tools(body: Json) -> Iterator[str]:
    names: list[str] = []
    for tool in body.get("tools", ()):
        for function in tool.get("functionDeclarations", ()):
            names.append(function.get("name", ""))
            if (function.get("parametersJsonSchema") or {}).get("type") != "object":
                yield f"tools: not a function with an object as parameters: {function!r}"
    if len(set(names)) < len(names) or not all(map(_NAME.match, names)):
        yield f"tools: Duplicate or invalid function declaration found: {names}"
    if "tools" in body and not names:
        yield "tools: an empty list"
    match body.get("toolConfig", {}).get("functionCallingConfig"):
        case None:
            pass
        case {"mode": "AUTO" | "NONE" | "ANY"} as choice if names and {*choice.get("allowedFunctionNames", ())} <= {*names}:
            pass
        case choice:
            yield f"toolConfig: Function calling config is set without function_declarations: {choice!r}"


def refusal(status: int, message: str, code: str | None) -> Json:
    """Google's error."""
    names = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}
    return {"error": {"code": status, "message": message, "status": names.get(status, code or "UNKNOWN")}}


def _failure(message: str) -> bytes:
    return json.dumps(refusal(503, message, None)).encode() + b"\n"


GEMINI = Wire(
    "/{version}/models/{model}:streamGenerateContent", broken_rule, chunks, refusal,
    lambda request: request.headers.get("x-goog-api-key"), _failure,
)  # fmt: skip
