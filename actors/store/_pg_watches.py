"""Who watches whom, in rows of PostgreSQL, and what a commit tells them in its own transaction.

A watch changes a row of the mailbox that it watches, never one of a session: whoever commits holds the row of a session of its own
and then those of mailboxes, by address, and nobody waits in a circle.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from actors._errors import SendRefused
from actors.agent._news import News
from actors.agent._record import Draft, WatchRow

from ._admit import Accepted, Letter, Recipient
from ._pg_connection import TrioConnection
from ._pg_post import accept
from ._rows import CODEC, parse

WATCHED = "(SELECT watched > extract(epoch FROM clock_timestamp()) FROM mailboxes WHERE box = sessions.key)"  # by anybody
_KEEP = """
WITH changed AS (UPDATE mailboxes SET watched = greatest(watched, %s) WHERE box = %s)
INSERT INTO watches VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (watcher, id) DO UPDATE SET watched = excluded.watched, until = excluded.until, watch = excluded.watch, codec = excluded.codec
"""
_WATCHERS = """
SELECT m.address, w.id, w.watch FROM watches w JOIN mailboxes m ON m.box = w.watcher WHERE w.watched = %s AND w.until > %s
ORDER BY w.watcher, w.id
"""
_DROP_ALL = b"""
DELETE FROM watches WHERE (watcher, id) IN (
    SELECT watcher, id FROM watches WHERE watcher = %s OR watched = %s ORDER BY watcher, id FOR UPDATE
)
"""  # locked in one order, whoever ends


async def drafts_of(db: TrioConnection, key: int, news: News, *, watched: bool) -> list[Draft]:
    """What a commit tells: those that watch, if anybody does, and the parent."""
    drafts = [] if news.end is None else [news.end]
    if watched:
        now = datetime.now(UTC)
        for watcher, id, text in await (await db.execute(_WATCHERS, (key, now.timestamp()))).fetchall():
            drafts += news.told(watcher, parse(text, WatchRow, f"watch {id}"), now)
    return drafts


async def tell(db: TrioConnection, news: News, drafts: Sequence[Draft], places: dict[str, Recipient | None]) -> list[Accepted]:
    """Accept it, where that can be done. `places`: the mailboxes that are locked."""
    accepted = []
    for draft in drafts:
        try:
            accepted.append(await accept(db, Letter.of(draft), places))
        except SendRefused as refusal:
            news.unheard(draft, refusal)
    return accepted


async def keep(
    db: TrioConnection, key: int, watches: Iterable[tuple[str, str, float, str]], places: dict[str, Recipient | None]
) -> None:
    """Keep watches of this session: the id of each, whom it watches, until when, and its JSON. Nobody watches what has ended."""
    for id, session, until, text in watches:
        place = places.get(session)
        if place is not None:
            await db.execute(_KEEP, (until, place.box, key, id, place.box, until, text, CODEC))


async def drop(db: TrioConnection, key: int, ids: Sequence[str]) -> None:
    """These watches of this session are over."""
    await db.execute(b"DELETE FROM watches WHERE watcher = %s AND id = ANY(%s)", (key, list(ids)))


async def drop_all(db: TrioConnection, key: int) -> None:
    """This session is over: nobody watches it, and it watches nobody."""
    await db.execute(_DROP_ALL, (key, key))


async def watches_of(db: TrioConnection, key: int) -> dict[str, WatchRow]:
    """Those of this session."""
    found: list[tuple[Any, ...]] = await (
        await db.execute(b"SELECT id, watch FROM watches WHERE watcher = %s ORDER BY until", (key,))
    ).fetchall()
    return {id: parse(text, WatchRow, f"watch {id}") for id, text in found}
