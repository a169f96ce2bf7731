"""Deferred calls in rows of SQLite: what their tokens stand for, and how one is answered in a transaction of its own.

A row stays for as long as its session's: whoever comes late is told what became of the call. `answered` is the seq of the answer.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from actors._errors import UnknownToken
from actors._outcome import Outcome

from ._admit import Accepted, Letter
from ._answer import Deferred, judged, overtaken
from ._api import DELETED
from ._post import accept
from ._rows import parse, write_outcome
from ._watches import tell

_FOUND = """
SELECT s.id, s.agent, s.key, s.watched, t.call, t.answered, c.tool, c.facts, c.outcome FROM continuations t
JOIN sessions s ON s.key = t.session LEFT JOIN calls c ON c.session = t.session AND c.id = t.call WHERE t.token = ?
"""


def keep_tokens(db: sqlite3.Connection, key: int, tokens: Iterable[tuple[str, str]], voided: Iterable[str]) -> None:
    """These calls of this session are deferred: the token of each, and its id. Others are `voided`: they end without an answer.

    `Overtaken` if one of those was answered already.
    """
    for call in voided:
        if db.execute("SELECT 1 FROM calls WHERE session = ? AND id = ? AND outcome IS NOT NULL", (key, call)).fetchone():
            raise overtaken(call)
    db.executemany("INSERT INTO continuations VALUES (?, ?, ?, NULL)", [(token, key, call) for token, call in tokens])


def answer(db: sqlite3.Connection, token: str, outcome: Outcome) -> list[Accepted]:
    """Answer the deferred call of this token; what became of the mail, the session's first."""
    row = db.execute(_FOUND, (token,)).fetchone()
    if row is None:
        raise UnknownToken(token=token)
    found = found_in(row)
    known = judged(token, outcome, found)
    if known is not None:
        return [Accepted(found.session, known)]
    db.execute(
        "UPDATE calls SET status = ?, outcome = ? WHERE session = ? AND id = ?",
        (outcome.status, write_outcome(outcome), found.key, found.call),
    )
    accepted = accept(db, Letter.of(found.mail(token, outcome), {found.call: outcome}))
    db.execute("UPDATE continuations SET answered = ? WHERE token = ?", (accepted.receipt.seq, token))
    return [accepted, *tell(db, found.key, found.news(outcome), row[3])]


def found_in(row: Sequence[Any]) -> Deferred:
    """What a token stands for, from the columns of its session, its call and itself."""
    session, agent, key, _watched, call, answered, tool, facts, outcome = row
    gone = agent == DELETED or facts is None
    hops = 0 if gone else msgspec.json.decode(facts).get("hops", 0)
    ended = None if outcome is None else parse(outcome, Outcome, f"the outcome of {call}")
    return Deferred(session, call, tool or "", hops, ended, answered, gone, key)
