"""What a process on PostgreSQL takes up by itself, and what it leaves alone."""

import pytest
import trio
from postgres_server import empty
from postgres_stores import opened, rows, until
from sqlite_files import mail

from actors.agent._record import State
from actors.store import _pg_watch


@pytest.fixture
def url() -> str:
    """An empty schema."""
    return empty()


async def test_what_had_nothing_to_do_is_taken_up_again_only_for_new_mail(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A paused session keeps mail that would wake it: taken up for it, it would leave again, and be taken up again, for ever."""
    monkeypatch.setattr(_pg_watch, "RESCAN", 0.05)
    woken: list[str] = []
    async with opened(url) as first, opened(url) as second:
        state = State("s", "Clerk")
        await first.create(state)
        second.watch(woken.append, woken.append)
        await second.unfinished(["Clerk"])
        await first.send(mail("hello"))
        first.release(state, seen=1)
        await trio.sleep(0.3)
        assert woken == []
        await first.send(mail("again"))
        await until(lambda: woken == ["s"])


async def test_no_more_is_taken_up_than_there_is_room_for(url: str) -> None:
    """What a full process took, and could not bring into memory, would be kept from those that have room."""
    woken: list[str] = []
    async with opened(url) as first, opened(url) as second:
        for number in range(5):
            state = State(f"s{number}", "Clerk")
            await first.create(state)
            await first.send(mail("hello", to=state.id))
            first.release(state)
        second.watch(woken.append, woken.append, lambda: 2 - len(second.here()))
        await second.unfinished(["Clerk"])
        await until(lambda: len(woken) == 2)
        await trio.sleep(0.2)
        assert rows(url, "SELECT count(*) FROM sessions WHERE holder IS NOT NULL") == [(2,)]
        assert len(woken) == 2
