"""Every error of this package, split by who must act: the sender, the asker, the author of an agent, the host.

Facts are fields; the sentence is made in `__str__`: what was tried, what was found, what to do.
"""

from typing import Any

from ._exit import Exit, Status


class ActorsError(Exception):
    """Base of every error this project raises on purpose."""

    def __init__(self, message: str = "", /, **facts: Any) -> None:
        super().__init__(message)
        self.__dict__.update(facts)

    def __str__(self) -> str:
        return str(self.args[0]) if self.args and self.args[0] else type(self).__name__

    def __repr__(self) -> str:
        facts = [repr(self.args[0])] if self.args and self.args[0] else []
        facts += [f"{name}={value!r}" for name, value in vars(self).items() if not name.startswith("_")]
        return f"{type(self).__name__}({', '.join(facts)})"


# ------------------------------------------------------------------ a send that was refused: nothing was kept
class SendRefused(ActorsError):
    """Base of the refusals of a send. Nothing was kept; the recipient knows nothing of it."""


class MailboxFull(SendRefused):
    """The recipient has as much unread mail as it may have."""

    address: str
    unread: int
    capacity: int

    def __str__(self) -> str:
        return (
            f"{self.address} has {self.unread} unread messages of at most {self.capacity}; "
            "nothing was kept: wait for room with send(..., wait=seconds), or send less"
        )


class IdConflict(SendRefused):
    """The sender used this id before, for another body."""

    address: str
    id: str

    def __str__(self) -> str:
        if self.args and self.args[0]:
            return str(self.args[0])
        return (
            f"id {self.id!r} was already accepted by {self.address} from this sender with another body; "
            "an id names one message: resend the same body, or choose a new id"
        )


class TooManyHops(SendRefused):
    """The message would have gone from agent to agent more often than the tree allows."""

    address: str
    hops: int
    max_hops: int

    def __str__(self) -> str:
        return (
            f"a message to {self.address} would be hop {self.hops} of at most {self.max_hops} since a person last spoke; "
            "stop writing to other agents and report to the person instead"
        )


class NotPermitted(SendRefused):
    """The sender may not write to this recipient (DESIGN: scopes)."""


class UnknownRecipient(SendRefused):
    """No actor has this address, and none had."""

    address: str
    near: tuple[str, ...]

    def __str__(self) -> str:
        hint = f"; did you mean {', '.join(self.near)}?" if self.near else "; spawn or open it first"
        return f"nobody has the address {self.address!r}{hint}"


class RecipientStopped(SendRefused):
    """The recipient ended for good."""

    address: str
    exit: Exit

    def __str__(self) -> str:
        return f"{self.address} ended for good ({self.exit!r}) and accepts no mail"


# ------------------------------------------------------------------ an ask that got no answer
class AskFailed(ActorsError):
    """Base of the reasons for which an ask gets no answer."""


class AskTimeout(AskFailed, TimeoutError):
    """No answer in time. The message was accepted and may still be handled; a late answer is dropped and counted."""

    address: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.address} did not answer within {self.seconds:g} s; it may still handle the message"


class AskCycle(AskFailed):
    """The wait would have closed a cycle of actors that wait for each other."""

    path: tuple[str, ...]

    def __str__(self) -> str:
        return f"this ask would wait for itself: {' -> '.join(self.path)}; send instead, or answer first"


class ActorCrashed(AskFailed):
    """The actor raised while it handled the message, or a spawned child failed for good. `error` is what it raised."""

    address: str
    error: BaseException

    def __str__(self) -> str:
        told = " <- ".join(f"{type(error).__name__}: {error}" for error in chain(self.error))
        return f"{self.address} crashed: {told}"


class ActorStopped(AskFailed):
    """The actor stopped, or is stopping, before it handled the message."""

    address: str
    exit: Exit

    def __str__(self) -> str:
        return f"{self.address} ended ({self.exit!r}) before it answered"


class AskRefused(ActorStopped, RecipientStopped):
    """An ask was refused because the actor has ended or is stopping: nothing was kept, and no answer will come."""

    def __str__(self) -> str:
        return f"{self.address} ended for good, or is stopping ({self.exit!r}), and takes no ask"


class Unhandled(AskFailed):
    """The actor has no handler for this type of message. It lives; the message is a dead letter."""

    address: str
    body: str
    handles: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.address} has no handler for {self.body}; it handles {', '.join(self.handles) or 'nothing'}"


class Rejected(AskFailed):
    """The actor answered with `raise Reject(...)`. It lives."""


class RunFailed(AskFailed):
    """A session's run ended without an answer."""

    status: Status
    reason: str

    def __str__(self) -> str:
        return f"the run ended without an answer ({self.status}): {self.reason}"


# ------------------------------------------------------------------ a life that did not begin, or may not go on
class StartFailed(ActorsError):
    """An actor's first start failed. What had been started with it was stopped again, in reverse."""

    path: str
    error: BaseException

    def __str__(self) -> str:
        return f"{self.path} did not start: {type(self.error).__name__}: {self.error}"


class RestartIntensityExceeded(ActorsError):
    """More restarts than allowed within the window: the supervisor gives up and fails in its turn."""

    address: str
    child: str
    restarts: int
    within: float
    error: BaseException | None

    def __str__(self) -> str:
        last = f"; last: {self.child}: {type(self.error).__name__}: {self.error}" if self.error is not None else ""
        span = "in a row" if self.within == float("inf") else f"within {self.within:g} s"
        return f"{self.address} gave up after {self.restarts} restarts {span}{last}"


class Fenced(ActorsError):
    """A dead life tried to act: its generation was revoked, so nothing it sends, answers or commits counts."""

    address: str

    def __str__(self) -> str:
        return f"this life of {self.address} has ended; what it still sends, answers or commits is refused"


# ------------------------------------------------------------------ stores
class StoreError(ActorsError):
    """A store could not do what was asked; nothing was half-kept."""


class VersionConflict(StoreError):
    """Another commit of this session came first."""


class LeaseLost(StoreError):
    """Another process owns this session now."""


# ------------------------------------------------------------------ what an author or a host got wrong
class AlreadyCompleted(ActorsError):
    """A deferred call has ended without this answer: it was cancelled, or its session has ended. Nothing was kept."""

    call: str
    found: str

    def __str__(self) -> str:
        return f"{self.call} cannot be answered any more: {self.found}; nothing was kept, and its token is void"


class UnknownToken(ActorsError):
    """No deferred call of this store has this token."""

    token: str

    def __str__(self) -> str:
        told = (
            f"{self.token[:4]}... ({len(self.token)} characters)" if len(self.token) > 8 else repr(self.token)
        )  # it may be a secret
        return (
            f"no call that was deferred has the token {told}; complete it in a system on the store of its session, with the token as "
            "the tool had it, and, if the tool has not returned yet, again in a moment"
        )


class LimitExceeded(ActorsError):
    """A limit on requests, tokens, cost, children or depth is spent."""


class ConfigError(ActorsError, ValueError):
    """An agent, a tree or an option is written wrongly. The text says what was found and what to write."""


class CodecError(ActorsError, ValueError):
    """JSON that is not ours, or a value that has no JSON. The text names the path or the type."""


class ModelError(ActorsError):
    """A model could not answer: refused, unreachable, cut off, out of script.

    `retryable`: the same request may succeed later (overload, a lost connection); a refusal of the request itself is not.
    `status` is the provider's HTTP status, if there was one; `reason` is in the provider's words; `retry_after` is how many
    seconds it asked to be left alone.
    """

    model: str = "the model"
    status: int | None = None
    reason: str = "no reason given"
    retryable: bool = False
    retry_after: float | None = None

    def __str__(self) -> str:
        if self.args and self.args[0]:
            return str(self.args[0])
        status = f" (HTTP {self.status})" if self.status is not None else ""
        todo = "the same request may succeed later" if self.retryable else "the same request would fail again"
        return f"{self.model} gave no answer{status}: {self.reason}; {todo}"


class ModelUnusable(ModelError, ConfigError):
    """A model that cannot be asked as things stand: no key, no SDK, an option that is not its own. The text says what to do."""


class TranscriptInvalid(ModelError):
    """A transcript that no provider would take: `index` is the item, `rule` what it breaks, `found` what stands there."""

    index: int
    rule: str
    found: str

    def __str__(self) -> str:
        return f"item {self.index} of the transcript is {self.found}, but {self.rule}; nothing was sent to the model"


class ToolError(ActorsError):
    """Raise it in a tool to tell the model something: its text is the failed outcome, without a type name."""


class BadArguments(ToolError):
    """A model called a tool with arguments that do not fit. The text tells it every problem, each with its path."""

    tool: str


def sentence(error: BaseException) -> str:
    """An error in one sentence: our own are worded, others need their type's name."""
    return str(error) if isinstance(error, ActorsError) else f"{type(error).__name__}: {error}"


def chain(error: BaseException) -> list[BaseException]:
    """The error and its causes, outermost first; what was suppressed with `from None` is left out."""
    told: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and all(current is not each for each in told):
        told.append(current)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return told


def leaves(error: BaseException) -> list[BaseException]:
    """The exceptions a group is made of, in order; the error itself if it is none."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for part in error.exceptions for leaf in leaves(part)]
    return [error]
