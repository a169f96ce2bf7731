"""Following a session's events: all of them, or those of the run that reads one message.

A reader that is too slow misses events and gets a `Gap` in their place. What it must not miss is the end of what it follows, so
after a gap the session itself says whether that run is over.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from math import inf
from typing import Any, Protocol

from actors._envelope import Receipt
from actors._errors import RunFailed
from actors._exit import Status
from actors.events import Answer, AnyEvent, Ended, Gap, MailAccepted, MailDelivered, RunStopped

from ._hub import Hub


class Events(Protocol):
    """Events as they come: iterate it. What `events()` opens."""

    def __aiter__(self) -> AsyncIterator[AnyEvent]:
        """The next ones."""
        ...


async def nothing() -> AsyncGenerator[AnyEvent]:
    """No events at all."""
    none: tuple[AnyEvent, ...] = ()
    for event in none:
        yield event


def session_events(hub: Hub, address: str, since: int | None, *, ended: bool) -> AsyncGenerator[AnyEvent]:
    """A session's events until its exit; of one that has ended, what there is of them."""
    over = hub.seq if ended else inf
    if ended and (since is None or since >= over):
        return nothing()
    return hub.follow(
        since,
        lambda event: address in {event.session, getattr(event, "address", None)},
        lambda event: event.seq >= over or (isinstance(event, Ended) and event.address == address),
    )


class Followed(Events):
    """The events of one run, and the answer that they told of."""

    events: AsyncGenerator[AnyEvent]
    _run: int | None = None
    _answer: str | None = None
    _over: RunFailed | None = None  # why there is no answer, if there is none, once the run is over

    def __aiter__(self) -> AsyncIterator[AnyEvent]:
        return self.events

    @property
    def answer(self) -> str:
        """The run's last answer. Raises `RunFailed` if it has none (yet)."""
        if self._answer is not None:
            return self._answer
        if self._over is None:
            raise RunFailed(status=Status.RUNNING, reason="it has not answered yet")
        raise RunFailed(**vars(self._over))


class RunStream(Followed):
    """The events of one run; iterate it. It ends with the run, or with the session."""

    def __init__(self, place: Any, receipt: Receipt, since: int) -> None:
        self._place = place
        self._seq = receipt.seq
        self._begun = (
            not receipt.duplicate
        )  # one sent before is followed from where it was sent or read, as far back as there are events
        self.events = self._followed(place.runtime.hub, since)

    def _followed(self, hub: Hub, since: int) -> AsyncGenerator[AnyEvent]:
        if self._begun:
            return hub.follow(since, self._wanted, self._last)
        known = any(self._begins(event) for event in hub.events())
        if not known and self._seq <= self._place.state.mail_cursor:
            self._over = self._without(Status.IDLE, "its message was read long ago; the events of that run are gone")
            return nothing()
        return hub.follow(hub.oldest - 1 if known else since, self._wanted, self._last)

    # -------------------------------------------------------------- which events
    def _mine(self, event: AnyEvent) -> bool:
        mine: bool = event.session == self._place.address
        return mine

    def _reads(self, event: AnyEvent) -> bool:
        return self._mine(event) and isinstance(event, MailDelivered) and any(each.seq == self._seq for each in event.mail)

    def _begins(self, event: AnyEvent) -> bool:
        return self._reads(event) or (self._mine(event) and isinstance(event, MailAccepted) and event.envelope.seq == self._seq)

    def _wanted(self, event: AnyEvent) -> bool:
        self._begun = self._begun or self._begins(event)
        if not self._mine(event) or not self._begun:
            return False
        if self._reads(event):
            self._run = event.run
        if isinstance(event, Answer) and self._run is not None:
            self._answer = event.text
        return True

    # -------------------------------------------------------------- the end
    def _last(self, event: AnyEvent) -> bool:
        if isinstance(event, Gap):
            return self._missed_the_end()
        if isinstance(event, Ended) and event.address == self._place.address:
            self._over = self._without(self._place.state.status, f"the session ended: {event.exit!r}")
            return True
        return self._mine(event) and self._ends(event)

    def _ends(self, event: AnyEvent) -> bool:
        if not isinstance(event, RunStopped) or self._run is None or event.run != self._run:
            return False
        failed = event.reason == "failed"
        why = self._place.state.failure if failed else f"the run ended: {event.reason}"
        self._over = self._without(Status.FAILED if failed else self._place.state.status, why)
        return True

    def _missed_the_end(self) -> bool:
        """Whether the run is over and nothing that says so is left to come."""
        ahead = self._place.runtime.hub.events()
        state = self._place.state
        if self._run is None and self._seq <= state.mail_cursor and not any(map(self._reads, ahead)):
            self._run = state.run
        going_on = self._run is None or (state.run == self._run and self._place.session.busy)
        if going_on or any(self._mine(event) and self._ends(event) for event in ahead):
            return False
        self._answer = self._place.session.answers.last
        self._over = self._without(state.status, "the events of the run were missed")
        return True

    @staticmethod
    def _without(status: Status, why: str) -> RunFailed:
        return RunFailed(status=status, reason=why)
