"""The tables of a PostgreSQL store, and how a schema comes to have them.

    sessions    one row each: who it is, where it stands, its epoch and version, the id of its last commit, who holds it
    mailboxes   its mailbox, and all that accepting mail needs to know: limits, lineage, the last seq, the cursors, the newest seq
                that may wake it, and up to which one its owner had nothing more to do when it let go
    mail        what was accepted; never changed
    items       its transcript; an amendment is a row of its own, so nothing is rewritten
    calls       its ledger
    timers      those that have not fired
    watches     who is told of what happens in which session; `mailboxes.watched` is until when anybody may be
    continuations  which deferred call a token stands for
    leases      one row for each process that holds sessions: until when, by the database's clock
    postroom    the number of this schema

The tables stand in the first schema of the connection's `search_path`. Older ones are brought forward when a store is opened,
step by step; newer ones are refused.
"""

from typing import Any

from actors._errors import StoreError

from ._pg_connection import TrioConnection

_FIRST = """
CREATE TABLE sessions (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    agent text NOT NULL,
    owner text,
    status text NOT NULL,
    version bigint NOT NULL,
    epoch bigint NOT NULL,
    commit_id bytea,
    holder text,
    items integer NOT NULL DEFAULT 0,
    facts text NOT NULL,
    codec integer NOT NULL
);
CREATE INDEX sessions_at_work ON sessions (key) WHERE status IN ('running', 'waiting');
CREATE INDEX sessions_held ON sessions (holder) WHERE holder IS NOT NULL;
CREATE TABLE mailboxes (
    box bigint PRIMARY KEY,
    address text COLLATE "C" NOT NULL UNIQUE,
    parent text COLLATE "C",
    limits text NOT NULL,
    stopped boolean NOT NULL DEFAULT false,
    last integer NOT NULL DEFAULT 0,
    mail_cursor integer NOT NULL DEFAULT 0,
    control_cursor integer NOT NULL DEFAULT 0,
    floor integer NOT NULL DEFAULT 0,
    control integer NOT NULL DEFAULT 0,
    wakes integer NOT NULL DEFAULT 0,
    seen integer NOT NULL DEFAULT 0
);
CREATE INDEX mailboxes_to_wake ON mailboxes (box) WHERE wakes > mail_cursor AND wakes > seen AND NOT stopped;
CREATE INDEX mailboxes_by_parent ON mailboxes (parent) WHERE parent IS NOT NULL;
CREATE TABLE mail (
    box bigint NOT NULL,
    seq integer NOT NULL,
    kind integer NOT NULL,
    id text COLLATE "C",
    sender text NOT NULL,
    hops integer NOT NULL,
    sent double precision NOT NULL,
    trace text,
    digest bytea,
    body text NOT NULL,
    codec integer NOT NULL,
    PRIMARY KEY (box, seq)
);
CREATE UNIQUE INDEX mail_by_id ON mail (box, id, md5(sender)) WHERE id IS NOT NULL;
CREATE TABLE items (
    session bigint NOT NULL,
    place integer NOT NULL,
    item text NOT NULL,
    codec integer NOT NULL,
    PRIMARY KEY (session, place)
);
CREATE TABLE calls (
    session bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    place bigint GENERATED ALWAYS AS IDENTITY,
    tool text NOT NULL,
    status text NOT NULL,
    arguments text,
    outcome text,
    facts text NOT NULL,
    codec integer NOT NULL,
    PRIMARY KEY (session, id)
);
CREATE INDEX calls_open ON calls (session) WHERE outcome IS NULL;
CREATE TABLE timers (
    session bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    due double precision NOT NULL,
    timer text NOT NULL,
    codec integer NOT NULL,
    PRIMARY KEY (session, id)
);
CREATE INDEX timers_due ON timers (due);
CREATE TABLE leases (
    holder text PRIMARY KEY,
    until timestamptz NOT NULL
);
CREATE TABLE postroom (schema integer NOT NULL);
INSERT INTO postroom VALUES (0)
"""
_WATCHES = """
ALTER TABLE mailboxes ADD COLUMN watched double precision NOT NULL DEFAULT 0;
CREATE TABLE watches (
    watcher bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    watched bigint NOT NULL,
    until double precision NOT NULL,
    watch text NOT NULL,
    codec integer NOT NULL,
    PRIMARY KEY (watcher, id)
);
CREATE INDEX watches_by_watched ON watches (watched)
"""
_CONTINUATIONS = """
CREATE TABLE continuations (
    token text COLLATE "C" PRIMARY KEY,
    session bigint NOT NULL,
    call text COLLATE "C" NOT NULL,
    answered integer
)
"""
MIGRATIONS = (
    _FIRST,
    _WATCHES,
    _CONTINUATIONS,
)  # the n-th leads from schema n to n + 1; a step that was released is never changed
ONE_AT_A_TIME = 0x706F7374  # the advisory lock of whoever makes tables


async def migrate(db: TrioConnection, place: str) -> str:
    """Bring the tables to this schema, one process at a time; the name of the schema they stand in. Raises `StoreError`."""
    [name] = await _row(db, "SELECT current_schema()") or [None]
    if name is None:
        raise StoreError(f"the store {place} has no schema to make tables in; create the one that search_path names")
    found = await _schema(db, name)
    if found != len(MIGRATIONS):
        await db.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (ONE_AT_A_TIME, name))
        found = await _schema(db, name)
    if found > len(MIGRATIONS):
        raise StoreError(
            f"the store {place} has schema {found}, and this version of postroom knows schemas up to {len(MIGRATIONS)}; use a newer version"
        )
    for step in MIGRATIONS[found:]:
        await db.execute(step.encode())
    if found < len(MIGRATIONS):
        await db.execute("UPDATE postroom SET schema = %s", (len(MIGRATIONS),))
    return str(name)


async def _schema(db: TrioConnection, name: str) -> int:
    there = await _row(db, "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = 'postroom'", (name,))
    row = await _row(db, "SELECT schema FROM postroom") if there else None
    return 0 if row is None else int(row[0])


async def _row(db: TrioConnection, query: str, values: tuple[object, ...] = ()) -> tuple[Any, ...] | None:
    return await (await db.execute(query.encode(), values)).fetchone()
