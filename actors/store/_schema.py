"""The tables of a SQLite store, and how a file becomes one.

A number of two halves keys what belongs to a session, `session << 32 | place`: one B-tree per table, in the order in which
it is read, with no index beside it.

    sessions    one row each: who it is, where it stands, its epoch and version, who holds its lease
    mailboxes   its mailbox: the last seq, the cursors that bound it, the newest seq that may wake it
    mail        what was accepted; never changed
    items       its transcript; an amendment is a row of its own, so nothing is rewritten
    calls       its ledger
    timers      those that have not fired
    watches     who is told of what happens in which session
    continuations  which deferred call a token stands for

No id of the last commit is kept, as a store behind a network needs it: whoever commits here sees the end of its COMMIT, or ends with it,
and what it did is then found as a whole or not at all.

A file says what it is (`application_id`) and of which schema (`user_version`). An older one is brought forward when it is
opened, step by step, each step one transaction; a newer one is refused, and so is a file of somebody else.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack

from actors._errors import StoreError

from ._trouble import trouble

OURS = 0x706F7374  # "post"
BUSY = 5.0  # seconds that one process waits for another's transaction

_FIRST = """
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    parent TEXT,
    owner TEXT,
    status TEXT NOT NULL,
    version INTEGER NOT NULL DEFAULT 0,
    epoch INTEGER NOT NULL DEFAULT 0,
    holder TEXT,
    held_until REAL NOT NULL DEFAULT 0,
    limits TEXT NOT NULL,
    facts TEXT NOT NULL,
    codec INTEGER NOT NULL
);
CREATE INDEX sessions_at_work ON sessions (status) WHERE status IN ('running', 'waiting');
CREATE INDEX sessions_held ON sessions (holder) WHERE holder IS NOT NULL;
CREATE INDEX sessions_by_parent ON sessions (parent) WHERE parent IS NOT NULL;
CREATE TABLE mailboxes (
    box INTEGER PRIMARY KEY,
    last INTEGER NOT NULL DEFAULT 0,
    mail_cursor INTEGER NOT NULL DEFAULT 0,
    control_cursor INTEGER NOT NULL DEFAULT 0,
    floor INTEGER NOT NULL DEFAULT 0,
    control INTEGER NOT NULL DEFAULT 0,
    wakes INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX mailboxes_to_wake ON mailboxes (box) WHERE wakes > mail_cursor;
CREATE TABLE mail (
    at INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    id TEXT,
    sender TEXT NOT NULL,
    hops INTEGER NOT NULL,
    sent REAL NOT NULL,
    trace TEXT,
    digest BLOB,
    body TEXT NOT NULL,
    codec INTEGER NOT NULL
);
CREATE UNIQUE INDEX mail_by_id ON mail (at >> 32, sender, id) WHERE id IS NOT NULL;
CREATE TABLE items (
    at INTEGER PRIMARY KEY,
    item TEXT NOT NULL,
    codec INTEGER NOT NULL
);
CREATE TABLE calls (
    session INTEGER NOT NULL,
    id TEXT NOT NULL,
    tool TEXT NOT NULL,
    status TEXT NOT NULL,
    arguments TEXT,
    outcome TEXT,
    facts TEXT NOT NULL,
    codec INTEGER NOT NULL,
    PRIMARY KEY (session, id)
);
CREATE TABLE timers (
    session INTEGER NOT NULL,
    id TEXT NOT NULL,
    due REAL NOT NULL,
    timer TEXT NOT NULL,
    codec INTEGER NOT NULL,
    PRIMARY KEY (session, id)
);
CREATE INDEX timers_due ON timers (due);
CREATE INDEX calls_open ON calls (session) WHERE outcome IS NULL;
"""
_WATCHES = """
ALTER TABLE sessions ADD COLUMN watched REAL NOT NULL DEFAULT 0;
CREATE TABLE watches (
    watcher INTEGER NOT NULL,
    id TEXT NOT NULL,
    watched INTEGER NOT NULL,
    until REAL NOT NULL,
    watch TEXT NOT NULL,
    codec INTEGER NOT NULL,
    PRIMARY KEY (watcher, id)
);
CREATE INDEX watches_by_watched ON watches (watched)
"""
_CONTINUATIONS = """
CREATE TABLE continuations (
    token TEXT PRIMARY KEY,
    session INTEGER NOT NULL,
    call TEXT NOT NULL,
    answered INTEGER
) WITHOUT ROWID
"""
MIGRATIONS: Sequence[str] = (
    _FIRST,
    _WATCHES,
    _CONTINUATIONS,
)  # the n-th leads from schema n to n + 1; a step that was released is never changed


def connect(path: str) -> sqlite3.Connection:
    """Open the file and bring it to this schema; a new one is made. Raises `StoreError`."""
    with ExitStack() as stack:
        try:
            db = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
            stack.callback(db.close)
            db.execute("PRAGMA synchronous = FULL")
            _check_ours(path, db)
            [mode] = db.execute("PRAGMA journal_mode = WAL").fetchone()
            db.execute("PRAGMA journal_size_limit = 67108864")
            _migrate(path, db)
        except sqlite3.Error as error:
            raise trouble(path, error) from None
        if mode != "wal":
            raise StoreError(
                f"the store {path} cannot have a write-ahead log (it stays in mode {mode!r}); put it on a local disk"
            )
        stack.pop_all()
    return db


def connect_to_read(path: str) -> sqlite3.Connection:
    """A second connection to a file that is open: what it reads is off the writer's way."""
    try:
        db = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA query_only = 1")
    except sqlite3.Error as error:
        raise trouble(path, error) from None
    return db


def _check_ours(path: str, db: sqlite3.Connection) -> None:
    [application] = db.execute("PRAGMA application_id").fetchone()
    [tables] = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != OURS and tables:
        raise StoreError(f"{path} is a database of another program; give the path of a new file, or of one that postroom made")


def _migrate(path: str, db: sqlite3.Connection) -> None:
    """One transaction: two processes that open a new file at once make its tables once."""
    db.execute("BEGIN IMMEDIATE")
    try:
        [schema] = db.execute("PRAGMA user_version").fetchone()
        if schema > len(MIGRATIONS):
            raise StoreError(
                f"the store {path} has schema {schema}, and this version of postroom knows schemas up to {len(MIGRATIONS)}; use a newer version"
            )
        for step in MIGRATIONS[schema:]:
            for statement in step.split(";"):
                db.execute(statement)
        if schema < len(MIGRATIONS):
            db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
            db.execute(f"PRAGMA application_id = {OURS}")
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
