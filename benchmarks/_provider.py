"""A provider on loopback that thinks of nothing: canned streams, from a process of its own, so that its work is nobody's.

`python -m benchmarks._provider` prints its port and serves until its stdin closes. A model called `calls-20` answers 20 requests with a
tool call and the next with a last word, and begins again.
"""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import trio

_MODEL = re.compile(rb'"model": ?"calls-(\d+)')
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
WORDS = [f"piece {number} " for number in range(8)]  # of each answer
ADD = ("add", {"amount": 1})


def _sse(*events: Mapping[str, Any]) -> bytes:
    return b"".join(
        (f"event: {event['type']}\n" if "type" in event else "").encode() + f"data: {json.dumps(event)}\n\n".encode()
        for event in events
    )


def _chat(*, last: bool) -> bytes:
    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> Mapping[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}

    function = {"name": ADD[0], "arguments": json.dumps(ADD[1])}
    call = {"tool_calls": [{"index": 0, "id": "call_0", "type": "function", "function": function}]}
    usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
    end = [chunk({}, "stop")] if last else [chunk(call), chunk({}, "tool_calls")]
    return (
        _sse(*(chunk({"content": word}) for word in WORDS), *end, {**chunk({}), "choices": [], "usage": usage})
        + b"data: [DONE]\n\n"
    )


def _messages(*, last: bool) -> bytes:
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    words = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}} for word in WORDS),
        {"type": "content_block_stop", "index": 0},
    ]
    tool = {"type": "tool_use", "id": "toolu_0", "name": ADD[0], "input": {}}
    call = [
        {"type": "content_block_start", "index": 1, "content_block": tool},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": json.dumps(ADD[1])}},
        {"type": "content_block_stop", "index": 1},
    ]
    end = {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn" if last else "tool_use"},
        "usage": {"output_tokens": 10},
    }
    return _sse({"type": "message_start", "message": message}, *words, *([] if last else call), end, {"type": "message_stop"})


ANSWERS = {
    path: {last: make(last=last) for last in (False, True)} for path, make in ((b"/chat", _chat), (b"/messages", _messages))
}


async def _serve(stream: trio.SocketStream) -> None:
    seen = Counter[bytes]()
    waiting = b""
    async for chunk in stream:
        waiting += chunk
        head, found, rest = waiting.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not found or length is None or len(rest) < int(length[1]):
            continue
        model = _MODEL.search(rest)
        assert model is not None
        seen[model[1]] = (seen[model[1]] + 1) % (int(model[1]) + 1)
        path = next(path for path in ANSWERS if path in head.partition(b"\r\n")[0])
        answer = ANSWERS[path][seen[model[1]] == 0]
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(answer)
        waiting = b""
        await stream.send_all(head + answer)


async def _main() -> None:
    async with trio.open_nursery() as nursery:
        [listener, *_] = await nursery.start(partial(trio.serve_tcp, _serve, 0, host="127.0.0.1"))
        print(listener.socket.getsockname()[1], flush=True)
        await trio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
        nursery.cancel_scope.cancel()


@contextmanager
def provider(url: str, key: str, path: str = "") -> Iterator[str]:
    """Have it run, and these settings lead to it."""
    command = [sys.executable, "-m", "benchmarks._provider"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        os.environ[key] = "sesame"
        os.environ[url] = f"http://127.0.0.1:{process.stdout.readline().strip()}{path}"
        try:
            yield os.environ[url]
        finally:
            process.stdin.close()


if __name__ == "__main__":
    trio.run(_main)
