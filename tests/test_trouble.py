"""What providers' errors mean, where they differ from OpenAI's (`test_openai.py`)."""

from types import SimpleNamespace
from typing import Any

import pytest

from actors.models._trouble import worded


class _Raised(Exception):
    """An error of an SDK, by what it says of itself."""

    def __init__(self, **facts: object) -> None:
        super().__init__("it went wrong")
        self.__dict__.update(facts)


def anthropic(kind: str, status: int) -> _Raised:
    """As Anthropic's SDK has it: all of the body, and in mid-stream the status that the stream began with."""
    return _Raised(status_code=status, body={"type": "error", "error": {"type": kind, "message": "no"}}, message="Error code")


MEANT = {
    "overload in mid-stream": (anthropic("overloaded_error", 200), None, True, "no"),
    "too long in mid-stream": (anthropic("invalid_request_error", 200), None, False, "no"),
    "overload": (anthropic("overloaded_error", 529), 529, True, "no"),
    "no such key": (anthropic("authentication_error", 401), 401, False, "no"),
    "google's": (
        _Raised(code=429, details={"error": {"code": 429, "message": "slowly"}}, message="slowly"),
        429,
        True,
        "slowly",
    ),
    "google's refusal": (
        _Raised(code=400, details={"error": {"message": "no part"}}, message="no part"),
        400,
        False,
        "no part",
    ),
    "ollama's": (_Raised(status_code=404, error="model 'x' not found"), 404, False, "model 'x' not found"),
    "ollama's in mid-stream": (_Raised(status_code=-1, error="out of memory"), None, True, "out of memory"),
}


@pytest.mark.parametrize(("error", "status", "retryable", "reason"), MEANT.values(), ids=MEANT)
def test_an_error_of_any_sdk_says_why_and_whether_to_try_again(
    error: _Raised, status: int | None, retryable: bool, reason: str
) -> None:
    """The one fails the run, the other is for the supervisor's backoff."""
    told = worded("x:m", error)
    assert (told.status, told.retryable, told.reason) == (status, retryable, reason)


@pytest.mark.parametrize(
    ("headers", "status", "seconds"),
    [
        ({"retry-after": "20"}, 429, 20.0),
        ({"retry-after-ms": "1500", "retry-after": "20"}, 529, 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, 429, None),
        ({"retry-after": "-3"}, 503, 0.0),
        ({}, 503, None),
        ({"retry-after": "20"}, 400, None),
    ],
)
def test_how_long_a_provider_wants_to_be_left_alone(headers: dict[str, Any], status: int, seconds: float | None) -> None:
    """Told to one request, meant for all; what would fail again is not waited for."""
    told = worded("x:m", _Raised(status_code=status, body=None, response=SimpleNamespace(headers=headers)))
    assert told.retry_after == seconds


def test_a_cause_is_told_once() -> None:
    """Some SDKs hide it, others repeat it."""
    error = _Raised(message="Connection error.")
    error.__cause__ = OSError("nobody listens")
    assert worded("x:m", error).reason == "Connection error: nobody listens"
    error = _Raised(message="nobody listens there")
    error.__cause__ = OSError("nobody listens")
    assert worded("x:m", error).reason == "nobody listens there"
