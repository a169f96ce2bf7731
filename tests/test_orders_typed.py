"""Orders that a person types beside `postroom run`: what a line means, and what a real process then does."""

from pathlib import Path

import pytest
from command import events_of, postroom, running
from fake_chat import Answer, fake_chat

from supervision.terminal._orders import HELP, ORDERS, Typed, understood

DESK = '''
import trio
from actors import Agent, tool

class Clerk(Agent):
    """You read logs."""
    model = "openai:fake"
    interrupt_completions = True

    @tool
    async def read_log(self, name: str, seconds: float = 0.5) -> str:
        """Read a log."""
        await trio.sleep(seconds)
        return f"{name}: 2 warnings"
'''
READ_PROD = Answer(calls=[("read_log", {"name": "prod"})])
READ_LONG = Answer(calls=[("read_log", {"name": "prod", "seconds": 60})])
HANGS = Answer(text="Hello, this hangs.", hang_after=3)
CLERK = ("run", "desk:Clerk", "Check the prod log.")


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory with a module `desk`."""
    (tmp_path / "desk.py").write_text(DESK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("NO_COLOR", "1")


# ------------------------------------------------------------------ what a line means
MEANT = {
    "Check the prod log.": Typed("say", "Check the prod log."),
    "/etc/hosts is odd": Typed("say", "/etc/hosts is odd"),
    "/": Typed("say", "/"),
    "/ pause": Typed("say", "/ pause"),
    "//pause": Typed("say", "/pause"),
    "//": Typed("say", "/"),
    "/pause": Typed("pause"),
    "/PAUSE": Typed("pause"),
    "/resume": Typed("resume"),
    "/stop": Typed("stop"),
    "/interrupt  staging first ": Typed("interrupt", "staging first "),
    "/cancel": Typed("cancel"),
    "/cancel call_1 call_2": Typed("cancel", "call_1 call_2"),
}


@pytest.mark.parametrize("line", MEANT)
def test_a_line_is_mail_unless_its_first_word_is_an_order(line: str) -> None:
    """A path is mail; what looks like an order can be sent too."""
    assert understood(line) == MEANT[line]


ANSWERED = {
    "/puase": "there is no order /puase: did you mean /pause? //puase sends it as mail",
    "/xyzzy now": "there is no order /xyzzy: /help lists what there is; //xyzzy now sends it as mail",
    "/pause now": "/pause stands alone; type it again without 'now'",
    "/interrupt": "/interrupt needs words, such as: /interrupt look at staging first",
}


@pytest.mark.parametrize("line", ANSWERED)
def test_an_order_that_there_is_not_goes_to_nobody(line: str) -> None:
    """The model would read it, and go on; the person is told what to type."""
    assert understood(line) == Typed("note", ANSWERED[line])


def test_help_lists_every_order() -> None:
    """One table, read by people and by the program."""
    assert [line.split()[0] for line in HELP.splitlines()] == [f"/{name}" for name in ORDERS]
    assert understood("/help").words.startswith(HELP)


# ------------------------------------------------------------------ what then happens
async def test_a_pause_holds_the_next_request_until_it_is_resumed() -> None:
    """What runs goes on; what was said meanwhile is read then."""
    async with fake_chat(READ_PROD, Answer(text="All right.")) as chat, running(*CLERK, url=chat.url) as run:
        await run.until("▸ read_log")
        await run.type("/pause\n")
        await run.until("paused: /resume goes on")
        await run.type("And staging.\n")
        await run.until("✓ read_log")
        assert len(chat.bodies) == 1
        await run.type("/resume\n")
        assert await run.end() == 0
    assert chat.messages[-1] == {"role": "user", "content": "And staging."}


async def test_a_stop_ends_the_run_and_the_next_line_says_what_to_do_instead() -> None:
    """As Ctrl-C, for whoever has none."""
    async with fake_chat(HANGS, Answer(text="Goodbye.")) as chat, running(*CLERK, url=chat.url) as run:
        await run.until("Hello")
        await run.type("/stop\n")
        await run.until("run stopped")
        await run.type("Say goodbye.\n")
        assert await run.end() == 0
    assert "Goodbye." in run.seen
    assert "[run stopped]" in chat.messages[-1]["content"]


async def test_an_interrupt_cuts_the_answer_off() -> None:
    """The agent allows it; both texts stand in one turn."""
    async with fake_chat(HANGS, Answer(text="All right.")) as chat, running(*CLERK, url=chat.url) as run:
        await run.until("Hello")
        await run.type("/interrupt staging first\n")
        assert await run.end() == 0
    assert "All right." in run.seen
    assert "staging first" in chat.messages[-1]["content"]


async def test_a_call_is_cancelled_by_its_id_and_a_wrong_id_is_answered_with_those_that_run() -> None:
    """The run goes on with what the model makes of it."""
    async with fake_chat(READ_LONG, Answer(text="Never mind.")) as chat, running(*CLERK, url=chat.url) as run:
        await run.until("▸ read_log")
        await run.type("/cancel call_9\n")
        await run.until("no call call_9 runs; running: call_1 (read_log)")
        await run.type("/cancel call_1\n")
        assert await run.end() == 0
    assert "✗ read_log" in run.seen
    assert "cancelled" in chat.messages[-1]["content"]


async def test_two_slashes_send_one() -> None:
    """No text is out of reach."""
    async with fake_chat(READ_PROD, Answer(text="Done.")) as chat, running(*CLERK, url=chat.url) as run:
        await run.until("▸ read_log")
        await run.type("/puase\n")
        await run.until("did you mean /pause?")
        await run.type("//pause\n")
        assert await run.end() == 0
    assert chat.messages[-1] == {"role": "user", "content": "/pause"}


@pytest.mark.parametrize("order", [b"/pause\n", b"/stop\n"])
async def test_an_end_of_input_behind_an_order_leaves(order: bytes) -> None:
    """Nobody is there to say how it goes on."""
    async with fake_chat(otherwise=READ_LONG) as chat:
        done = await postroom(*CLERK, "--json", url=chat.url, typed=order)
    assert done.returncode == 130
    assert "run_started" in {event["kind"] for event in events_of(done)} or order == b"/stop\n"
