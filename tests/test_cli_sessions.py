"""`postroom sessions` and `postroom doctor`: a store from outside."""

import json
from pathlib import Path

import pytest
import trio
from durable import Effects, played

from actors.models import call, say
from supervision import open_system
from supervision.terminal._main import main


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with one session, which has called a tool and answered."""
    url = f"sqlite:///{tmp_path / 'agents.db'}"

    async def fill() -> None:
        async with open_system(store=url) as system:
            session = await system.open(
                played(call("book"), say("booked it")), session="ticket-17", owner="ada", deps=Effects(waits=False)
            )
            await session.ask("Book it.\nNow.")

    trio.run(fill)
    return url


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """What the command line says to this."""
    assert main(list(words)) == code
    return "".join(capsys.readouterr())


def test_sessions_are_listed(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A line each, for people or for programs."""
    head, row = told(capsys, "sessions", "list", "--store", store).splitlines()
    assert head.split() == ["session", "agent", "status", "unread", "owner", "parent"]
    assert row.split() == ["ticket-17", "Clerk", "idle", "0", "ada", "-"]
    assert json.loads(told(capsys, "sessions", "list", "--json", "--store", store))["owner"] == "ada"


def test_a_transcript_is_shown_as_it_went(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What was said, called, found and answered."""
    shown = told(capsys, "sessions", "show", "ticket-17", "--store", store)
    assert "< Book it.\n  Now.\n* call_1 book({})\n= call_1 booked\n> booked it\n" in shown


def test_mail_is_sent_once_and_listed(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody runs the session: it waits."""
    send = ("sessions", "send", "ticket-17", "And now?", "--id", "web-1", "--store", store)
    assert told(capsys, *send) == "kept as web-1, message 3 of ticket-17\n"
    assert "(it was there already)" in told(capsys, *send)
    assert "UserMessage(text='And now?'" in told(capsys, "sessions", "mail", "ticket-17", "--store", store)
    assert json.loads(told(capsys, "sessions", "mail", "ticket-17", "--json", "--store", store))["seq"] == 3


def test_orders_wait_with_the_mail(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever runs the session applies them first."""
    for order in ("pause", "resume", "stop"):
        assert f"{order}: ticket-17 will hear of it" in told(capsys, "sessions", order, "ticket-17", "--store", store)
    assert told(capsys, "sessions", "mail", "ticket-17", "--store", store).count("Control(") == 3


def test_the_doctor_counts_and_finds_nothing_wrong(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is in it, what waits, who owns what."""
    told(capsys, "sessions", "send", "ticket-17", "hello", "--store", store)
    found = json.loads(told(capsys, "doctor", "--json", "--store", store))
    assert (found["sessions"], found["mail"], found["unread"], found["wrong"]) == ({"idle": 1}, 3, 1, [])
    assert found["oldest_unread_seconds"] < 60
    assert "nothing is wrong" in told(capsys, "doctor", "--store", store)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("sessions", "show", "ticket-71"), 1, "did you mean ticket-17?"),
        (("sessions", "send", "nobody", "hello"), 1, "nobody has the address 'nobody'"),
    ],
)
def test_a_session_that_is_not_there_is_told(
    store: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, says: str
) -> None:
    """With those that are."""
    assert says in told(capsys, *words, "--store", store, code=code)


def test_a_store_that_is_not_there_is_not_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A typo must not look like an empty store."""
    assert "there is no store" in told(capsys, "doctor", "--store", f"sqlite:///{tmp_path / 'no.db'}", code=2)
    assert not list(tmp_path.iterdir())
    monkeypatch.delenv("POSTROOM_STORE", raising=False)
    assert "no store: write --store" in told(capsys, "sessions", "list", code=2)
