"""What requests may cost, looked at before each of them. Pure.

    limit           refuses the next request once
    max_requests    so many were made
    max_tokens      so many tokens went in and out; the request that crosses the bound is the last
    max_cost        so much was paid, by the prices that the user gave

A completion that was cut says nothing of its usage: it counts as one request, with an estimate of its tokens.
"""

from actors._inherit import Inherit
from actors._limits import Limits
from actors.models._blocks import Usage

CHARACTERS = 4  # to a token, roughly, in every tokenizer there is


def refusal(limits: Limits, spent: Usage, whose: str) -> str | None:
    """Why no further request may be made; None if one may. `whose`: `this run`, or the address whose subtree it is."""
    used = {"max_requests": spent.requests, "max_tokens": spent.tokens, "max_cost": spent.cost or 0.0}
    for name, value in used.items():
        most = getattr(limits, name)
        if most is not None and not isinstance(most, Inherit) and value >= most:
            return f"{name}={most:g} is used up: {whose} has had {value:g}"
    return None


def estimated(last: Usage, streamed: int) -> Usage:
    """What a request cost of whose answer only so many characters came; `last`: the one before it in this session."""
    return Usage(1, last.tokens, streamed // CHARACTERS, estimated=True)
