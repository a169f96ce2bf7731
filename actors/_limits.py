"""Limits: the tree's rules as data. `supervision` inherits, narrows and enforces them, at one place."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

from attrs import asdict, fields, frozen

from ._check import check_choice, check_number, check_whole, require
from ._errors import ConfigError
from ._inherit import INHERIT, Inherit

Scope = Literal["own", "children", "subtree", "siblings", "all"]
WakeKind = Literal["user", "tool", "parent", "child", "peer"]
BREADTH: dict[str, int] = {"own": 0, "children": 1, "subtree": 2, "siblings": 3, "all": 4}
LEAST = {  # with less, nothing would ever get in; 0 of the others forbids what they count
    "max_unread": 1, "max_calls": 1, "max_hops": 0, "max_detached": 0, "max_watches": 0, "max_children": 0, "max_depth": 0,
    "max_requests": 0, "max_tokens": 0,
}  # fmt: skip
UNBOUNDED = ("max_requests", "max_tokens", "max_cost")  # None is no bound


@frozen(kw_only=True)
class Limits:
    """What actors and sessions below may do. Every field inherits unless it is set; a set one may only be narrower than one above.

    Args:
        max_unread: Unread envelopes a mailbox holds.
        max_hops: Agents a message may come through since a person last spoke.
        max_wait: Seconds any wait may take.
        mail_scope: To whom a model may write.
        interrupt_scope: Whom a model may interrupt.
        wake_on: Kinds of mail that wake an idle session.
        max_calls: Tool calls attached at once.
        max_detached: Detached tool calls at once.
        max_watches: Watches of a session.
        max_children: Live children of a session.
        max_depth: Generations of sessions below a person's.
        max_requests: Model requests (None: no bound).
        max_tokens: Tokens, in and out (None: no bound).
        max_cost: Cost, in the currency of the prices given (None: no bound).
    """

    max_unread: int | Inherit = INHERIT
    max_hops: int | Inherit = INHERIT
    max_wait: float | Inherit = INHERIT
    mail_scope: Scope | Inherit = INHERIT
    interrupt_scope: Scope | Inherit = INHERIT
    wake_on: Sequence[WakeKind] | Inherit = INHERIT
    max_calls: int | Inherit = INHERIT
    max_detached: int | Inherit = INHERIT
    max_watches: int | Inherit = INHERIT
    max_children: int | Inherit = INHERIT
    max_depth: int | Inherit = INHERIT
    max_requests: int | Inherit | None = INHERIT
    max_tokens: int | Inherit | None = INHERIT
    max_cost: float | Inherit | None = INHERIT

    def __attrs_post_init__(self) -> None:
        for name in FIELDS:
            value = getattr(self, name)
            if value is not INHERIT and not (value is None and name in UNBOUNDED):
                _check(name, value)

    def narrow(self, other: "Limits") -> "Limits":
        """These limits with `other`'s set ones below them.

        Raises:
            ConfigError: A set field of `other` is wider than the one set here; the text names it and both values.
        """
        merged = asdict(self, recurse=False)
        for name, value in asdict(other, recurse=False).items():
            if value is INHERIT:
                continue
            if _wider(name, merged[name], value):
                raise ConfigError(
                    f"{name}={value!r} is wider than {name}={merged[name]!r} above it; a limit below may only be narrower: "
                    "write that or less, or leave it out"
                )
            merged[name] = value
        return Limits(**merged)

    def over(self, defaults: "Limits") -> "Limits":
        """These limits, with `defaults` where nothing is set."""
        mine = asdict(self, recurse=False)
        return Limits(**{name: getattr(defaults, name) if value is INHERIT else value for name, value in mine.items()})


def _check(name: str, value: Any) -> None:
    if name in LEAST:
        check_whole("Limits", name, value, LEAST[name])
    elif name == "wake_on":
        kinds = get_args(WakeKind)
        holds = isinstance(value, Sequence) and not isinstance(value, str) and all(kind in kinds for kind in value)
        require(holds, "Limits", f"wake_on={value!r}", f"a tuple of {', '.join(kinds)}")
    elif name.endswith("_scope"):
        check_choice("Limits", name, value, tuple(BREADTH))
    elif name == "max_wait":
        check_number("Limits", name, value, 0, above=True, unit="seconds")
    else:
        check_number("Limits", name, value, 0)


def _wider(name: str, above: Any, below: Any) -> bool:
    if above is INHERIT:
        return False
    if name.endswith("_scope"):
        return BREADTH[below] > BREADTH[above]
    if name == "wake_on":
        return not set(below) <= set(above)
    if above is None:
        return False
    return below is None or below > above


FIELDS = tuple(each.name for each in fields(Limits))
MAX_WAIT = 300.0
SESSION_DEFAULTS = Limits(
    max_unread=256, max_hops=16, max_wait=MAX_WAIT, mail_scope="subtree", interrupt_scope="children",
    wake_on=("user", "tool", "parent", "child"), max_calls=4, max_detached=16, max_watches=32, max_children=64, max_depth=8,
    max_requests=None, max_tokens=None, max_cost=None,
)  # fmt: skip
