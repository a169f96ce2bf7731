"""The canonical transcript: what may follow what, checked before each request.

Providers refuse a history in which a tool call is not answered exactly once, at once and in order. What may stand
at a place follows from the item before it alone, so the rules are one table (`_MAY_FOLLOW`), plus what each kind of item
must be in itself, plus one fact about the whole history: no call id stands in it twice.

That is why checking can be incremental. `Validator` remembers how far it came and the last two items it saw. Is the last
one still where it was, checking goes on behind it; was it an unanswered user item that has since been amended
(another object at the same place, behind the same predecessor), it goes on from there. Otherwise it starts over. A check
at round 1,000 costs what it did at round 10.
"""

import re
from collections.abc import Sequence
from weakref import ref

from actors._errors import TranscriptInvalid

from ._blocks import ToolCall
from ._items import AssistantItem, Item, ResultsItem, UserItem

CALL_ID_FORM = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")

_START, _USER, _CALLS, _ANSWER, _RESULTS = "start", "user", "calls", "answer", "results"
_MAY_FOLLOW: dict[str, tuple[frozenset[str], str]] = {
    _START: (frozenset({_USER}), "the first item is a user item"),
    _USER: (frozenset({_CALLS, _ANSWER}), "a user item is followed by the model's answer, never by another item of ours"),
    _CALLS: (frozenset({_RESULTS}), "calls are followed at once by their results"),
    _ANSWER: (frozenset({_USER}), "an answer without calls is followed by a user item"),
    _RESULTS: (frozenset({_USER, _CALLS, _ANSWER}), "results stand only once, behind the calls they answer"),
}
_WORDS = {
    _USER: "a user item",
    _CALLS: "an assistant item with calls",
    _ANSWER: "an assistant item without calls",
    _RESULTS: "a results item",
}


def kind_of(item: Item) -> str:
    """Its row in the table of what may follow."""
    if isinstance(item, AssistantItem):
        return _CALLS if item.calls else _ANSWER
    return _USER if isinstance(item, UserItem) else _RESULTS


class Validator:
    """Checks one growing transcript, each item once.

    It keeps no item alive, so it can itself be kept for as long as the conversation's first item lives.
    """

    def __init__(self) -> None:
        self._restart()

    def _restart(self) -> None:
        self._count = 0
        self._last: ref[Item] | None = None
        self._before: ref[Item] | None = None
        self._amendable = False  # no assistant item is ever replaced: others added no call ids that would have to be taken back
        self._ids: set[str] = set()

    def check(self, transcript: Sequence[Item]) -> None:
        """Check what is new since the last check of this transcript.

        Raises:
            TranscriptInvalid: It says which item breaks which rule. The next check starts over.
        """
        start = self._known(transcript)
        if start == 0:
            self._restart()
        try:
            for index in range(start, len(transcript)):
                self._check_item(index, transcript[index], transcript[index - 1] if index else None)
        except TranscriptInvalid:
            self._restart()
            raise
        self._count = len(transcript)
        if start < self._count:
            self._last = ref(transcript[-1])
            self._before = ref(transcript[-2]) if self._count > 1 else None
            self._amendable = not isinstance(transcript[-1], AssistantItem)

    def check_request(self, transcript: Sequence[Item]) -> None:
        """`check`, and that the last item is one that a model can answer: a user item or results.

        Raises:
            TranscriptInvalid: As `check`.
        """
        self.check(transcript)
        if not transcript:
            raise TranscriptInvalid(index=0, rule=_MAY_FOLLOW[_START][1], found="missing")
        if isinstance(transcript[-1], AssistantItem):
            raise self._broken(len(transcript) - 1, transcript[-1], "a request ends in a user item or in results")

    def _known(self, transcript: Sequence[Item]) -> int:
        """How many items at the front need no second look."""
        count = self._count
        if not count or len(transcript) < count or self._last is None:
            return 0
        if transcript[count - 1] is self._last():
            return count
        if self._amendable and self._before is not None and transcript[count - 2] is self._before():
            return count - 1
        return 0

    def _check_item(self, index: int, item: Item, before: Item | None) -> None:
        allowed, rule = _MAY_FOLLOW[kind_of(before) if before is not None else _START]
        if kind_of(item) not in allowed:
            raise self._broken(index, item, rule)
        if isinstance(item, UserItem):
            if not item.text.strip() and not item.media:
                raise self._broken(index, item, "a user item has text or media")
        elif isinstance(item, AssistantItem):
            self._check_assistant(index, item)
        elif isinstance(before, AssistantItem):
            self._check_results(index, item, before.calls)

    def _check_assistant(self, index: int, item: AssistantItem) -> None:
        if not item.calls and not item.text.strip():
            raise self._broken(index, item, "an assistant item has words or calls")
        for call in item.calls:
            if not CALL_ID_FORM.match(call.id):
                raise self._broken(index, item, f"a call id is 1 to 64 of a-z A-Z 0-9 _ -, not {call.id!r}")
            if call.id in self._ids:
                raise self._broken(index, item, f"call id {call.id!r} was used before in this history")
            self._ids.add(call.id)

    def _check_results(self, index: int, item: ResultsItem, calls: Sequence[ToolCall]) -> None:
        asked, answered = [call.id for call in calls], [result.call for result in item.results]
        if asked != answered:
            found = f"the calls are {', '.join(asked)} and the results are for {', '.join(answered) or 'none'}"
            raise self._broken(index, item, f"each call has one result, in call order: {found}")

    def _broken(self, index: int, item: Item, rule: str) -> TranscriptInvalid:
        return TranscriptInvalid(index=index, rule=rule, found=_WORDS[kind_of(item)])
