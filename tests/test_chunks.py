"""How streamed chunks become an answer, whatever the server's accent."""

from types import SimpleNamespace
from typing import Any

import pytest

from actors.models._blocks import Completion, ModelEvent, Text, TextDelta, Thinking, ThinkingDelta, ToolCall, Usage
from actors.models._chunks import Accumulator

TIMES_TWO = [ToolCall("", "f", {"a": 1}, "x"), ToolCall("", "g", {"b": 2}, "y")]


def part(text: str | None = None, index: int | None = None, **more: Any) -> dict[str, Any]:
    """A delta of one tool call."""
    function = {key: value for key, value in {"arguments": text, "name": more.pop("name", None)}.items() if value is not None}
    return {"function": function, **({} if index is None else {"index": index}), **more}


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def played(*chunks: dict[str, Any]) -> tuple[list[ModelEvent], Completion]:
    """What a stream of these chunks is read as."""
    answer = Accumulator()
    events = [event for chunk in chunks for event in answer.feed(as_sdk(chunk))]
    return events, answer.completion(lambda: 50)


def as_sdk(value: Any) -> Any:
    """JSON as the SDK hands it on: objects with the wire's names; what it does not expect stays a dict."""
    if isinstance(value, list):
        return [as_sdk(item) for item in value]
    if isinstance(value, dict):
        return SimpleNamespace(**{key: item if key == "arguments" else as_sdk(item) for key, item in value.items()})
    return value


CALLS: dict[str, tuple[list[list[dict[str, Any]]], list[ToolCall]]] = {
    "in pieces, by index": (
        [
            [part("", 0, id="x", name="f")],
            [part('{"a"', 0)],
            [part(":1}", 0)],
            [part("", 1, id="y", name="g")],
            [part('{"b":2}', 1)],
        ],
        TIMES_TWO,
    ),
    "interleaved": (
        [
            [part("", 0, id="x", name="f"), part("", 1, id="y", name="g")],
            [part('{"a":', 0), part('{"b":2', 1)],
            [part("1}", 0), part("}", 1)],
        ],
        TIMES_TWO,
    ),
    "whole, in one chunk": ([[part('{"a":1}', 0, id="x", name="f"), part('{"b":2}', 1, id="y", name="g")]], TIMES_TWO),
    "whole, without index": ([[part('{"a":1}', id="x", name="f"), part('{"b":2}', id="y", name="g")]], TIMES_TWO),
    "whole, all with index 0": ([[part('{"a":1}', 0, id="x", name="f")], [part('{"b":2}', 0, id="y", name="g")]], TIMES_TWO),
    "in pieces, without index": (
        [[part("", id="x", name="f")], [part('{"a":')], [part("1}")], [part("", id="y", name="g")], [part('{"b":2}')]],
        TIMES_TWO,
    ),
    "id and name repeated in every piece": (
        [[part('{"a":', 0, id="x", name="f")], [part("1}", 0, id="x", name="f")], [part('{"b":2}', 1, id="y", name="g")]],
        TIMES_TWO,
    ),
    "a fresh id in every piece": ([[part('{"a":', 0, id="x", name="f")], [part("1}", 0, id="x2")]], TIMES_TWO[:1]),
    "an id that comes late": ([[part("", 0, name="f")], [part('{"a":1}', 0, id="x")]], TIMES_TWO[:1]),
    "ids empty": (
        [[part('{"a":1}', 0, id="", name="f")], [part('{"b":2}', 1, id="", name="g")]],
        [ToolCall("", "f", {"a": 1}), ToolCall("", "g", {"b": 2})],
    ),
    "neither id nor index, whole": (
        [[part('{"a":1}', name="f"), part('{"a":1}', name="f"), part("{}", name="g")]],
        [ToolCall("", "f", {"a": 1}), ToolCall("", "f", {"a": 1}), ToolCall("", "g", {})],
    ),
    "index 0 for all, without ids": (
        [[part('{"a":1}', 0, name="f"), part('{"a":1}', 0, name="f")]],
        [ToolCall("", "f", {"a": 1})] * 2,
    ),
    "a name in pieces": (
        [[part("", 0, id="x", name="f")], [part(None, 0, name="oo")], [part("{}", 0)]],
        [ToolCall("", "foo", {}, "x")],
    ),
    "indices that start at 1": ([[part('{"a":1}', 1, id="x", name="f")]], TIMES_TWO[:1]),
    "no arguments at all": ([[part(None, 0, id="x", name="f")]], [ToolCall("", "f", {}, "x")]),
    "arguments as an object": ([[{"index": 0, "id": "x", "function": {"name": "f", "arguments": {"a": 1}}}]], TIMES_TWO[:1]),
    "arguments cut": ([[part('{"a":', 0, id="x", name="f")]], [ToolCall("", "f", {}, "x", unparsable='{"a":')]),
    "arguments that are no object": ([[part("[1]", 0, id="x", name="f")]], [ToolCall("", "f", {}, "x", unparsable="[1]")]),
    "arguments in words": ([[part("at noon", 0, id="x", name="f")]], [ToolCall("", "f", {}, "x", unparsable="at noon")]),
    "no name": ([[part("{}", 0, id="x")]], [ToolCall("", "unnamed", {}, "x")]),
    "null for nothing": (
        [[{"index": 0, "id": "x", "function": {"name": "f", "arguments": None}}], [{"index": 0, "id": None, "function": None}]],
        [ToolCall("", "f", {}, "x")],
    ),
}


@pytest.mark.parametrize(("chunks", "wanted"), CALLS.values(), ids=CALLS)
def test_tool_calls_are_put_together(chunks: list[list[dict[str, Any]]], wanted: list[ToolCall]) -> None:
    """Each accent is one that some server speaks."""
    _, completion = played(*(delta(tool_calls=calls) for calls in chunks), delta("tool_calls"))
    assert (list(completion.blocks), completion.stop) == (wanted, "calls")


def test_words_and_thinking_keep_their_order() -> None:
    """A block ends where another kind begins."""
    events, completion = played(
        delta(reasoning_content="h"), delta(reasoning_content="m"), delta(content="a"), delta(content="b"),
        delta(tool_calls=[part("{}", 0, id="x", name="f")]), delta(content="c"), delta("stop"),
    )  # fmt: skip
    assert completion.blocks == (Thinking("hm"), Text("ab"), ToolCall("", "f", {}, "x"), Text("c"))
    assert events == [ThinkingDelta("h"), ThinkingDelta("m"), TextDelta("a"), TextDelta("b"), TextDelta("c")]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_has_two_names(field: str) -> None:
    """It is not in OpenAI's shape; servers chose."""
    assert played(delta(**{field: "hm"}), delta("stop"))[0] == [ThinkingDelta("hm")]


CALL = [part("{}", 0, id="x", name="f")]
STOPS: dict[str, tuple[dict[str, Any], str]] = {
    "done": (delta("stop", content="a"), "end"),
    "calls": (delta("tool_calls", tool_calls=CALL), "calls"),
    "calls called a stop": (delta("stop", tool_calls=CALL), "calls"),
    "calls promised and not made": (delta("tool_calls", content="a"), "end"),
    "cut by length": (delta("length", content="a"), "length"),
    "calls cut by length": (delta("length", tool_calls=CALL), "length"),
    "filtered": (delta("content_filter"), "refused"),
    "refused in words": (delta("stop", refusal="I would rather not."), "refused"),
    "a reason nobody knows": (delta("eos", content="a"), "end"),
    "nothing at all": (delta("stop"), "end"),
}


@pytest.mark.parametrize(("chunk", "stop"), STOPS.values(), ids=STOPS)
def test_why_it_stopped(chunk: dict[str, Any], stop: str) -> None:
    """Servers name the reason, and not always rightly."""
    assert played(chunk)[1].stop == stop


def test_a_refusal_is_words() -> None:
    """The transcript keeps what was said."""
    assert played(delta("stop", refusal="I would rather not."))[1].blocks == (Text("I would rather not."),)


def test_the_count_comes_last_and_in_a_chunk_of_its_own() -> None:
    """So the end of the answer is not the end of the stream."""
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}
    assert played(delta(content="a"), delta("stop"), usage)[1].usage == Usage(1, 9, 3)


def test_of_several_counts_the_last_one_counts() -> None:
    """Some servers count as they go."""
    chunks = [{**delta(content="a"), "usage": {"prompt_tokens": 9, "completion_tokens": n}} for n in (1, 2)]
    assert played(*chunks, delta("stop"))[1].usage == Usage(1, 9, 2)


def test_without_a_count_usage_is_an_estimate_and_says_so() -> None:
    """A limit on tokens must hold with every server."""
    completion = played(delta(content="x" * 40), delta(tool_calls=[part("{}", 0, id="x", name="f")]), delta("stop"))[1]
    assert completion.usage == Usage(1, 50, 11, estimated=True)


def test_only_the_first_of_several_answers_is_read() -> None:
    """With `n`, nobody reads the others."""
    other = {"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": None}]}
    assert played(delta(content="a"), other, delta("stop"))[1].blocks == (Text("a"),)


@pytest.mark.parametrize("odd", [{}, {"choices": None}, {"choices": [{}]}, {"choices": [{"delta": None}]}, delta(content=None)])
def test_an_empty_chunk_is_nothing(odd: dict[str, Any]) -> None:
    """Keep-alives and filters' own chunks carry no words."""
    assert played(odd, delta("stop", content="a"))[1].blocks == (Text("a"),)


def test_it_is_finished_with_the_reason_and_not_before() -> None:
    """What ends without one was cut."""
    answer = Accumulator()
    seen = []
    for finish in (None, "stop", None):
        answer.feed(SimpleNamespace(choices=[SimpleNamespace(index=0, delta=None, finish_reason=finish)]))
        seen.append(answer.finished)
    assert seen == [False, True, True]
