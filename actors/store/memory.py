"""The store of a process that keeps nothing: sessions live as long as it does."""

from actors._errors import RecipientStopped, StoreError, UnknownRecipient
from actors._exit import Status, Stopped
from actors._mailbox import Mailbox
from actors.agent._record import Commit, Draft, State


class MemoryStore:
    """Sessions in memory. A commit runs without a checkpoint, so it is atomic among the tasks of the run."""

    durable = False

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
        """Apply the commit; its mail first, since only mail can be refused."""
        self._send(commit.mail)
        state.apply(commit)
        if commit.mail_cursor is not None:
            box = self._boxes[state.id]
            box.advance(state.mail_cursor, state.control_cursor)
            box.trim(min(state.mail_cursor, state.control_cursor))
        elif commit.control_cursor is not None:
            self._boxes[state.id].advance(0, state.control_cursor)

    def _send(self, drafts: tuple[Draft, ...]) -> None:
        for draft in drafts:
            if draft.to not in self._states:
                raise UnknownRecipient(address=draft.to, near=())
            if self._states[draft.to].status is Status.STOPPED:
                raise RecipientStopped(address=draft.to, exit=Stopped())
        for draft in drafts:
            self._boxes[draft.to].accept(draft.body, draft.sender, id=draft.id, priority=draft.priority, hops=draft.hops)

    def mailbox(self, session: str) -> Mailbox:
        """The session's mailbox."""
        if session not in self._boxes:
            self._boxes[session] = Mailbox(session)
        return self._boxes[session]

    async def sessions(self) -> list[State]:
        """Every session, in the order they were created."""
        return list(self._states.values())
