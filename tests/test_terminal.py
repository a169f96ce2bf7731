"""The command line's pure parts: settings, events as lines, the name of an agent as a class."""

import io
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from actors import ConfigError, Envelope, Failed, FromSession, FromUser, Outcome, Priority, UserMessage
from actors.events import (
    Answer,
    AnyEvent,
    DeadLettered,
    Ended,
    MailDelivered,
    RunStopped,
    TextDelta,
    ToolDetached,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnStarted,
)
from supervision.terminal._dotenv import load, parse
from supervision.terminal._json import event_json
from supervision.terminal._lines import glimpse, line
from supervision.terminal._screen import Screen
from supervision.terminal._target import find_agent

NOW = datetime.now(UTC)
SETTINGS = {
    "A=1": {"A": "1"},
    "export A=1": {"A": "1"},
    "A = 1 ": {"A": "1"},
    'A="x # y"': {"A": "x # y"},
    "A='x'  # why": {"A": "x"},
    "A=x # why": {"A": "x"},
    "A=x#y": {"A": "x#y"},
    "A=": {"A": ""},
    "A=b=c": {"A": "b=c"},
    "# A=1": {},
    "1A=1": {},
    "words": {},
    "A=1\n\nB='2'": {"A": "1", "B": "2"},
}


@pytest.mark.parametrize("text", SETTINGS)
def test_a_dotenv_file_is_read_as_shells_read_it(text: str) -> None:
    """People copy such lines from a shell, and back."""
    assert parse(text) == SETTINGS[text]


def test_the_environment_wins_over_the_dotenv_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody sets for one command holds for it."""
    (tmp_path / ".env").write_text("POSTROOM_A=file\nPOSTROOM_B=file")
    monkeypatch.setenv("POSTROOM_A", "shell")
    monkeypatch.setenv("POSTROOM_B", "")
    monkeypatch.delenv("POSTROOM_B")
    load(tmp_path)
    assert (os.environ["POSTROOM_A"], os.environ["POSTROOM_B"]) == ("shell", "file")


def test_a_folder_without_a_dotenv_file_is_fine(tmp_path: Path) -> None:
    """Most have none."""
    load(tmp_path)


def _delivered(sender: Any, text: str) -> MailDelivered:
    envelope = Envelope("m1", 1, sender, Priority.NORMAL, 0, 0.0, None, UserMessage(text))
    return MailDelivered((envelope,), 1, at=NOW)


LINES: dict[str, AnyEvent] = {
    "▸ grep(pattern='x', deep=True)": ToolStarted("grep", {"pattern": "x", "deep": True}, at=NOW),
    "… grep goes on in the background (still running after 2s)": ToolDetached("still running after 2s", at=NOW),
    "✓ grep in 1.2 s: found": ToolFinished("grep", Outcome("completed", "found", duration=1.24), at=NOW),
    "✓ grep: found…": ToolFinished("grep", Outcome("completed", "found\nmore"), at=NOW),
    "✗ grep: failed: no such file": ToolFinished("grep", Outcome.failed("no such file"), at=NOW),
    "✉ you: go on": _delivered(FromUser(), "go on"),
    "✉ ann: go on": _delivered(FromUser("ann"), "go on"),
    "(run failed)": RunStopped("failed", at=NOW),
}


@pytest.mark.parametrize("text", LINES)
def test_an_event_is_a_line_that_says_what_happened(text: str) -> None:
    """A person reads along without knowing the events' names."""
    shown = line(LINES[text], "grep")
    assert shown is not None
    assert shown.plain == text


def test_mail_of_an_agent_is_shown_as_its_model_reads_it() -> None:
    """Who wrote is said by the runtime, on the screen as to the model."""
    shown = line(_delivered(FromSession("a/b", "Reviewer"), "look"), "")
    assert shown is not None
    assert shown.plain == '✉ [mail m1 from session a/b (agent "Reviewer")]\nlook'


@pytest.mark.parametrize("event", [TextDelta("words", at=NOW), RunStopped("answered", at=NOW)], ids=lambda event: event.kind)
def test_what_streams_or_is_plain_is_no_line(event: AnyEvent) -> None:
    """The answer is text, not a report of text."""
    assert line(event, "") is None


def test_a_glimpse_is_one_line_and_says_that_there_is_more() -> None:
    """A tool may return a megabyte."""
    assert glimpse("a" * 1000) == "a" * 160 + "…"


def test_a_line_after_streamed_words_begins_on_a_line_of_its_own() -> None:
    """Words stream without an end; what comes next must not stick to them."""
    screen = Screen(Console(file=io.StringIO(), width=80))
    screen.show(TextDelta("wor", at=NOW))
    screen.show(TextDelta("ds", at=NOW))
    screen.show(ToolStarted("grep", {}, at=NOW, call="c1"))
    assert screen.console.file.getvalue() == "words\n▸ grep()\n"  # type: ignore[attr-defined]  # it is the StringIO above


def test_an_answer_that_did_not_stream_is_shown_once() -> None:
    """Not every model streams; one that does must not be told twice."""
    screen = Screen(Console(file=io.StringIO(), width=80))
    screen.show(TextDelta("one", at=NOW))
    screen.show(Answer("one", at=NOW))
    screen.show(TurnStarted(2, at=NOW))
    screen.show(Answer("two", at=NOW))
    screen.end_line()
    assert screen.console.file.getvalue() == "onetwo\n"  # type: ignore[attr-defined]


AGENTS = """
import sys
from actors import Agent
class Reader(Agent):
    "You read."
class NotOne: pass
"""
WRONG = {
    "agents": "module:Agent",
    "agents:": "module:Agent",
    "a b:C": "module:Agent",
    "agents.py:Reader": "write the module: agents:Reader",
    "nowhere:Reader": "there is no module 'nowhere'",
    "agents.deeper:Reader": "agents.deeper",
    "needy:Reader": "needs the module 'not_installed_here'",
    "broken:Reader": "importing broken raised ZeroDivisionError: division by zero",
    "typo:Reader": "importing typo raised SyntaxError",
    "agents:Raeder": "did you mean agents:Reader?",
    "agents:NotOne": "NotOne in agents is no Agent",
    "empty:Reader": "the module defines no agent",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with modules good and bad."""
    texts = {"agents": AGENTS, "needy": "import not_installed_here", "broken": "x = 1 / 0", "typo": "def", "empty": ""}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_agent_is_found_by_its_name(folder: Path) -> None:
    """The way in of every command that takes one."""
    assert find_agent("agents:Reader").__name__ == "Reader"


@pytest.mark.parametrize("target", WRONG)
def test_a_wrong_name_is_told_with_what_to_write(folder: Path, target: str) -> None:
    """Whoever mistypes sees what is there, not where we failed."""
    with pytest.raises(ConfigError) as caught:
        find_agent(target)
    assert WRONG[target] in str(caught.value)


JSON: list[tuple[AnyEvent, dict[str, Any]]] = [
    (TextDelta("words", at=NOW), {"kind": "text_delta", "text": "words"}),
    (
        ToolStarted("grep", {"deep": (1, None)}, at=NOW, call="c1"),
        {"tool": "grep", "arguments": {"deep": [1, None]}, "call": "c1"},
    ),
    (ToolFinished("grep", Outcome.completed({"n": 1}), at=NOW), {"tool": "grep"}),
    (Ended("a/b", Failed(KeyError("x")), at=NOW), {"address": "a/b", "exit": {"type": "failed", "error": "KeyError: 'x'"}}),
    (ToolProgress(object, at=NOW), {"payload": "<class 'object'>"}),
]


@pytest.mark.parametrize(("event", "part"), JSON, ids=lambda value: getattr(value, "kind", ""))
def test_an_event_is_one_line_of_json(event: AnyEvent, part: dict[str, Any]) -> None:
    """Whatever it carries: a program that follows a run must never meet half a line."""
    text = event_json(event)
    told = json.loads(text)
    assert part.items() <= told.items()
    assert "\n" not in text
    assert datetime.fromisoformat(told["at"]) == NOW


def test_mail_in_an_event_is_as_the_codec_writes_it() -> None:
    """One form of an envelope, wherever it is met."""
    told = json.loads(event_json(_delivered(FromUser("ann"), "hello")))
    assert told["mail"][0]["body"] == {"type": "user_message", "text": "hello", "media": []}
    assert told["mail"][0]["sender"] == {"type": "user", "owner": "ann"}


def test_mail_of_a_plain_actor_is_told_as_python_tells_it() -> None:
    """A dead letter may hold any object."""
    envelope = Envelope("m1", 1, FromUser(), Priority.NORMAL, 0, 0.0, None, object)
    told = json.loads(event_json(DeadLettered("a", envelope, "nobody", at=NOW)))
    assert told["envelope"]["body"] == "<class 'object'>"
