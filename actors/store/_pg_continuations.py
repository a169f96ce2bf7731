"""Deferred calls in rows of PostgreSQL: what their tokens stand for, and how one is answered in a transaction of its own.

An answer changes no row of a session: it locks mailboxes, by address, as whoever commits does, and then what belongs to the call.
"""

from collections.abc import Sequence

from actors._errors import UnknownToken
from actors._outcome import Outcome

from ._admit import Accepted, Letter
from ._answer import Deferred, judged, overtaken
from ._continuations import found_in
from ._pg_connection import TrioConnection
from ._pg_post import accept, lock
from ._pg_watches import WATCHED, drafts_of, tell
from ._rows import write_outcome

_FOUND = f"""
SELECT sessions.id, sessions.agent, sessions.key, {WATCHED}, t.call, t.answered, c.tool, c.facts, c.outcome FROM continuations t
JOIN sessions ON sessions.key = t.session LEFT JOIN calls c ON c.session = t.session AND c.id = t.call WHERE t.token = %s
"""  # noqa: S608  # ours, both
_KEEP = "INSERT INTO continuations SELECT t.token, %s, t.call FROM unnest(%s::text[], %s::text[]) AS t (token, call)"
_ENDED = "SELECT id FROM calls WHERE session = %s AND id = ANY(%s) AND outcome IS NOT NULL"


async def keep_tokens(db: TrioConnection, key: int, tokens: Sequence[tuple[str, str]], voided: Sequence[str]) -> None:
    """These calls of this session are deferred: the token of each, and its id. Others are `voided`: they end without an answer.

    `Overtaken` if one of those was answered already. The session's mailbox is locked.
    """
    found = await (await db.execute(_ENDED.encode(), (key, list(voided)))).fetchone()
    if found is not None:
        raise overtaken(found[0])
    await db.execute(_KEEP.encode(), (key, [token for token, _ in tokens], [call for _, call in tokens]))


async def answer(db: TrioConnection, token: str, outcome: Outcome) -> tuple[Letter, list[Accepted]]:
    """Answer the deferred call of this token: the letter to its session, and what became of that and of other mail."""
    found, watched = await _found(db, token)
    news = found.news(outcome)
    told = await drafts_of(db, found.key, news, watched=watched)
    places = await lock(db, {found.session, *(draft.to for draft in told)})
    found, _ = await _found(db, token)  # now that nobody else answers it, or voids it
    letter = Letter.of(found.mail(token, outcome), {found.call: outcome})
    known = judged(token, outcome, found)
    if known is not None:
        return letter, [Accepted(found.session, known)]
    await db.execute(
        b"UPDATE calls SET status = %s, outcome = %s WHERE session = %s AND id = %s",
        (outcome.status, write_outcome(outcome), found.key, found.call),
    )
    accepted = await accept(db, letter, places)
    await db.execute(b"UPDATE continuations SET answered = %s WHERE token = %s", (accepted.receipt.seq, token))
    return letter, [accepted, *await tell(db, news, told, places)]


async def _found(db: TrioConnection, token: str) -> tuple[Deferred, bool]:
    row = await (await db.execute(_FOUND.encode(), (token,))).fetchone()
    if row is None:
        raise UnknownToken(token=token)
    return found_in(row), bool(row[3])
