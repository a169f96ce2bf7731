"""What a provider refused to read, and what its model is shown in its place. Pure.

A refusal of the request itself (400: too long, an image it cannot read) would meet every request that comes after it. So what was
new in that request is shown as a one-line note from then on: first the results, for they are what mostly is too long, and if that
was not it, the mail. The transcript keeps all of it; only what is sent changes, and it changes once, so prefixes stay cached.
A key that is wrong, or a model that nobody knows, is no matter of what was said: nothing is hidden then.
"""

from collections.abc import Mapping
from typing import Any

from attrs import evolve
from msgspec.structs import replace

from actors._envelope import ContinuationResult, Envelope, TimerFired, ToolCallFinished, UserMessage, WatchedEvent
from actors._errors import ModelError
from actors._outcome import Outcome
from actors.models._items import AssistantItem, Item, ResultsItem, UserItem

from ._record import State

OF_WHAT_WAS_SAID = frozenset({400, 413, 422})  # HTTP: bad request, content too large, unprocessable content
REASON = 200  # characters of the provider's reason in a note


def to_hide(state: State, error: ModelError) -> dict[str, str]:
    """The parts of the request that it refused which are to be notes from now on: each with its note."""
    if error.status not in OF_WHAT_WAS_SAID:
        return {}
    note = _note(error.reason)
    for part in _new_parts(state.items):
        hide = {id: note for id in part if id not in state.refused}
        if hide:
            return hide
    return {}


def _note(reason: str) -> str:
    told = " ".join(reason.split())
    return f"[not shown: the provider refused it: {told if len(told) <= REASON else f'{told[: REASON - 3]}...'}]"


def _place(envelope: Envelope) -> str:
    """How mail is named here: two senders may use one id."""
    return f"#{envelope.seq}"


def _new_parts(items: list[Item]) -> list[list[str]]:
    """What no answer has followed: the results, then the mail."""
    results: list[str] = []
    mail: list[str] = []
    for item in reversed(items):
        if isinstance(item, AssistantItem):
            break
        if isinstance(item, UserItem):
            mail += map(_place, item.mail)
        else:
            results += [result.call for result in item.results if isinstance(result.outcome, Outcome)]
            beside = item.results[-1].mail
            mail += map(_place, beside.mail if beside is not None else ())
    return [results, mail]


# ------------------------------------------------------------------ what is sent in its place
def shown(item: Item, refused: Mapping[str, str]) -> Item:
    """The item with notes where something was refused; itself where nothing was."""
    if isinstance(item, AssistantItem):
        return item
    if isinstance(item, UserItem):
        return _user(item, refused)
    if not any(result.call in refused or result.mail is not None for result in item.results):
        return item
    return ResultsItem(
        tuple(
            evolve(
                result,
                outcome=_outcome(result.outcome, refused[result.call]) if result.call in refused else result.outcome,
                mail=None if result.mail is None else _user(result.mail, refused),
            )
            for result in item.results
        )
    )


def _user(item: UserItem, refused: Mapping[str, str]) -> UserItem:
    hidden = {envelope.id for envelope in item.mail if _place(envelope) in refused}
    if not hidden:
        return item
    mail = tuple(_envelope(each, refused[_place(each)]) if _place(each) in refused else each for each in item.mail)
    return evolve(item, mail=mail, cuts=tuple(cut for cut in item.cuts if cut[0] not in hidden))


def _envelope(envelope: Envelope, note: str) -> Envelope:
    return replace(envelope, body=_body(envelope.body, note))


def _body(body: Any, note: str) -> Any:
    match body:
        case UserMessage():
            return UserMessage(note)
        case ToolCallFinished() | ContinuationResult():
            return evolve(body, outcome=_outcome(body.outcome, note))
        case WatchedEvent():
            return evolve(body, data={"note": note})
        case TimerFired():
            return evolve(body, text=note)
        case _:
            return evolve(body, text=note) if hasattr(body, "text") else body


def _outcome(outcome: Any, note: str) -> Outcome:
    return evolve(outcome, value=note) if outcome.status == "completed" else evolve(outcome, error=note)  # type: ignore[no-any-return]
