"""An answer of a session that another process runs: read from the store, looked for several times a second."""

from collections.abc import Sequence
from typing import Any

import trio

from actors._envelope import Envelope
from actors._errors import RunFailed
from actors._exit import Status
from actors.agent._record import State
from actors.models._items import AssistantItem, Item, ResultsItem, UserItem

LOOK = 0.25  # seconds


async def answer_elsewhere(store: Any, session: str, seq: int) -> str:
    """The first final answer that was given after reading the mail at `seq`. Raises `RunFailed` if its run has none."""
    while True:
        found: tuple[State, Sequence[Envelope]] | None = await store.look(session)
        if found is None:
            raise RunFailed(status=Status.STOPPED, reason="the session was deleted")
        state, _ = found
        said = _answer(state.items, seq)
        if said is not None:
            return said
        if state.status in {Status.FAILED, Status.STOPPED} and state.mail_cursor >= seq:
            raise RunFailed(status=state.status, reason=state.failure or "the run ended without an answer")
        await trio.sleep(LOOK)


def _answer(items: Sequence[Item], seq: int) -> str | None:
    read = False
    for item in items:
        read = read or any(envelope.seq == seq for envelope in _mail(item))
        if read and isinstance(item, AssistantItem) and not item.calls:
            return item.text
    return None


def _mail(item: Item) -> Sequence[Envelope]:
    if isinstance(item, ResultsItem):
        beside = item.results[-1].mail
        return () if beside is None else beside.mail
    return item.mail if isinstance(item, UserItem) else ()
