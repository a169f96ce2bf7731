"""What models and providers get wrong, on the wire: words that somebody can read, and a strict server that takes what follows."""

from typing import Any

import pytest
import trio
from fake_chat import fake_chat
from fake_server import Answer

from actors import Agent, RunFailed, tool
from supervision import open_system


class Clerk(Agent):
    """You read logs."""

    model = "openai:fake"

    @tool
    async def read_log(self, name: str) -> str:
        """Read a log."""
        return f"{name}: fine"


TWICE: list[tuple[str, dict[str, Any] | str]] = [("read_log", {"name": "a"}), ("read_log", {"name": "b"})]
WIRE: dict[str, tuple[Answer, str]] = {
    "cut off by length before a word": (Answer(finish="length"), "length limit"),
    "refused by a filter": (Answer(finish="content_filter"), "refused"),
    "a 400 with a reason": (Answer(status=400, message="this model knows no such thing"), "knows no such thing"),
    "a context that is too long": (Answer(status=400, message="too many tokens", code="context_length_exceeded"), "too many"),
    "a key that does not open": (Answer(status=401, message="incorrect API key"), "incorrect API key"),
    "a model that there is not": (Answer(status=404, message="no such model"), "no such model"),
}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that the fake server takes."""
    monkeypatch.setenv("OPENAI_API_KEY", "sesame")


@pytest.mark.parametrize("what", WIRE)
async def test_what_a_provider_refuses_is_the_reason_and_the_next_message_is_answered(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its own words; its next request is one that the strict server takes."""
    answer, why = WIRE[what]
    with trio.fail_after(30):
        async with fake_chat(answer, Answer(text="here")) as chat:
            monkeypatch.setenv("OPENAI_BASE_URL", chat.url)
            async with open_system() as system:
                session = await system.open(Clerk)
                with pytest.raises(RunFailed, match=why):
                    await session.ask("go")
                assert await session.ask("still there?") == "here"
    assert chat.broken == []


READ: dict[str, Answer] = {
    "the same call twice": Answer(calls=TWICE),
    "arguments that are no JSON": Answer(calls=[("read_log", '{"name": ')]),
    "a tool that there is not": Answer(calls=[("raed_log", {"name": "a"})]),
    "nothing": Answer(),
    "calls cut off by length": Answer(calls=[("read_log", '{"name": "a')], finish="length"),
}


@pytest.mark.parametrize("what", READ)
async def test_what_a_model_gets_wrong_on_the_wire_is_told_to_it(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call has its result; the strict server takes the next request, and the one after."""
    with trio.fail_after(30):
        async with fake_chat(READ[what], Answer(text="sorry"), Answer(text="here")) as chat:
            monkeypatch.setenv("OPENAI_BASE_URL", chat.url)
            async with open_system() as system:
                session = await system.open(Clerk)
                assert await session.ask("go") == "sorry"
                assert await session.ask("still there?") == "here"
    assert chat.broken == []
