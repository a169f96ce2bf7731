"""What becomes of the answer to a deferred call, given through its token. Pure: the stores look up, and write down what this says.

    the token is                                            then
    of no deferred call                                     UnknownToken
    answered, with this very outcome                        its first receipt, marked
    answered, with another one                              IdConflict
    void: its call was cancelled, its session has ended     AlreadyCompleted
    open                                                    the call has its outcome, and its session the mail that tells it

Both are one transaction, made by any process: whoever runs the session learns it with the mail. An owner that would void a token
meanwhile finds the call answered, keeps nothing (`Overtaken`), and decides anew once that mail is there.
"""

from hashlib import sha256

from attrs import frozen

from actors._envelope import NORMAL, ContinuationResult, FromToolCall, Receipt
from actors._errors import AlreadyCompleted, IdConflict, VersionConflict
from actors._outcome import Outcome
from actors.agent._news import Happening, News
from actors.agent._record import Draft


class Overtaken(VersionConflict):
    """A deferred call was answered before it could be cancelled; nothing was kept."""


@frozen
class Deferred:
    """What a token stands for: a call of a session, how it ended if it did, and the seq of its answer if it was answered.

    `key` is the session's in rows. `gone`: the session was deleted.
    """

    session: str
    call: str
    tool: str = ""
    hops: int = 0
    outcome: Outcome | None = None
    answered: int | None = None
    gone: bool = False
    key: int = 0

    @property
    def where(self) -> str:
        """As errors name it."""
        return f"{self.session}/{self.call}"

    def mail(self, token: str, outcome: Outcome) -> Draft:
        """The mail that tells the answer."""
        sender = FromToolCall(self.session, self.call)
        return Draft(self.session, ContinuationResult(token, outcome), sender, mail_id(token), hops=self.hops)

    def news(self, outcome: Outcome) -> News:
        """What those hear that watch the session."""
        data = {"call": self.call, "tool": self.tool, "status": outcome.status}
        return News(self.session, self.hops, (Happening("tool_finished", self.call, data),))


def mail_id(token: str) -> str:
    """The id of the answer's mail. A model reads it, so it tells nothing of the token."""
    return f"c-{sha256(token.encode(errors='replace')).hexdigest()[:8]}"


def overtaken(call: str) -> Overtaken:
    """What an owner is told that would end this call."""
    return Overtaken(f"{call} was answered before it could be cancelled; nothing was kept")


def judged(token: str, outcome: Outcome, found: Deferred) -> Receipt | None:
    """The receipt of an answer that is there already; None if this is the first. Raises what the table says."""
    if found.answered is None and (found.gone or found.outcome is not None):
        raise AlreadyCompleted(call=found.where, found=_void(found))
    if found.answered is None:
        return None
    if found.outcome != outcome:
        raise IdConflict(
            f"{found.where} was answered before, with another outcome; the first one counts, and nothing was kept of this one",
            address=found.session,
            id=mail_id(token),
        )
    return Receipt(mail_id(token), found.answered, True, NORMAL)


def _void(found: Deferred) -> str:
    if found.gone or found.outcome is None:
        return "its session was deleted"
    return f"it is {found.outcome.status} ({found.outcome.error or 'it has its outcome'})"
