"""What a typed line means: mail to the agent, or an order to its session. Pure.

An order is a line whose first word is a slash and letters, so that a path is still mail. One that there is not goes to nobody:
a model that is told "/puase" does not pause.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Literal

from attrs import frozen

ORDERS: Mapping[str, tuple[str, str]] = {  # an order's name: what follows it, and what it does
    "pause": ("", "stop at the next step until /resume; calls go on"),
    "resume": ("", "go on after /pause"),
    "stop": ("", "end the run; the next line says what to do instead"),
    "interrupt": ("words", "mail that waits for no call, and for no answer that may be cut"),
    "cancel": ("call_1 ...", "cancel these calls; without any, list those that run"),
    "help": ("", "this"),
}
HELP = "\n".join(f"{f'/{name} {takes}':<20} {does}" for name, (takes, does) in ORDERS.items())
_ORDER = re.compile(r"/(?P<name>[A-Za-z]+)(?:\s+(?P<rest>.*))?\Z", re.DOTALL)


@frozen
class Typed:
    """A line, understood: what to do, with which words. `note` answers the person, nothing else happens."""

    what: Literal["say", "interrupt", "pause", "resume", "stop", "cancel", "note"]
    words: str = ""


def understood(line: str) -> Typed:
    """What a typed line means."""
    if line.startswith("//"):
        return Typed("say", line[1:])
    order = _ORDER.match(line)
    return Typed("say", line) if order is None else _ordered(order["name"].lower(), order["rest"] or "", line)


def _ordered(name: str, rest: str, line: str) -> Typed:
    if name not in ORDERS:
        near = get_close_matches(name, ORDERS, 1)
        hint = f"did you mean /{near[0]}?" if near else "/help lists what there is;"
        return Typed("note", f"there is no order /{name}: {hint} /{line} sends it as mail")
    if rest and not ORDERS[name][0]:
        return Typed("note", f"/{name} stands alone; type it again without {rest!r}")
    match name:
        case "interrupt" if not rest:
            return Typed("note", "/interrupt needs words, such as: /interrupt look at staging first")
        case "interrupt" | "pause" | "resume" | "stop" | "cancel":
            return Typed(name, rest)
        case _:
            return Typed("note", f"{HELP}\n{'//...':<20} mail that begins with a slash; any other line is mail too")
