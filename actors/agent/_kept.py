"""What is kept of the options a session was opened with: those that have JSON. A process that takes the session up has them.

    kept          model and models by name, instructions as a text, model_options, toolbox, limits, max_rounds, the switches
    not kept      what is code or alive: models as objects, instructions as a function, tools, compact, inbox, deps

Where something is not kept, whoever takes the session up has the class's.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from attrs import asdict

from actors._inherit import INHERIT
from actors._limits import Limits

from ._agent import SWITCHES

_AS_THEY_ARE = ("instructions", "model", "model_options", "toolbox", "max_rounds", *SWITCHES)


def kept(options: Mapping[str, Any]) -> str:
    """As JSON; blank if there is nothing to keep."""
    found = {name: value for name in _AS_THEY_ARE if name in options and (value := _plain(options[name])) is not None}
    limits = options.get("limits")
    if isinstance(limits, Limits):
        found["limits"] = {name: value for name, value in asdict(limits, recurse=False).items() if value is not INHERIT}
    return msgspec.json.encode(found).decode() if found else ""


def taken_up(text: str) -> dict[str, Any]:
    """The options in such JSON."""
    found: dict[str, Any] = msgspec.json.decode(text) if text else {}
    if "limits" in found:
        wake_on = found["limits"].get("wake_on")
        found["limits"] = Limits(**{**found["limits"], **({} if wake_on is None else {"wake_on": tuple(wake_on)})})
    return found


def _plain(value: Any) -> Any:
    """The value if it is the same again after a way through JSON; else None."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        value = list(value)
    try:
        return value if msgspec.json.decode(msgspec.json.encode(value)) == value else None
    except (TypeError, ValueError, msgspec.MsgspecError):
        return None
