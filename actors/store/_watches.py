"""Who watches whom, in rows of SQLite, and what a commit tells them in its own transaction.

watches            one row each, found by its watcher, and by whom it watches
sessions.watched   until when anybody may watch it: a session that nobody watches is asked nothing more
"""

import sqlite3
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from actors._errors import SendRefused
from actors.agent._news import News
from actors.agent._record import Draft, WatchRow

from ._admit import Accepted, Letter
from ._post import accept
from ._rows import CODEC, parse


def keep(db: sqlite3.Connection, key: int, watches: Iterable[tuple[str, str, float, str]]) -> None:
    """Keep watches of this session: the id of each, whom it watches, until when, and its JSON. Nobody watches what has ended."""
    for id, session, until, text in watches:
        kept = db.execute(
            "INSERT OR REPLACE INTO watches SELECT ?, ?, key, ?, ?, ? FROM sessions WHERE id = ? AND status != 'stopped'",
            (key, id, until, text, CODEC, session),
        ).rowcount
        if kept:
            db.execute("UPDATE sessions SET watched = max(watched, ?) WHERE id = ?", (until, session))


def drop(db: sqlite3.Connection, key: int, ids: Iterable[str]) -> None:
    """These watches of this session are over."""
    db.executemany("DELETE FROM watches WHERE watcher = ? AND id = ?", [(key, id) for id in ids])


def drop_all(db: sqlite3.Connection, key: int) -> None:
    """This session is over: nobody watches it, and it watches nobody."""
    db.execute("DELETE FROM watches WHERE watcher = ?1 OR watched = ?1", (key,))


def watches_of(db: sqlite3.Connection, key: int) -> dict[str, WatchRow]:
    """Those of this session."""
    rows = db.execute("SELECT id, watch FROM watches WHERE watcher = ? ORDER BY rowid", (key,))
    return {id: parse(text, WatchRow, f"watch {id}") for id, text in rows}


def tell(db: sqlite3.Connection, key: int, news: News, watched: float) -> Iterator[Accepted]:
    """Accept what a commit tells those that watch, and the parent. `watched`: until when anybody may watch."""
    drafts = [] if news.end is None else [news.end]
    if watched and watched > time.time():
        drafts += _drafts(db, key, news)
    for draft in drafts:
        try:
            yield accept(db, Letter.of(draft))
        except SendRefused as refusal:
            news.unheard(draft, refusal)
    if news.over:
        drop_all(db, key)


def _drafts(db: sqlite3.Connection, key: int, news: News) -> Iterator[Draft]:
    now = datetime.now(UTC)
    rows = db.execute(
        "SELECT s.id, w.id, w.watch FROM watches w JOIN sessions s ON s.key = w.watcher WHERE w.watched = ? AND w.until > ? ORDER BY w.rowid",
        (key, now.timestamp()),
    )
    for watcher, id, text in rows.fetchall():
        yield from news.told(watcher, parse(text, WatchRow, f"watch {id}"), now)
