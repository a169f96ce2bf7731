"""`postroom sessions` and `postroom doctor`: a store from outside, whoever runs its sessions. Nothing here brings one to life."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import trio

from actors import AssistantItem, ConfigError, Envelope, ResultsItem, Status, UnknownRecipient, UserItem, to_json
from actors.agent._record import State
from actors.store._resolve import SQLITE
from supervision._system import System, open_system

from ._store import add_store, store_of

SESSIONS = """Look at the sessions of a store, and write to them. Who runs them reads it; if nobody does now, whoever runs them next.

The store is named by --store or by $POSTROOM_STORE, such as sqlite:///agents.db.
"""
DOCTOR = "Check a store: what is in it, what waits, which owner is gone, and whether the file is whole. Exit code 1 if something is wrong."
ORDERS = {"pause": "stop it at its next step, until resume", "resume": "let it go on", "stop": "end its run; the session stays"}
LOOK = 0.5  # seconds between two looks of `watch`


def add_parsers(commands: Any) -> None:
    """Their grammar."""
    raw = argparse.RawDescriptionHelpFormatter
    sessions = commands.add_parser(
        "sessions", help="look at stored sessions, write to them", description=SESSIONS, formatter_class=raw
    )
    verbs = sessions.add_subparsers(dest="verb", metavar="list|show|mail|send|interrupt|pause|resume|stop|watch", required=True)
    listed = _verb(verbs, "list", "every session, a line each", session=False)
    listed.add_argument("--json", action="store_true", help="one JSON object a line")
    _verb(verbs, "show", "its transcript")
    unread = _verb(verbs, "mail", "what it has not read yet")
    unread.add_argument("--json", action="store_true", help="one JSON object a line")
    for verb, what in {"send": "write to it", "interrupt": "write to it; it is read before anything else"}.items():
        sent = _verb(verbs, verb, what)
        sent.add_argument("words", help="what to say")
        sent.add_argument("--id", help="your id for this message: sent again under it, it is kept once")
    for verb, what in ORDERS.items():
        _verb(verbs, verb, what)
    _verb(verbs, "watch", "its transcript, and what is added to it, until Ctrl-C")
    doctor = commands.add_parser("doctor", help="check a store", description=DOCTOR)
    doctor.add_argument("--json", action="store_true", help="as one JSON object")
    add_store(doctor)


def _verb(verbs: Any, name: str, what: str, *, session: bool = True) -> argparse.ArgumentParser:
    verb: argparse.ArgumentParser = verbs.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
    if session:
        verb.add_argument("session", help="its id")
    add_store(verb)
    return verb


def run_sessions(given: argparse.Namespace) -> int:
    """Do what was typed; the exit code."""
    store = store_of(given)
    path = store.removeprefix(SQLITE)
    if store.startswith(SQLITE) and path and not Path(path).exists():
        raise ConfigError(f"there is no store {path}; give the path of one, `postroom run ... --store` makes it")
    code: int = trio.run(_inside, _doctor if given.command == "doctor" else VERBS.get(given.verb, _order), given)
    return code


async def _inside(do: Callable[[System, argparse.Namespace], Any], given: argparse.Namespace) -> int:
    async with open_system(store=given.store) as system:
        return int(await do(system, given) or 0)


# ------------------------------------------------------------------ looking
async def _list(system: System, given: argparse.Namespace) -> None:
    found = await system.sessions()
    if given.json:
        for each in found:
            facts = {"id": each.id, "agent": each.agent, "parent": each.parent, "owner": each.owner}
            _say(json.dumps({**facts, "status": each.status.value, "unread": each.unread}))
        return
    rows = [("session", "agent", "status", "unread", "owner", "parent")]
    rows += [
        (each.id, each.agent, each.status.value, str(each.unread), each.owner or "-", each.parent or "-") for each in found
    ]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        _say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


async def _show(system: System, given: argparse.Namespace) -> None:
    state, unread = await _looked(system, given.session)
    _say(
        f"{state.id}: {state.agent}, {state.status.value}, {len(state.items)} items, {len(state.calls)} calls, {len(unread)} unread"
    )
    if state.status is Status.FAILED:
        _say(f"failed: {state.failure}")
    for item in state.items:
        _say(drawn(item))


def drawn(item: object) -> str:
    """An item of a transcript, as a person reads it."""
    if isinstance(item, UserItem):
        return _under("<", item.text)
    if isinstance(item, AssistantItem):
        words = [_under(">", item.text)] if item.text else []
        return "\n".join(
            [*words, *(_under("*", f"{call.id} {call.tool}({json.dumps(dict(call.arguments))})") for call in item.calls)]
        )
    assert isinstance(item, ResultsItem)
    return "\n".join(_under("=", f"{each.call} {each.text}") for each in item.results)


def _under(mark: str, text: str) -> str:
    return "\n".join(f"{mark if number == 0 else ' '} {line}" for number, line in enumerate(text.splitlines() or [""]))


async def _mail(system: System, given: argparse.Namespace) -> None:
    _, unread = await _looked(system, given.session)
    for each in unread:
        sent = each.sent_at.isoformat(timespec="seconds")
        _say(to_json(each) if given.json else f"{each.seq}  {sent}  {each.priority}  {each.sender!r}\n   {each.body!r}")


async def _watch(system: System, given: argparse.Namespace) -> None:
    shown, status, last = 0, None, ""
    while True:
        state, _ = await _looked(system, given.session)
        if shown and shown <= len(state.items) and drawn(state.items[shown - 1]) != last:
            shown -= 1  # its last item grew
        for item in state.items[shown:]:
            last = drawn(item)
            _say(last)
        shown = len(state.items)
        if state.status is not status:
            status = state.status
            _say(f"- {status.value}")
        sys.stdout.flush()
        await trio.sleep(LOOK)


async def _looked(system: System, session: str) -> tuple[State, Sequence[Envelope]]:
    found = await system._root.store.look(session)  # noqa: SLF001  # the command line is the system's own
    if found is None:
        near = [each.id for each in await system.sessions()][:5]
        raise UnknownRecipient(address=session, near=tuple(near))
    return found


# ------------------------------------------------------------------ writing
async def _send(system: System, given: argparse.Namespace) -> None:
    ref = system.session(given.session)
    receipt = await ref.send(given.words, id=given.id, interrupt=given.verb == "interrupt")
    _say(
        f"kept as {receipt.id}, message {receipt.seq} of {given.session}{' (it was there already)' if receipt.duplicate else ''}"
    )


async def _order(system: System, given: argparse.Namespace) -> None:
    ref = system.session(given.session)
    await {"pause": ref.pause, "resume": ref.resume, "stop": ref.stop_run}[given.verb]()
    _say(f"{given.verb}: {given.session} will hear of it")


VERBS: dict[str, Callable[[System, argparse.Namespace], Any]] = {
    "list": _list, "show": _show, "mail": _mail, "watch": _watch, "send": _send, "interrupt": _send,
}  # fmt: skip


# ------------------------------------------------------------------ the doctor
async def _doctor(system: System, given: argparse.Namespace) -> int:
    found = await system._root.store.checkup()  # noqa: SLF001
    waits = None if found.oldest_unread is None else max(0.0, time.time() - found.oldest_unread)
    wrong = list(found.damage)
    if found.expired:
        wrong.append(f"{found.expired} sessions have an owner that is gone; they go on when a process with their agents starts")
    facts = {
        "store": found.where, "schema": found.schema, "bytes": found.bytes, "sessions": dict(found.sessions), "mail": found.mail, "unread": found.unread,
        "oldest_unread_seconds": waits, "open_calls": found.open_calls, "timers": found.timers, "held": found.held, "expired_leases": found.expired,
        "wrong": wrong,
    }  # fmt: skip
    if given.json:
        _say(json.dumps(facts))
    else:
        for name, value in facts.items():
            told = ", ".join(f"{count} {status}" for status, count in value.items()) if isinstance(value, dict) else value
            if name != "wrong":
                _say(f"{name.replace('_', ' '):24}{'-' if told in {None, ''} else told}")
        _say("\n".join(f"wrong: {each}" for each in wrong) or "nothing is wrong")
    return int(bool(wrong))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
