# The public face of `actors`: names, parameters, types.
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from enum import Enum, StrEnum
from typing import Any, ClassVar, Concatenate, Final, Generic, Literal, Never, ParamSpec, Protocol, TypeVar, overload

from . import events as events, models as models, testing as testing
from .models import Model as Model, resolve_model as resolve_model

R = TypeVar("R")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")

class Inherit(Enum):  # "absent" is not None
    INHERIT = ...
INHERIT: Final = Inherit.INHERIT

# ------------------------------------------------------------------ mail
class Priority(StrEnum):
    NORMAL = "normal"
    INTERRUPT = "interrupt"

class FromUser:
    owner: str | None
    def __init__(self, owner: str | None = None) -> None: ...
class FromSession:
    session: str
    agent: str | None
    def __init__(self, session: str, agent: str | None = None) -> None: ...
class FromActor:
    address: str
    def __init__(self, address: str) -> None: ...
class FromToolCall:  # carries the session, else nobody can answer a call that wrote
    session: str
    call: str
    def __init__(self, session: str, call: str) -> None: ...
class FromSystem:
    source: str
    def __init__(self, source: str) -> None: ...
Sender = FromUser | FromSession | FromActor | FromToolCall | FromSystem

class Media:
    mime: str
    data: bytes
    name: str | None
    def __init__(self, mime: str, data: bytes, name: str | None = None) -> None: ...

OutcomeStatus = Literal["completed", "failed", "timed_out", "cancelled", "denied", "deferred", "not_started", "orphaned"]
class Outcome:
    status: OutcomeStatus
    value: Any  # JSON, str, Media or a list of those
    error: str | None
    started: datetime | None  # UTC, None if it never ran
    duration: float | None  # seconds
    def __init__(self, status: OutcomeStatus, value: Any = None, error: str | None = None, started: datetime | None = None,
                 duration: float | None = None) -> None: ...
    @classmethod
    def completed(cls, value: Any) -> Outcome: ...
    @classmethod
    def failed(cls, error: str) -> Outcome: ...
    @classmethod
    def denied(cls, message: str) -> Outcome: ...
    @classmethod
    def deferred(cls, reason: str) -> Outcome: ...

class UserMessage:
    text: str
    media: tuple[Media, ...]
    def __init__(self, text: str, media: Sequence[Media] = ()) -> None: ...
class AgentMessage:
    text: str
    in_reply_to: str | None
    expects_reply: bool
    def __init__(self, text: str, in_reply_to: str | None = None, expects_reply: bool = False) -> None: ...
class ToolCallFinished:
    call: str
    tool: str
    outcome: Outcome
    def __init__(self, call: str, tool: str, outcome: Outcome) -> None: ...
class ContinuationResult:
    token: str
    outcome: Outcome
    def __init__(self, token: str, outcome: Outcome) -> None: ...
class WatchedEvent:
    session: str
    kind: str
    data: Mapping[str, Any]
    def __init__(self, session: str, kind: str, data: Mapping[str, Any]) -> None: ...
class Pause:
    def __init__(self) -> None: ...
class Resume:
    def __init__(self) -> None: ...
class StopRun:
    def __init__(self) -> None: ...
class CancelCalls:
    calls: tuple[str, ...]
    def __init__(self, calls: Sequence[str]) -> None: ...
class CancelAllAttached:
    def __init__(self) -> None: ...
Action = Pause | Resume | StopRun | CancelCalls | CancelAllAttached
class Control:
    action: Action
    def __init__(self, action: Action) -> None: ...
class TimerFired:
    label: str
    text: str
    def __init__(self, label: str, text: str = "") -> None: ...
SessionBody = UserMessage | AgentMessage | ToolCallFinished | ContinuationResult | WatchedEvent | TimerFired | Control

class Envelope:
    id: str
    seq: int
    sender: Sender
    priority: Priority
    hops: int
    sent_at: datetime  # aware, UTC
    trace: str | None
    body: Any
    @property
    def asker_gone(self) -> bool: ...  # its ask timed out or was cancelled; False for a tell; never in JSON
class Receipt:
    id: str
    seq: int
    duplicate: bool
    priority: Priority                                  # the one it was accepted with
def to_json(envelope: Envelope) -> str: ...  # str
def from_json(text: str | bytes) -> Envelope: ...
def register(cls: type[T], *, tag: str | None = None) -> type[T]: ...  # an Agent's @handle types are registered already

class MailboxStatistics:
    accepted: int
    unread: int
    duplicates: int
    refused: int
    waiting: int
class Mailbox:
    address: str
    capacity: int
    def __init__(self, address: str = "mailbox", capacity: int = 256) -> None: ...
    def send_nowait(self, body: object, *, sender: Sender, id: str | None = None, priority: Priority = ..., hops: int = 0) -> Receipt: ...
    def unread(self, cursor: int) -> Sequence[Envelope]: ...
    async def receive(self, cursor: int, match: Callable[[Envelope], bool] | None = None) -> Sequence[Envelope]: ...
    def advance(self, cursor: int, control: int | None = None) -> None: ...
    def trim(self, cursor: int) -> None: ...
    def statistics(self) -> MailboxStatistics: ...


# ------------------------------------------------------------------ limits (data; enforced by supervision)
Scope = Literal["own", "children", "subtree", "siblings", "all"]
WakeKind = Literal["user", "tool", "parent", "child", "peer"]
class Limits:
    """Every field inherits unless set; what sessions get where nobody above set one: 256, 16, 300 s, subtree, children, all but peer, 4, 16, 32, 64, 8, none."""
    def __init__(self, *, max_unread: int | Inherit = INHERIT, max_hops: int | Inherit = INHERIT, max_wait: float | Inherit = INHERIT,
                 mail_scope: Scope | Inherit = INHERIT, interrupt_scope: Scope | Inherit = INHERIT,
                 wake_on: Sequence[WakeKind] | Inherit = INHERIT, max_calls: int | Inherit = INHERIT,
                 max_detached: int | Inherit = INHERIT, max_watches: int | Inherit = INHERIT, max_children: int | Inherit = INHERIT,
                 max_depth: int | Inherit = INHERIT, max_requests: int | None | Inherit = INHERIT,
                 max_tokens: int | None | Inherit = INHERIT, max_cost: float | None | Inherit = INHERIT) -> None: ...
    def narrow(self, other: Limits) -> Limits: ...

# ------------------------------------------------------------------ actors
class Ask(Generic[R]):  # optional base of a message; types the reply
    """`class Add(Ask[int])`: `await ref.ask(Add(2))` is an int for mypy. No behaviour."""
def handle(fn: F) -> F: ...  # sync or async methods

class Exit:
    @property
    def normal(self) -> bool: ...  # True for Finished and Stopped
class Finished(Exit):
    value: Any
class Stopped(Exit):
    reason: str
class Failed(Exit):
    error: BaseException
class Killed(Exit):
    reason: str
class Ended:  # what `watch` delivers; an Exit alone does not say whose
    address: str
    exit: Exit
    restarting: bool

class Status(StrEnum):
    STARTING = ...
    READY = ...
    RUNNING = ...
    WAITING = ...
    IDLE = ...
    PAUSED = ...
    RESTARTING = ...
    STOPPING = ...
    STOPPED = ...
    FAILED = ...

class ActorRef:
    @property
    def address(self) -> str: ...
    @property
    def status(self) -> Status: ...
    def send_nowait(self, body: object, *, id: str | None = None, interrupt: bool = False) -> Receipt: ...
    async def send(self, body: object, *, id: str | None = None, interrupt: bool = False, wait: float = 0.0) -> Receipt: ...
    def send_from_thread(self, body: object, *, id: str | None = None, interrupt: bool = False, wait: float = 0.0) -> Receipt: ...  # blocks the thread
    @overload
    async def ask(self, body: Ask[R], *, timeout: float | None = 5.0) -> R: ...
    @overload
    async def ask(self, body: object, *, timeout: float | None = 5.0) -> Any: ...
    async def interrupt(self, body: object, *, id: str | None = None) -> Receipt: ...
    async def stop(self, mode: Literal["now", "drain", "kill"] = "now") -> Exit: ...
    async def wait(self) -> Exit: ...

class Timer:
    def cancel(self) -> None: ...
class Actor:
    @property
    def ref(self) -> ActorRef: ...
    @property
    def mail(self) -> Envelope: ...
    async def on_start(self) -> None: ...
    async def on_stop(self, exit: Exit) -> None: ...
    async def spawn(self, factory: Callable[..., Actor] | Callable[..., Awaitable[object]], *args: Any, name: str | None = None,
                    restart: Literal["permanent", "transient", "temporary"] = "transient", shutdown: float = 5.0,
                    init_timeout: float = 10.0) -> ActorRef: ...
    def find(self, address: str) -> ActorRef: ...  # without it siblings of a tree cannot meet
    def watch(self, ref: ActorRef) -> None: ...
    def unwatch(self, ref: ActorRef) -> None: ...
    async def receive(self, match: Callable[[Envelope], bool] | type | None = None, timeout: float | None = None) -> Envelope | None: ...
    def reply(self, value: object, *, to: Envelope) -> None: ...
    def finish(self, value: object = None) -> None: ...  # else Finished is unreachable for an actor
    def send_after(self, seconds: float, body: object) -> Timer: ...  # OTP and every actor user expects it
class Reject(Exception):  # raise in a handler: the asker gets `Rejected`, the actor lives
    ...
NO_REPLY: Final = ...

# ------------------------------------------------------------------ agents
class Tool:
    name: str
    description: str
    schema: Mapping[str, Any]
    def __init__(self, fn: Callable[..., Any], *, name: str | None = None, description: str | None = None,
                 schema: Mapping[str, Any] | None = None, attach: float | None | Inherit = INHERIT, timeout: float | None = None,
                 idempotent: bool = False, hidden: bool = False, isolation: Literal["task", "process", "asyncio"] = "task") -> None: ...
    def bind(self, **arguments: Any) -> Tool: ...
class MCPServer:
    def __init__(self, command: Sequence[str] | None = None, *, url: str | None = None, server: Any = None, name: str | None = None) -> None: ...
class ToolContext:
    call: str
    tool: str
    session: str
    owner: str | None
    idempotency_key: str
    def progress(self, payload: Any) -> None: ...  # sync, from task or thread
@overload
def tool(fn: F, /) -> F: ...
@overload
def tool(*, name: str | None = None, attach: float | None | Inherit = INHERIT, timeout: float | None = None, idempotent: bool = False,
         hidden: bool = False, isolation: Literal["task", "process", "asyncio"] = "task") -> Callable[[F], F]: ...

class Store(Protocol): ...

class Agent(Actor):
    instructions: ClassVar[str | Callable[..., str] | None]
    model: ClassVar[str | Model | Sequence[str | Model]]
    tools: ClassVar[Sequence[Callable[..., Any] | Tool | MCPServer]]
    toolbox: ClassVar[Sequence[str]]  # which system tools
    helpers: ClassVar[Mapping[str, type[Agent] | Helper]]
    policy: ClassVar[ToolPolicy | None]
    limits: ClassVar[Limits | None]
    max_rounds: ClassVar[int]
    interrupt_completions: ClassVar[bool]
    pause_cancels_calls: ClassVar[bool]
    resume_on_any_mail: ClassVar[bool]
    mail_in_tool_result: ClassVar[bool]
    inbox: ClassVar[Inbox | None]
    deps: Any  # open(..., deps=x) / run(..., deps=x); never stored
    model_options: ClassVar[Mapping[str, Any]]  # temperature, …

class Helper:
    def __init__(self, agent: type[Agent], *, tools: Sequence[str] | Inherit = INHERIT, instructions: str | Inherit = INHERIT,
                 limits: Limits | None = None, inbox: Inbox | None | Inherit = INHERIT) -> None: ...

class Inbox(Protocol):
    def reader(self, agent: str, /) -> Callable[[], Sequence[str]]: ...

# ------------------------------------------------------------------ policy
class When:
    def __init__(self, pointer: str, op: Literal["==", "!=", "<", "<=", ">", ">=", "in", "matches"], value: Any) -> None: ...
class Attached:
    def __init__(self, seconds: float | None = None) -> None: ...
class Rule:
    def __init__(self, match: str, disposition: Attached, *, when: Sequence[When] = ()) -> None: ...
class CallContext:
    session: str
    owner: str | None
    call: str
    attempt: int
Next = Callable[[CallContext, models.ToolCall], Awaitable[Outcome]]
class Layer(Protocol):
    async def __call__(self, context: CallContext, call: models.ToolCall, next: Next, /) -> Outcome: ...
class Timeout:
    def __init__(self, seconds: float) -> None: ...
class Retries:
    def __init__(self, count: int, backoff: float = 0.5, *, jitter: float = 0.1, on: Sequence[OutcomeStatus] = ("failed", "timed_out")) -> None: ...
class Cache:
    def __init__(self, ttl: float, *, scope: Literal["session", "system"] = "session") -> None: ...
class Truncate:
    def __init__(self, max_bytes: int) -> None: ...
class Label:
    def __init__(self, text: str) -> None: ...
class Approve:
    def __init__(self, reason: str = "", *, expires: float | None = None) -> None: ...
class Continue:
    def __init__(self, arguments: Mapping[str, Any] | None = None, result: Any = None) -> None: ...
class Deny:
    def __init__(self, message: str) -> None: ...
class Defer:
    def __init__(self, reason: str, expires: float | None = None) -> None: ...
class Answer:
    def __init__(self, result: Any) -> None: ...
class Annotate:
    def __init__(self, text: str) -> None: ...
Decision = Continue | Deny | Defer | Answer | Annotate
class Command:
    def __init__(self, command: str | Sequence[str], timeout: float = 10, *, max_output: int = 1 << 20, env: Sequence[str] = ()) -> None: ...
class ToolHook:
    def __init__(self, name: str) -> None: ...
class Before:
    def __init__(self, hook: Command | ToolHook | Callable[[CallContext, models.ToolCall], Awaitable[Decision]]) -> None: ...
class After:
    def __init__(self, hook: Command | ToolHook | Callable[[CallContext, models.ToolCall, Outcome], Awaitable[Decision]]) -> None: ...
Wrapper = Timeout | Retries | Cache | Truncate | Label | Approve | Before | After
class Wrap:
    def __init__(self, match: str, *wrappers: Wrapper | Layer, when: Sequence[When] = ()) -> None: ...
class ToolPolicy:
    def __init__(self, default: Attached = ..., rules: Sequence[Rule] = (), wrappers: Sequence[Wrap] = ()) -> None: ...
    @classmethod
    def from_json(cls, text: str) -> ToolPolicy: ...
    @classmethod
    def from_toml(cls, text: str) -> ToolPolicy: ...

# ------------------------------------------------------------------ transcript and record
class UserItem:
    mail: tuple[Envelope, ...]
    nudge: Literal["continuation", "wrap_up"] | None
    already_read: tuple[str, ...]
    waiting: int
    @property
    def text(self) -> str: ...                          # what the model reads, computed
    @property
    def media(self) -> tuple[Media, ...]: ...
class AssistantItem:
    blocks: tuple[models.Text | models.Thinking | models.ToolCall, ...]
    model: str
    @property
    def text(self) -> str: ...
    @property
    def calls(self) -> tuple[models.ToolCall, ...]: ...
class Placeholder:
    status: Literal["running", "deferred"]
    reason: str
    session: str | None
class Result:
    call: str
    tool: str
    outcome: Outcome | Placeholder
    @property
    def text(self) -> str: ...
class ResultsItem:
    results: tuple[Result, ...]
Item = UserItem | AssistantItem | ResultsItem
class CallRecord:
    id: str
    tool: str
    arguments: Mapping[str, Any]
    status: Literal["issued", "started"] | OutcomeStatus  # the ledger's; queued, running, detached are the toolbox's view
    outcome: Outcome | None
    token: str | None
    idempotency_key: str
class SessionRecord:
    id: str
    agent: str
    parent: str | None
    owner: str | None
    status: Status
    version: int
    mail_cursor: int
    control_cursor: int
    items: tuple[Item, ...]
    calls: tuple[CallRecord, ...]

# ------------------------------------------------------------------ errors
class ActorsError(Exception): ...
class SendRefused(ActorsError): ...
class MailboxFull(SendRefused): ...
class IdConflict(SendRefused): ...
class TooManyHops(SendRefused): ...
class NotPermitted(SendRefused): ...
class UnknownRecipient(SendRefused): ...
class RecipientStopped(SendRefused):
    exit: Exit
class AskFailed(ActorsError): ...
class AskTimeout(AskFailed, TimeoutError): ...
class AskCycle(AskFailed):
    path: tuple[str, ...]
class ActorCrashed(AskFailed):
    address: str
    error: BaseException
class ActorStopped(AskFailed):
    exit: Exit
class Unhandled(AskFailed): ...
class Rejected(AskFailed): ...
class RunFailed(AskFailed):  # what ask / wait_answer / run raise when a run ends without an answer
    status: Status
    reason: str
class StartFailed(ActorsError):
    path: str
    error: BaseException
class RestartIntensityExceeded(ActorsError): ...
class Fenced(ActorsError): ...
class StoreError(ActorsError): ...
class VersionConflict(StoreError): ...
class LeaseLost(StoreError): ...
class AlreadyCompleted(ActorsError): ...
class LimitExceeded(ActorsError): ...
class ConfigError(ActorsError, ValueError): ...
class CodecError(ActorsError, ValueError): ...
class ModelError(ActorsError): ...
class ToolError(ActorsError): ...
