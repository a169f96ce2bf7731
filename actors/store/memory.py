"""The store of a process that keeps nothing: sessions live as long as it does."""

from difflib import get_close_matches

from actors._errors import RecipientStopped, StoreError, UnknownRecipient
from actors._exit import Status, Stopped
from actors._mailbox import ALWAYS_ACCEPTED, Mailbox
from actors.agent._record import Commit, Draft, State


class MemoryStore:
    """Sessions in memory. A commit runs without a checkpoint, so it is atomic among the tasks of the run."""

    durable: bool = False

    def __init__(self) -> None:
        self._states: dict[str, State] = {}
        self._boxes: dict[str, Mailbox] = {}

    async def create(self, state: State) -> None:
        """Keep a new session."""
        if state.id in self._states:
            raise StoreError(f"session {state.id} is there already; open it instead of creating it")
        self._states[state.id] = state

    async def load(self, session: str) -> State | None:
        """The session's state, if there is one."""
        return self._states.get(session)

    async def commit(self, state: State, commit: Commit) -> None:
        """Apply the commit; what can be refused first, then what cannot."""
        box = self.mailbox(state.id)
        if max(commit.mail_cursor or 0, commit.control_cursor or 0) > box.last:
            raise ValueError(f"{state.id} has mail up to seq {box.last}; this commit's cursors lie behind that")
        self._send(commit.mail)
        state.apply(commit)
        if commit.mail_cursor is not None or commit.control_cursor is not None:
            box.advance(state.mail_cursor, state.control_cursor)
            box.trim(min(state.mail_cursor, state.control_cursor))

    def _send(self, drafts: tuple[Draft, ...]) -> None:
        for draft in drafts:
            if draft.to not in self._states:
                raise UnknownRecipient(address=draft.to, near=tuple(get_close_matches(draft.to, self._states)))
            if self._states[draft.to].status is Status.STOPPED:
                raise RecipientStopped(address=draft.to, exit=Stopped())
        for draft in sorted(drafts, key=lambda each: isinstance(each.body, ALWAYS_ACCEPTED)):
            box = self.mailbox(draft.to)
            box.accept(draft.body, draft.sender, id=draft.id, priority=draft.priority, hops=draft.hops)

    def mailbox(self, session: str) -> Mailbox:
        """The session's mailbox."""
        if session not in self._boxes:
            self._boxes[session] = Mailbox(session)
        return self._boxes[session]

    async def sessions(self) -> list[State]:
        """Every session, in the order they were created."""
        return list(self._states.values())
