"""What went wrong at a provider, as ours: its reason, and whether trying again can help. Pure.

The SDKs tell errors alike: a status, a body, a message. They differ in how deep the body's facts lie, and in what an error in
the middle of a stream looks like, whose status was 200 long before.

| status | kind of error | again? |
|---|---|---|
| 408, 409, 425, 429, 5xx | any but a spent quota | yes |
| another | any | no |
| none, or below 400 | the server's own (overload, rate, timeout, internal), or unknown | yes |
| none, or below 400 | of the request, the key, the account | no |
"""

from collections.abc import Mapping
from typing import Any

from actors._errors import ModelError

_TRY_AGAIN = frozenset({408, 409, 425, 429})
_SPENT = "insufficient_quota"  # comes as 429, and no waiting cures it
_OURS = frozenset(
    {
        "invalid_request_error",
        "authentication_error",
        "permission_error",
        "billing_error",
        "not_found_error",
        "request_too_large",
    }
)
_WORDS_OF_A_REASON = 1000  # characters; some gateways answer with a page of HTML


def worded(model: str, error: Exception) -> ModelError:
    """The SDK's error as ours."""
    facts = _facts(error)
    code = str(facts.get("code") or getattr(error, "code", None) or "")
    status = _status(error, code)
    if status is not None:
        retryable = (status in _TRY_AGAIN or status >= 500) and code != _SPENT
    else:
        retryable = facts.get("type") not in _OURS
    told = facts.get("message") or facts.get("detail") or getattr(error, "message", None) or getattr(error, "error", None)
    reason = str(told or error).rstrip(".")
    cause = str(error.__cause__ or "") or type(error.__cause__).__name__
    if error.__cause__ is not None and cause not in reason:
        reason = f"{reason[:_WORDS_OF_A_REASON]}: {cause}"
    return ModelError(
        model=model,
        status=status,
        reason=reason[:_WORDS_OF_A_REASON],
        retryable=retryable,
        retry_after=_retry_after(error) if retryable else None,
    )


def _facts(error: Exception) -> Mapping[str, Any]:
    """What the body says: OpenAI's SDK hands on what lies under `error`, the others all of it."""
    for name in ("body", "details"):
        body = getattr(error, name, None)
        inner = body.get("error") if isinstance(body, Mapping) else None
        if isinstance(inner, Mapping):
            return inner
        if isinstance(body, Mapping):
            return body
    return {}


def _status(error: Exception, code: str) -> int | None:
    status = getattr(error, "status_code", None)
    if status is None and code.isdecimal():
        status = int(code)  # a gateway that had begun to stream when its own server failed
    return status if isinstance(status, int) and status >= 400 else None


def _retry_after(error: Exception) -> float | None:
    """How many seconds the server asked for. A date is left to the backoff: clocks differ."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers.get(name, "")) * unit)
        except (TypeError, ValueError):
            continue
    return None
