"""Holds a store against the diary of what happened: nothing lost, nothing doubled, each call settled, each transcript valid."""

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import trio
from attrs import define, field, fields
from village import SESSIONS, lines

from actors.models._transcript import Validator
from actors.store.sqlite import SQLiteStore


@define
class Report:
    """What was counted, and each thing that is wrong."""

    mail: int = 0
    calls: int = 0
    effects: int = 0
    items: int = 0
    orphaned: int = 0  # calls that a kill cut off and that may not run twice
    again: int = 0  # calls that were started more than once, under one key
    wrong: list[str] = field(factory=list)

    def add(self, other: "Report") -> None:
        """Take over what was found elsewhere."""
        for each in fields(Report):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def hold(self, holds: bool, what: str) -> None:
        """Note what does not hold."""
        if not holds:
            self.wrong.append(what)


def audit(path: Path, diary: Path) -> Report:
    """Everything, once the village is at rest."""
    report, past = Report(), lines(diary)
    with closing(sqlite3.connect(path)) as db:
        keys = dict(db.execute("SELECT id, key FROM sessions"))
        for session in SESSIONS:
            _mail(report, db, session, keys[session])
        _users(report, db, keys, past)
        _calls(report, db, keys, past)
        [damage] = db.execute("PRAGMA integrity_check").fetchone()
        report.hold(damage == "ok", f"the file is damaged: {damage}")
    trio.run(_transcripts, report, str(path))
    return report


# ------------------------------------------------------------------ mail
def _mail(report: Report, db: sqlite3.Connection, session: str, key: int) -> None:
    """Each accepted envelope is in exactly one item; the end of a call is shown if, and only if, its result was a placeholder."""
    base = key << 32
    rows = db.execute("SELECT at, body FROM mail WHERE at > ? AND at < ?", (base, base + (1 << 32))).fetchall()
    items = [
        json.loads(text)
        for (text,) in db.execute("SELECT item FROM items WHERE at > ? AND at < ? ORDER BY at", (base, base + (1 << 32)))
    ]
    report.mail += len(rows)
    report.hold([at - base for at, _ in rows] == list(range(1, len(rows) + 1)), f"{session}: its seqs have gaps")
    told = Counter(seq for item in items for seq in item.get("mail", ()))
    late = {each["call"] for item in items for each in item.get("results", ()) if "placeholder" in each}
    for at, text in rows:
        body, seq = json.loads(text), at - base
        wanted = int(body["call"] in late) if body["type"] == "tool_call_finished" else 1
        report.hold(told[seq] == wanted, f"{session}: mail {seq} ({body['type']}) stands in {told[seq]} turns, not {wanted}")


def _users(report: Report, db: sqlite3.Connection, keys: dict[str, int], past: list[dict[str, Any]]) -> None:
    """Each intent is one mail, at the place its receipt says."""
    kept = Counter((at >> 32, id) for at, id in db.execute("SELECT at, id FROM mail WHERE id IS NOT NULL"))
    places = {(at >> 32, id): at & 0xFFFFFFFF for at, id in db.execute("SELECT at, id FROM mail WHERE id IS NOT NULL")}
    for line in past:
        if line["what"] == "resent":
            report.hold(line["same"], f"{line['id']}: a resend did not find its first receipt")
        if line["what"] not in {"intent", "receipt"}:
            continue
        place = (keys[line["to"]], line["id"])
        report.hold(kept[place] == 1, f"{line['id']}: kept {kept[place]} times")
        if line["what"] == "receipt":
            report.hold(
                places.get(place) == line["seq"], f"{line['id']}: its receipt says {line['seq']}, kept at {places.get(place)}"
            )


# ------------------------------------------------------------------ calls
def _calls(report: Report, db: sqlite3.Connection, keys: dict[str, int], past: list[dict[str, Any]]) -> None:
    """Each call has an outcome; what a tool did is what its outcome says, as far as anybody can know."""
    names = {key: id for id, key in keys.items()}
    effects = Counter(line["key"] for line in past if line["what"] == "effect")
    report.effects = sum(effects.values())
    sent = Counter(id for (id,) in db.execute("SELECT id FROM mail WHERE id LIKE 'foreman:%'"))
    known = set()
    for session, id, tool, status, outcome in db.execute("SELECT session, id, tool, status, outcome FROM calls"):
        key = f"{names[session]}/{id}"
        known.add(key)
        report.calls += 1
        report.orphaned += status == "orphaned"
        report.again += effects[key] > 1
        report.hold(outcome is not None and json.loads(outcome)["status"] == status, f"{key} is {status}, and has no outcome")
        once = tool in {"dig", "survey"}
        done = effects[key]
        report.hold(not once or done <= 1, f"{key} ({tool}) ran {done} times")
        report.hold(status != "completed" or done >= 1, f"{key} is completed, and never ran")
        report.hold(status != "not_started" or done == 0, f"{key} never started, and ran")
        report.hold(
            once or status in {"completed", "not_started", "cancelled", "failed"},
            f"{key} ({tool}) may run twice, and is {status}",
        )
        if tool == "tell":
            message = sent[key.replace("/", ":")]
            report.hold(
                message == 1 if status == "completed" else message <= 1, f"{key} is {status}, and sent {message} messages"
            )
    report.hold(effects.keys() <= known, f"calls ran that nobody asked for: {sorted(effects.keys() - known)[:3]}")


async def _transcripts(report: Report, path: str) -> None:
    """Each is one that a provider would take, and each call in it has its one result."""
    store = SQLiteStore(path)
    await store.open()
    for session in SESSIONS:
        state = await store.load(session)
        assert state is not None
        report.items += len(state.items)
        try:
            Validator().check(state.items)
        except Exception as error:  # noqa: BLE001  # what is wrong is the finding
            report.wrong.append(f"{session}: {error}")
        report.hold(not state.live, f"{session}: calls without an end: {sorted(state.live)[:3]}")
        report.hold(store.mailbox(session).unread_count() == 0, f"{session}: {store.mailbox(session).unread_count()} unread")
    await store.close()
