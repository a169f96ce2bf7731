"""What stands in the tables of a store, whichever it is, as an auditor reads it: past the code that wrote it."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
from attrs import define, field

Rows = list[tuple[Any, ...]]
SQLITE = "sqlite:///"


@define
class Mail:
    """One that was accepted."""

    session: int
    seq: int
    id: str | None
    hops: int
    body: dict[str, Any]


@define
class Books:
    """All of a store. Sessions by the keys that the tables know them by."""

    keys: dict[str, int]
    cursors: dict[int, int]  # up to which each mailbox was read
    mail: list[Mail]
    items: dict[int, list[dict[str, Any]]]
    calls: Rows  # session, id, tool, status, outcome
    damage: list[str] = field(factory=list)


def read(url: str) -> Books:
    """Everything, of one moment."""
    if url.startswith(SQLITE):
        with closing(sqlite3.connect(Path(url.removeprefix(SQLITE)))) as db:
            found = db.execute("PRAGMA integrity_check").fetchall()
            return _read(
                lambda query: db.execute(query).fetchall(),
                "SELECT at >> 32, at & 0xFFFFFFFF, id, hops, body FROM mail ORDER BY at",
                "SELECT at >> 32, item FROM items ORDER BY at",
                [text for (text,) in found if text != "ok"],
            )
    with psycopg.connect(url) as server:
        return _read(
            lambda query: server.execute(query.encode()).fetchall(),
            "SELECT box, seq, id, hops, body FROM mail ORDER BY box, seq",
            "SELECT session, item FROM items ORDER BY session, place",
            [],
        )


def _read(ask: Callable[[str], Rows], mail: str, items: str, damage: Sequence[str]) -> Books:
    keys = {str(id): int(key) for id, key in ask("SELECT id, key FROM sessions")}
    told: dict[int, list[dict[str, Any]]] = {key: [] for key in keys.values()}
    for session, item in ask(items):
        told[session].append(json.loads(item))
    letters = [Mail(session, seq, id, hops, json.loads(body)) for session, seq, id, hops, body in ask(mail)]
    cursors = {int(box): int(cursor) for box, cursor in ask("SELECT box, mail_cursor FROM mailboxes")}
    return Books(keys, cursors, letters, told, ask("SELECT session, id, tool, status, outcome FROM calls"), list(damage))
