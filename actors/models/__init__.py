"""Models: what an agent asks, and the records that go to and fro."""

from ._api import Capabilities, Model, Price, Request, ToolSchema
from ._blocks import Completion, ModelEvent, Text, TextDelta, Thinking, ThinkingDelta, ToolCall, Usage
from ._gate import ProviderLimits
from ._resolve import resolve_model
from .scripted import Said, Scripted, ScriptedModel, call, calls, fail, raw_call, say, slow

__all__ = [
    "Capabilities",
    "Completion",
    "Model",
    "ModelEvent",
    "Price",
    "ProviderLimits",
    "Request",
    "Said",
    "Scripted",
    "ScriptedModel",
    "Text",
    "TextDelta",
    "Thinking",
    "ThinkingDelta",
    "ToolCall",
    "ToolSchema",
    "Usage",
    "call",
    "calls",
    "fail",
    "raw_call",
    "resolve_model",
    "say",
    "slow",
]
