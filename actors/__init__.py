"""What happens: mail, actors, agents and their tools. `supervision` says what happens next."""

from . import events, models, testing
from ._actor import Actor
from ._codec import from_json, register, to_json
from ._dispatch import handle
from ._envelope import (
    Action,
    AgentMessage,
    CancelAllAttached,
    CancelCalls,
    ContinuationResult,
    Control,
    Envelope,
    FromActor,
    FromSession,
    FromSystem,
    FromToolCall,
    FromUser,
    Pause,
    Priority,
    Receipt,
    Resume,
    Sender,
    SessionBody,
    StopRun,
    TimerFired,
    ToolCallFinished,
    UserMessage,
    WatchedEvent,
)
from ._errors import (
    ActorCrashed,
    ActorsError,
    ActorStopped,
    AlreadyCompleted,
    AskCycle,
    AskFailed,
    AskRefused,
    AskTimeout,
    BadArguments,
    CodecError,
    ConfigError,
    Fenced,
    IdConflict,
    LeaseLost,
    LimitExceeded,
    MailboxFull,
    ModelError,
    ModelUnusable,
    NotPermitted,
    RecipientStopped,
    Rejected,
    RestartIntensityExceeded,
    RunFailed,
    SendRefused,
    StartFailed,
    StoreError,
    ToolError,
    TooManyHops,
    TranscriptInvalid,
    Unhandled,
    UnknownRecipient,
    UnknownToken,
    VersionConflict,
)
from ._exit import Ended, Exit, Failed, Finished, Killed, Status, Stopped
from ._inherit import INHERIT, Inherit
from ._life import Timer
from ._limits import Limits, Scope, WakeKind
from ._mailbox import Mailbox, MailboxStatistics
from ._outcome import Media, Outcome, OutcomeStatus
from ._ref import ActorRef, Ask
from ._reply import NO_REPLY, Reject
from .agent._agent import Agent
from .agent._inbox import Inbox
from .agent._record import CallRecord, SessionRecord
from .models._api import Model
from .models._items import AssistantItem, Item, Placeholder, Result, ResultsItem, UserItem
from .models._resolve import resolve_model
from .store._api import Store
from .tools._context import ToolContext
from .tools._mcp import MCPServer
from .tools._tool import Tool, tool

__all__ = [
    "INHERIT", "NO_REPLY", "Action", "Actor", "ActorCrashed", "ActorRef", "ActorStopped", "ActorsError", "Agent", "AgentMessage",
    "AlreadyCompleted", "Ask", "AskCycle", "AskFailed", "AskRefused", "AskTimeout", "AssistantItem", "BadArguments", "CallRecord", "CancelAllAttached", "CancelCalls",
    "CodecError", "ConfigError", "ContinuationResult", "Control", "Ended", "Envelope", "Exit", "Failed", "Fenced", "Finished", "FromActor",
    "FromSession", "FromSystem", "FromToolCall", "FromUser", "IdConflict", "Inbox", "Inherit", "Item", "Killed", "LeaseLost", "LimitExceeded",
    "Limits", "MCPServer", "Mailbox", "MailboxFull", "MailboxStatistics", "Media", "Model", "ModelError", "ModelUnusable", "NotPermitted", "Outcome", "OutcomeStatus",
    "Pause", "Placeholder", "Priority", "Receipt", "RecipientStopped", "Reject", "Rejected", "RestartIntensityExceeded", "Result",
    "ResultsItem", "Resume", "RunFailed", "Scope", "SendRefused", "Sender", "SessionBody", "SessionRecord", "StartFailed", "Status",
    "StopRun", "Stopped", "Store", "StoreError", "Timer", "TimerFired", "TooManyHops", "Tool", "ToolCallFinished", "ToolContext",
    "ToolError", "TranscriptInvalid", "Unhandled", "UnknownRecipient", "UnknownToken", "UserItem", "UserMessage", "VersionConflict", "WakeKind", "WatchedEvent", "events",
    "from_json", "handle", "models", "register", "resolve_model", "testing", "to_json", "tool",
]  # fmt: skip
