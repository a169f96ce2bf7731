"""Random mail: every sender, every body, and JSON values with media and with what imitates them."""

from datetime import UTC, datetime
from typing import Any, get_args

from hypothesis import strategies as st

from actors._envelope import (
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
    Resume,
    StopRun,
    TimerFired,
    ToolCallFinished,
    UserMessage,
    WatchedEvent,
)
from actors._outcome import Media, Outcome, OutcomeStatus

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
maybe_texts = st.none() | texts
times = st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
integers = st.integers(-(2**63), 2**64 - 1)
floats = st.floats(allow_nan=False, allow_infinity=False)
keys = texts | st.sampled_from(["type", "$media", "$$media", "$$$media", "mime", "data"])
media = st.builds(Media, texts, st.binary(max_size=12), maybe_texts)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | integers | floats | texts | media,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
outcomes = st.builds(
    Outcome,
    st.sampled_from(get_args(OutcomeStatus)),
    values,
    maybe_texts,
    st.none() | times,
    st.none() | st.floats(0, 1e9),
)
senders = st.one_of(
    st.builds(FromUser, maybe_texts),
    st.builds(FromSession, texts, maybe_texts),
    st.builds(FromActor, texts),
    st.builds(FromToolCall, texts, texts),
    st.builds(FromSystem, texts),
)
actions: st.SearchStrategy[Action] = st.one_of(
    st.builds(Pause),
    st.builds(Resume),
    st.builds(StopRun, run=st.none() | integers),
    st.builds(CancelCalls, st.lists(texts, max_size=3)),
    st.builds(CancelAllAttached, calls=st.none() | st.lists(texts, max_size=3).map(tuple)),
)
bodies = st.one_of(
    st.builds(UserMessage, texts, st.lists(media, max_size=2)),
    st.builds(AgentMessage, texts, maybe_texts, st.booleans()),
    st.builds(ToolCallFinished, texts, texts, outcomes),
    st.builds(ContinuationResult, texts, outcomes),
    st.builds(WatchedEvent, texts, texts, st.dictionaries(keys, values, max_size=3)),
    st.builds(TimerFired, texts, texts),
    st.builds(Control, actions),
)
envelopes = st.builds(
    Envelope,
    key=st.integers(0, 10**12) | st.from_regex(r"[A-Za-z0-9._:-]{1,64}", fullmatch=True),
    seq=st.integers(0, 2**63),
    sender=senders,
    priority=st.sampled_from(Priority),
    hops=st.integers(0, 100),
    sent=st.floats(0, 4e9),
    trace=maybe_texts,
    body=bodies,
)
