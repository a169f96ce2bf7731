"""Holds a store against the diary of what happened: nothing lost, nothing doubled, each call settled, each transcript valid."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import trio
from attrs import define, field, fields
from books import Books, read
from village import SESSIONS, lines

from actors._limits import SESSION_DEFAULTS
from actors.models._transcript import Validator
from actors.store._resolve import resolve_store

MOST_HOPS: Any = SESSION_DEFAULTS.max_hops


@define
class Report:
    """What was counted, and each thing that is wrong."""

    mail: int = 0
    calls: int = 0
    effects: int = 0
    items: int = 0
    orphaned: int = 0  # calls that a kill cut off and that may not run twice
    answered: int = 0  # deferred calls
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


def audit(url: str, diary: Path) -> Report:
    """Everything, once the village is at rest."""
    report, past, books = Report(), lines(diary), read(url)
    for session in SESSIONS:
        _mail(report, books, session)
    _users(report, books, past)
    _calls(report, books, past)
    _answers(report, books, past)
    report.hold(not books.damage, f"the store is damaged: {books.damage}")
    trio.run(_transcripts, report, url)
    return report


# ------------------------------------------------------------------ mail
def _mail(report: Report, books: Books, session: str) -> None:
    """Each accepted envelope is in exactly one item; the end of a call is shown if, and only if, its result was a placeholder.

    What came through too many sessions is kept and wakes nobody: at rest that alone may wait for the next turn.
    """
    key = books.keys[session]
    mail, items = [each for each in books.mail if each.session == key], books.items[key]
    report.mail += len(mail)
    report.hold([each.seq for each in mail] == list(range(1, len(mail) + 1)), f"{session}: its seqs have gaps")
    told = Counter(seq for item in items for seq in item.get("mail", ()))
    late = {each["call"] for item in items for each in item.get("results", ()) if "placeholder" in each}
    for each in mail:
        kind, seq = each.body["type"], each.seq
        waits = seq > books.cursors[key]
        wanted = (
            int(each.body["call"] in late) if kind in {"tool_call_finished", "continuation_result"} else int(kind != "control")
        )
        if waits:
            report.hold(each.hops > MOST_HOPS, f"{session}: mail {seq} ({kind}) is unread, and would wake it")
            wanted = 0
        report.hold(told[seq] == wanted, f"{session}: mail {seq} ({kind}) stands in {told[seq]} turns, not {wanted}")


def _users(report: Report, books: Books, past: list[dict[str, Any]]) -> None:
    """Each intent is one mail, at the place its receipt says."""
    named = [each for each in books.mail if each.id is not None]
    kept = Counter((each.session, each.id) for each in named)
    places = {(each.session, each.id): each.seq for each in named}
    for line in past:
        if line["what"] == "resent":
            report.hold(line["same"], f"{line['id']}: a resend did not find its first receipt")
        if line["what"] not in {"intent", "receipt"}:
            continue
        place = (books.keys[line["to"]], line["id"])
        report.hold(kept[place] == 1, f"{line['id']}: kept {kept[place]} times")
        if line["what"] == "receipt":
            report.hold(
                places.get(place) == line["seq"], f"{line['id']}: its receipt says {line['seq']}, kept at {places.get(place)}"
            )


# ------------------------------------------------------------------ calls
def _calls(report: Report, books: Books, past: list[dict[str, Any]]) -> None:
    """Each call has an outcome; what a tool did is what its outcome says, as far as anybody can know."""
    names = {key: id for id, key in books.keys.items()}
    effects = Counter(line["key"] for line in past if line["what"] == "effect")
    report.effects = sum(effects.values())
    sent = Counter(each.id for each in books.mail if each.id is not None and each.id.startswith("foreman:"))
    known = set()
    for session, id, tool, status, outcome in books.calls:
        key = f"{names[session]}/{id}"
        known.add(key)
        report.calls += 1
        report.orphaned += status == "orphaned"
        report.again += effects[key] > 1
        report.hold(outcome is not None and json.loads(outcome)["status"] == status, f"{key} is {status}, and has no outcome")
        once = tool in {"dig", "survey", "permit"}
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


def _answers(report: Report, books: Books, past: list[dict[str, Any]]) -> None:
    """Each answer of the host's is one mail, at the place each of its receipts says, and its call's outcome; each deferred call has one."""
    names = {key: id for id, key in books.keys.items()}
    letters = {each.body["token"]: each for each in books.mail if each.body["type"] == "continuation_result"}
    ends = {f"{names[session]}/{id}": (status, outcome) for session, id, _, status, outcome in books.calls}
    told = [line for line in past if line["what"] == "answered"]
    for line in told:
        mail = letters.get(line["token"])
        report.hold(
            mail is not None and mail.seq == line["seq"], f"{line['key']}: its receipt says {line['seq']}, kept as {mail}"
        )
        status, outcome = ends[line["key"]]
        report.hold(status == "completed", f"{line['key']} was answered, and is {status}")
        report.hold(json.loads(outcome)["value"] == f"permitted {line['key']}", f"{line['key']} has another answer: {outcome}")
    report.answered = len(letters)
    report.hold(letters.keys() == {line["token"] for line in told}, "answers were kept that nobody gave, or nobody heard of")
    for line in past:
        if line["what"] == "asked" and line["token"] not in letters:
            status, _ = ends[line["key"]]
            report.hold(status in {"orphaned", "cancelled"}, f"{line['key']} is {status}, and nobody answered it")


async def _transcripts(report: Report, url: str) -> None:
    """Each is one that a provider would take, and each call in it has its one result."""
    store = resolve_store(url)
    await store.open()
    for session in SESSIONS:
        state = await store.load(session)
        assert state is not None
        report.items += len(state.items)
        try:
            Validator().check(state.items)
        except Exception as error:  # noqa: BLE001  # what is wrong is the finding
            report.wrong.append(f"{session}: {error}")
        report.hold(not state.deferred, f"{session}: calls without an answer: {sorted(state.deferred)[:3]}")
        report.hold(not state.live, f"{session}: calls without an end: {sorted(state.live)[:3]}")
    await store.close()
