"""What a commit tells other sessions: those that watch its session, and the parent that waits for how a run ends. Pure.

    event            the commit that tells it
    run_started      begins a run
    run_stopped      ends one
    status           changes the status
    tool_started     has a call that was not there
    tool_finished    has the outcome of a call
    answer           has the words that end a run
    exit             ends the session

A store accepts this mail in the transaction of the commit itself, so neither is there without the other. The ids come from the
commit, hence mail that is there already is not accepted again. It may be refused, by a mailbox that is full or gone, and the
commit is kept all the same: nobody has to wait until he is heard.

A parent hears how a run ends that has read its mail, and of every run that failed or was stopped.
"""

import logging
from collections.abc import Iterator, Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from attrs import field, frozen

from actors._envelope import FromSession, FromSystem, WatchedEvent
from actors._errors import SendRefused
from actors._exit import Status
from actors.models._items import AssistantItem, ResultsItem, UserItem

from ._record import Commit, Draft, State, WatchRow

log = logging.getLogger("postroom.store")
TOOL_EVENTS = ("tool_started", "tool_finished")
EVENTS = ("run_started", "run_stopped", "status", *TOOL_EVENTS, "exit", "answer")
WATCH = FromSystem("watch")
ENDED = {Status.IDLE, Status.FAILED, Status.STOPPED}


@frozen
class Happening:
    """An event of a session. `mark` tells it from others of its kind."""

    kind: str
    mark: object
    data: Mapping[str, Any]

    def concerns(self, watch: WatchRow) -> bool:
        """Whether this watch asks for it."""
        if self.kind not in watch.events:
            return False
        return watch.tool is None or self.kind not in TOOL_EVENTS or fnmatchcase(self.data["tool"], watch.tool)


@frozen
class News:
    """What one commit tells. `end` is for the parent; `over`: nobody will hear of this session again."""

    session: str
    hops: int
    happenings: tuple[Happening, ...]
    end: Draft | None = None
    over: bool = field(default=False)

    def told(self, watcher: str, watch: WatchRow, now: datetime) -> Iterator[Draft]:
        """The mail of one watch."""
        for each in self.happenings if watch.until > now else ():
            if each.concerns(watch):
                body = WatchedEvent(self.session, each.kind, each.data)
                yield Draft(watcher, body, WATCH, f"{watch.id}:{each.kind}:{each.mark}", hops=self.hops)

    def unheard(self, draft: Draft, refusal: SendRefused) -> None:
        """This mail was not accepted."""
        if not self.over and draft is not self.end:
            log.warning("an event of %s that %s watches was not kept: %s", self.session, draft.to, refusal)


def news_of(state: State, commit: Commit) -> News | None:
    """What this commit will tell whoever asks; None if nothing. Before it is applied."""
    if commit.status in {None, state.status} and not commit.calls and not commit.append and commit.run in {None, state.run}:
        return None
    happenings = tuple(_happenings(state, commit))
    hops = state.hops if commit.hops is None else commit.hops
    end = None if state.parent is None else _end(state, commit, hops)
    over = commit.status is Status.STOPPED
    return News(state.id, hops, happenings, end, over) if happenings or end is not None or over else None


def _happenings(state: State, commit: Commit) -> Iterator[Happening]:
    before, status = state.status, commit.status
    if commit.run not in {None, state.run}:
        yield Happening("run_started", commit.run, {"run": commit.run})
    for row in commit.calls:
        known = state.calls.get(row.id)
        if known is None:
            yield Happening("tool_started", row.id, {"call": row.id, "tool": row.tool})
        if row.outcome is not None and (known is None or known.outcome is None):
            yield Happening("tool_finished", row.id, {"call": row.id, "tool": row.tool, "status": row.status})
    for item in commit.append:
        if isinstance(item, AssistantItem) and item.text.strip() and (not item.calls or len(commit.append) > 1):
            yield Happening("answer", state.version, {"text": item.text})  # with calls: those of a wrap-up, which do not run
    if status is None or status is before:
        return
    yield Happening("status", state.version, {"status": status.value})
    if status in ENDED and (status is Status.FAILED or state.ended_by(commit)):
        yield Happening("run_stopped", state.version, {"run": state.run, "reason": _reason(state, commit)})
    if status is Status.STOPPED:
        yield Happening("exit", state.version, {"exit": "stopped"})


def _reason(state: State, commit: Commit) -> str:
    if commit.status is Status.FAILED:
        return "failed"
    if commit.stop is not None or commit.status is Status.STOPPED:
        return "stopped"
    return "limit" if _wrapped_up(state) else "answered"


def _wrapped_up(state: State) -> bool:
    """Whether the newest request was told to wrap up."""
    for item in reversed(state.items):
        beside = item.results[-1].mail if isinstance(item, ResultsItem) else item
        if isinstance(beside, UserItem):
            return beside.nudge == "wrap_up"
    return False


def _end(state: State, commit: Commit, hops: int) -> Draft | None:
    """The mail to the parent, if this commit ends a run of which it is to hear."""
    told = _told_of_end(state, commit)
    if told is None or state.parent is None:
        return None
    mark, kind, text = told
    body = WatchedEvent(state.id, kind, {"text": text})
    return Draft(state.parent, body, FromSession(state.id, state.agent), f"end:{state.run}:{mark}", hops=hops)


def _told_of_end(state: State, commit: Commit) -> tuple[str, str, str] | None:
    if commit.status is Status.STOPPED:
        return "exit", "stopped", "the session was stopped"
    if commit.stop is not None:
        return "stopped", "stopped", "its run was stopped"
    if commit.status is Status.FAILED and state.status is not Status.FAILED:
        return "failed", "failed", commit.failure or state.failure
    if state.heard and state.ended_by(commit):
        words = (item.text for item in reversed(state.items) if isinstance(item, AssistantItem))
        return "answer", "answer", next(words, "")
    return None
