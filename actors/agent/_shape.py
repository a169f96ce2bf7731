"""Answers of a given shape: what the model is told of it, and its words read as that type.

The schema is sent with the question, in words: that works with every model, also beside tools. An answer is read strictly, as a
tool's arguments are: `"false"` is no bool, no field is dropped. A fence around it, or words before and behind, do no harm.
"""

import re
from typing import Any, Generic, TypeVar

import msgspec

from actors._envelope import UserMessage
from actors._problems import Problem, attempt
from actors._strict import strict_converter
from actors._types import name_of
from actors.tools._schema import REF, Describer, Schema

T = TypeVar("T")
_CONVERTER = strict_converter()
_FENCED = re.compile(r"```[a-z]*\s*\n(.*?)```", re.DOTALL | re.IGNORECASE)
_ASK = "Answer with JSON only, no other words and no code fence. It has to fit this JSON Schema:\n{}"
_REPAIR = "That answer does not fit the JSON Schema: {}. Answer again, with the whole JSON and nothing else."


class MisshapenError(ValueError):
    """Words that do not fit; the text says what is wrong where."""


class Shape(Generic[T]):
    """A type that an answer has to have. Raises `ConfigError` if a model cannot be told of it."""

    def __init__(self, tp: type[T]) -> None:
        self._type = tp
        self.name = name_of(tp)
        self.schema = _schema(tp, self.name)
        self._hook = _CONVERTER.get_structure_hook(tp)

    def asked(self, body: str | UserMessage) -> UserMessage:
        """The question, with the shape of its answer."""
        words = _ASK.format(msgspec.json.encode(self.schema).decode())
        if isinstance(body, UserMessage):
            return UserMessage(f"{body.text}\n\n{words}", body.media)
        return UserMessage(f"{body}\n\n{words}")

    def repair(self, wrong: MisshapenError) -> UserMessage:
        """What to say to a model whose answer did not fit."""
        return UserMessage(_REPAIR.format(wrong))

    def read(self, words: str) -> T:
        """The answer as a value of the type. Raises `MisshapenError`."""
        found: list[Problem] = []
        value: T = attempt(self._hook, _json(words), self._type, None, found)
        if found:
            raise MisshapenError("; ".join(each.sentence for each in found))
        return value


def _schema(tp: Any, name: str) -> Schema:
    describer = Describer(f"ask(schema={name})")
    schema = describer.schema(tp, "answer")
    defs = dict(describer.defs)
    own = schema.get("$ref", "").removeprefix(REF)
    if own in defs and not msgspec.json.encode(defs).decode().count(f'"{REF}{own}"'):
        schema = defs.pop(own)  # nothing else refers to it
    return {**schema, "$defs": defs} if defs else schema


def _json(words: str) -> Any:
    """The JSON in some words: all of them, what stands in a fence, or from the first bracket to the last."""
    fenced = _FENCED.search(words)
    starts = [place for place in map(words.find, "{[") if place >= 0]
    ends = max(words.rfind("}"), words.rfind("]"))
    tries = [words, fenced.group(1) if fenced else "", words[min(starts) : ends + 1] if starts else ""]
    for each in tries:
        try:
            return msgspec.json.decode(each)
        except (msgspec.DecodeError, UnicodeError):
            continue
    raise MisshapenError("it is no JSON")
