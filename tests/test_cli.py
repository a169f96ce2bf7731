"""`postroom` as people run it: real processes, a real terminal where it matters, a strict server that speaks like OpenAI's."""

import signal
import sys
from pathlib import Path

import pytest
import trio
from command import COMMAND, Screen, environment, events_of, on_a_terminal, postroom, running
from fake_chat import fake_chat
from fake_server import Answer

from supervision.terminal._main import main

DESK = '''
import trio
from actors import Agent, tool

class Clerk(Agent):
    """You read logs."""
    model = "openai:fake"

    @tool
    async def read_log(self, name: str) -> str:
        """Read a log."""
        await trio.sleep(0.5)
        return f"{name}: 2 warnings"

class NoModel(Agent):
    """Nobody answers."""

class WrongModel(Agent):
    model = "opnai:gpt"

class NotAnAgent: pass
'''
BARE = """
from actors import Agent, tool

class Bare(Agent):
    @tool
    def look(self, where): return "here"
"""
FRAIL = """
from actors import Agent

class Frail(Agent):
    model = "openai:fake"

    async def on_start(self):
        raise ConnectionError("no database")
"""
READ_PROD = Answer(calls=[("read_log", {"name": "prod"})])


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a module `desk`, and an environment without keys."""
    (tmp_path / "desk.py").write_text(DESK)
    (tmp_path / "bare.py").write_text(BARE)
    (tmp_path / "frail.py").write_text(FRAIL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "desk", raising=False)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("PYTHONWARNINGS", "error,ignore:Async generator:ResourceWarning")  # the SDK's own streams
    return tmp_path


def in_process(words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """The exit code and what was printed, without the price of a process."""
    try:
        code = main(words.split())
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    return code, *capsys.readouterr()


# ------------------------------------------------------------------ a run, watched
async def test_a_run_shows_mail_calls_results_and_the_answer(desk: Path) -> None:
    """A person sees what happens while it happens."""
    async with fake_chat(READ_PROD, Answer(text="Two warnings, no errors.")) as chat:
        done = await postroom("run", "desk:Clerk", "Check the prod log.", url=chat.url)
    shown = [line for line in done.stdout.decode().splitlines() if "has held the loop" not in line]  # true on a busy machine
    assert [line.split(" in ")[0] for line in shown] == [
        "✉ you: Check the prod log.",
        "▸ read_log(name='prod')",
        "✓ read_log",
        "Two warnings, no errors.",
    ]
    assert (done.returncode, done.stderr) == (0, b"")


async def test_an_answer_appears_while_it_is_written(desk: Path) -> None:
    """Waiting for the end of a long answer is what streaming is against."""
    async with (
        fake_chat(Answer(text="Hello, this hangs.", hang_after=3)) as chat,
        running("run", "desk:Clerk", "x", url=chat.url) as run,
    ):
        await run.until("Hello, thi")
        run.process.terminate()
        await run.end()


async def test_a_typed_line_is_in_the_next_request(desk: Path) -> None:
    """The main claim, at the prompt: an agent is redirected while it works."""
    async with fake_chat(READ_PROD, Answer(text="All right.")) as chat:
        async with running("run", "desk:Clerk", "Check the prod log.", url=chat.url) as run:
            await run.until("▸ read_log")
            await run.type("Actually, staging.\n")
            assert await run.end() == 0
        assert chat.messages[-1] == {"role": "user", "content": "Actually, staging."}
    assert "✉ you: Actually, staging." in run.seen


async def test_a_line_typed_at_the_last_moment_is_still_answered(desk: Path) -> None:
    """What a person was allowed to type is read."""
    answers = Answer(text="One moment.", delay=0.2), Answer(text="And that.")
    async with fake_chat(*answers) as chat, running("run", "desk:Clerk", "First.", url=chat.url) as run:
        await run.until("One")
        await run.type("Second.\n")
        assert await run.end() == 0
    assert "And that." in run.seen


async def test_json_prints_one_event_a_line(desk: Path) -> None:
    """Another program follows a run without knowing our screen."""
    async with fake_chat(READ_PROD, Answer(text="Done.")) as chat:
        done = await postroom("run", "desk:Clerk", "Check.", "--json", url=chat.url)
    events = events_of(done)
    kinds = [event["kind"] for event in events]
    order = ["run_started", "mail_delivered", "tool_started", "tool_finished", "text_delta", "answer", "run_stopped"]
    assert [kind for kind in dict.fromkeys(kinds) if kind in order] == order
    assert [event["seq"] for event in events] == sorted({event["seq"] for event in events})
    [delivered] = [event for event in events if event["kind"] == "mail_delivered"]
    assert delivered["mail"][0]["body"]["text"] == "Check."


async def test_another_model_can_be_named_at_the_prompt(desk: Path) -> None:
    """An agent is tried on another model without touching its code."""
    async with fake_chat(Answer(text="Hello.")) as chat:
        done = await postroom("run", "desk:NoModel", "Hello?", "--model", "openai:other", url=chat.url)
    assert (done.returncode, chat.bodies[0]["model"]) == (0, "other")


async def test_settings_come_from_the_dotenv_file_of_the_folder(desk: Path) -> None:
    """A key is kept in a file, not in every command."""
    async with fake_chat(Answer(text="Hello."), key="sesame") as chat:
        (desk / ".env").write_text(f"OPENAI_API_KEY=sesame\nOPENAI_BASE_URL={chat.url}\n")
        done = await postroom("run", "desk:Clerk", "Hello?")
    assert done.returncode == 0


@pytest.mark.parametrize("redirect", ["</dev/null", "<&-", "<desk.py"])
async def test_it_runs_without_anybody_at_the_keyboard(desk: Path, redirect: str) -> None:
    """Cron has no terminal."""
    async with fake_chat(otherwise=Answer(text="Hello.")) as chat:
        with trio.fail_after(30):
            shell = f"{COMMAND[0]} -m supervision run desk:NoModel Hello --model openai:fake {redirect}"
            done = await trio.run_process(shell, shell=True, capture_stdout=True, check=False, env=environment(chat.url))
    assert (done.returncode, done.stdout.decode().splitlines()[-1]) == (0, "Hello.")


# ------------------------------------------------------------------ Ctrl-C, and how it ended
async def test_ctrl_c_stops_a_run_in_mid_stream(desk: Path) -> None:
    """Nobody is at the keyboard to say what to do instead, so it ends; the server is let go at once."""
    async with (
        fake_chat(Answer(text="Hello, this hangs.", hang_after=3)) as chat,
        running("run", "desk:Clerk", "x", url=chat.url) as run,
    ):
        await run.until("Hello")
        run.process.send_signal(signal.SIGINT)
        assert await run.end() == 130
        with trio.fail_after(5):
            await chat.aborted.wait_value(1)
    assert "Traceback" not in run.seen


async def test_after_ctrl_c_a_person_says_what_to_do_instead(desk: Path) -> None:
    """Stopping a run loses nothing: the next request is valid and holds the new words."""

    def scene(screen: Screen) -> None:
        screen.expect("Hello")
        screen.sendintr()
        screen.expect("type what to do instead")
        screen.sendline("Say goodbye.")
        screen.expect("Goodbye.")

    async with fake_chat(Answer(text="Hello, this hangs.", hang_after=3), Answer(text="Goodbye.")) as chat:
        code, _ = await on_a_terminal(chat.url, scene, "run", "desk:Clerk", "Say hello.")
        assert (code, chat.broken) == (0, [])
        assert "Say goodbye." in chat.messages[-1]["content"]


async def test_ctrl_c_twice_leaves(desk: Path) -> None:
    """The second one means it."""

    def scene(screen: Screen) -> None:
        screen.expect("Hello")
        screen.sendintr()
        screen.expect("type what to do instead")
        screen.sendintr()

    async with fake_chat(Answer(text="Hello, this hangs.", hang_after=3)) as chat:
        code, rest = await on_a_terminal(chat.url, scene, "run", "desk:Clerk", "Say hello.")
    assert (code, "Traceback" in rest) == (130, False)


async def test_the_end_of_the_keyboard_after_ctrl_c_leaves(desk: Path) -> None:
    """Ctrl-D is how one says that nothing more comes."""

    def scene(screen: Screen) -> None:
        screen.expect("Hello")
        screen.sendintr()
        screen.expect("type what to do instead")
        screen.sendeof()

    async with fake_chat(Answer(text="Hello, this hangs.", hang_after=3)) as chat:
        code, _ = await on_a_terminal(chat.url, scene, "run", "desk:Clerk", "Say hello.")
    assert code == 130


async def test_sigterm_is_an_ordered_stop(desk: Path) -> None:
    """A service manager stops us; 143 is what it expects."""
    async with (
        fake_chat(Answer(text="Hello, this hangs.", hang_after=3)) as chat,
        running("run", "desk:Clerk", "x", url=chat.url) as run,
    ):
        await run.until("Hello")
        run.process.terminate()
        assert await run.end() == 143
    assert "Traceback" not in run.seen


async def test_a_reader_who_has_seen_enough_ends_it(desk: Path) -> None:
    """`postroom run ... | head -1` is no crash."""
    async with fake_chat(READ_PROD, Answer(text="Done.")) as chat:
        with trio.fail_after(30):
            shell = f"{COMMAND[0]} -m supervision run desk:Clerk x </dev/null | head -1"
            done = await trio.run_process(
                shell, shell=True, capture_stdout=True, capture_stderr=True, env=environment(chat.url)
            )
    assert (done.stdout.decode(), done.stderr) == ("✉ you: x\n", b"")


async def test_a_refusal_of_the_provider_is_an_exit_code_and_a_reason(desk: Path) -> None:
    """A script sees that it failed, a person sees why."""
    async with fake_chat(Answer(status=400, message="this model knows no such thing")) as chat:
        done = await postroom("run", "desk:Clerk", "x", url=chat.url)
    assert done.returncode == 1
    assert "this model knows no such thing" in done.stdout.decode()


# ------------------------------------------------------------------ bad input
WRONG = {
    "run nowhere:Clerk x": "there is no module 'nowhere'",
    "run desk:Clark x": "did you mean desk:Clerk?",
    "run desk:NotAnAgent x": "NotAnAgent in desk is no Agent",
    "run desk x": "module:Agent",
    "run desk:NoModel x": "model",
    "run bare:Bare x": "parameter `where` has no annotation",
    "run desk:WrongModel x": "did you mean openai:gpt?",
    "run desk:Clerk x --model gpt": "openai:gpt",
    "run desk:Clerk": "the following arguments are required: task",
    "rum": "invalid choice: 'rum'",
    "": "the following arguments are required: command",
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_use_is_one_screen_that_says_what_to_do(desk: Path, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody should have to read our source to learn that they mistyped."""
    code, printed, told = in_process(words, capsys)
    assert (code, printed) == (2, "")
    assert WRONG[words] in told
    assert "Traceback" not in told
    assert len(told.splitlines()) <= 24


def test_an_agent_that_does_not_start_is_told_in_a_line(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its author knows where to look: the error is theirs."""
    code, _, told = in_process("run frail:Frail x", capsys)
    assert (code, told) == (1, "postroom: frail-1 did not start: ConnectionError: no database\n")


async def test_a_missing_key_is_told_by_name(desk: Path) -> None:
    """The first thing that goes wrong for everybody."""
    done = await postroom("run", "desk:Clerk", "x")
    assert done.returncode != 0
    assert "OPENAI_API_KEY" in (done.stdout + done.stderr).decode()
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("words", ["--help", "run --help", "demo --help"])
def test_help_is_everywhere(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And it fits the screen."""
    code, printed, _ = in_process(words, capsys)
    assert code == 0
    assert printed.startswith("usage: postroom")
    assert len(printed.splitlines()) <= 30


async def test_without_rich_the_command_line_says_what_it_needs(desk: Path) -> None:
    """The extra is optional; a traceback is not the way to say so."""
    code = "import sys, runpy; sys.modules['rich'] = None; runpy.run_module('supervision', run_name='__main__')"
    done = await trio.run_process([sys.executable, "-c", code], capture_stdout=True, capture_stderr=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.endswith(b"pip install 'postroom[cli]'\n")


async def test_the_demo_shows_what_this_is_about_offline(desk: Path) -> None:
    """The first minute with this project, without a key."""
    done = await postroom("demo")
    shown = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    for sign in ("restarted", "Actually, look at staging", "goes on in the background", "run_tests", "incident", "counter"):
        assert sign in shown
