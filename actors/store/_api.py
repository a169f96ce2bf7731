"""What a store of sessions is. One conformance suite tests all of them (`tests/test_store.py`)."""

from typing import Protocol

from actors._mailbox import Mailbox
from actors.agent._record import Commit, State


class Store(Protocol):
    """Keeps sessions: their items, calls, cursors and mail.

    A commit is atomic: after a crash it is there whole, its mail included, or not at all. What a store hands out (`create`,
    `load`) is the one `State` of that session in this process; `commit` persists first and then applies to it.
    """

    @property
    def durable(self) -> bool:
        """Whether what it keeps outlives the process. If so, mail to its sessions cannot be accepted without waiting."""
        ...

    async def create(self, state: State) -> None:
        """Keep a new session. Raises `StoreError` if its id is there already, or was and is deleted."""
        ...

    async def load(self, session: str) -> State | None:
        """The state of a session, or None if there is none of that id."""
        ...

    async def commit(self, state: State, commit: Commit) -> None:
        """Keep a commit, with the mail it sends, and apply it to `state`. Once begun it is not cancelled half-way.

        A cursor never moves back, and mail up to the lower one is freed. At most one message of a commit may be of a kind that
        can be refused (an agent's words); what tells of an end is always accepted.

        Raises:
            ValueError: A cursor lies behind the newest mail; nothing was kept.
            VersionConflict: Another commit of the loop came first; nothing was kept.
            SendRefused: Mail of the commit was refused; nothing was kept.
            StoreError: The store could not; nothing was kept.
        """
        ...

    def mailbox(self, session: str) -> Mailbox:
        """The one mailbox of a session in this process."""
        ...

    async def sessions(self) -> list[State]:
        """Every session it keeps."""
        ...
