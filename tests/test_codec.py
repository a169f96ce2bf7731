"""Envelopes as JSON: tagged, strict, lossless."""

import json
from collections.abc import Iterator
from types import NoneType
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mail_strategies import bodies, envelopes

from actors._codec import (
    ACTIONS,
    BODIES,
    SENDERS,
    digest,
    from_json,
    structure_body,
    to_json,
    unstructure_body,
)
from actors._envelope import (
    NORMAL,
    Action,
    CancelCalls,
    Control,
    Envelope,
    FromActor,
    FromUser,
    Sender,
    SessionBody,
    ToolCallFinished,
    UserMessage,
    WatchedEvent,
)
from actors._errors import CodecError
from actors._outcome import Media, Outcome

FREE = {"value", "data"}  # where any JSON may stand
MAY_BE: dict[Any, set[type]] = {  # fields that take more than one kind of JSON
    **{key: {NoneType, str} for key in ("owner", "agent", "trace", "in_reply_to", "error", "name", "started")},
    "duration": {NoneType, int, float},
    "run": {NoneType, int},
    "calls": {NoneType, list},
}


def enveloped(body: object) -> Envelope:
    return Envelope(7, 3, FromUser("ann"), NORMAL, 2, 1_769_853_600.25, None, body)


def places(doc: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something of ours stands: not what is below a field that takes any JSON."""
    yield path
    if isinstance(doc, dict | list) and not (path and path[-1] in FREE and path[0] == "body"):
        for key, each in doc.items() if isinstance(doc, dict) else enumerate(doc):
            yield from places(each, (*path, key))


def at(doc: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        doc = doc[step]
    return doc


@pytest.mark.parametrize(("table", "union"), [(SENDERS, Sender), (ACTIONS, Action), (BODIES, SessionBody)])
def test_the_tables_name_every_sender_action_and_body(table: dict[str, type], union: Any) -> None:
    """A kind without a name could be accepted and never written down."""
    assert set(table.values()) == set(get_args(union))


def test_an_envelope_reads_as_it_is_documented() -> None:
    """Other programs read it too."""
    assert json.loads(to_json(enveloped(UserMessage("hi", [Media("image/png", b"\x00")])))) == {
        "id": "m-7",
        "seq": 3,
        "sender": {"type": "user", "owner": "ann"},
        "priority": "normal",
        "hops": 2,
        "sent_at": "2026-01-31T10:00:00.250000Z",
        "trace": None,
        "body": {"type": "user_message", "text": "hi", "media": [{"mime": "image/png", "data": "AA==", "name": None}]},
    }


@given(envelope=envelopes)
def test_what_was_written_is_read_back_equal(envelope: Envelope) -> None:
    """Whatever a store keeps comes back as it was, also where a user's JSON imitates ours."""
    text = to_json(envelope)
    again = from_json(text)
    assert again == envelope
    assert to_json(again) == text
    assert repr(again.body) == repr(from_json(text.encode()).body)


@given(body=bodies)
def test_a_body_alone_is_read_back_equal(body: SessionBody) -> None:
    """As stores and hooks keep it."""
    doc = unstructure_body(body)
    assert structure_body(json.loads(json.dumps(doc))) == body


@given(envelope=envelopes, data=st.data())
def test_an_extra_key_anywhere_is_refused_with_its_path(envelope: Envelope, data: st.DataObject) -> None:
    """What is not understood is not dropped."""
    doc = json.loads(to_json(envelope))
    objects = [path for path in places(doc) if isinstance(at(doc, path), dict) and not (path and path[-1] in FREE)]
    path = data.draw(st.sampled_from(objects))
    at(doc, path)["extra_key"] = 1
    with pytest.raises(CodecError, match=r"unknown `[\w.\[\]]*extra_key`"):
        from_json(json.dumps(doc))


@given(envelope=envelopes, wrong=st.sampled_from([None, True, 7, 7.5, "wrong", ["wrong"], {"wrong": 1}]), data=st.data())
def test_a_wrong_type_anywhere_is_refused_with_its_path(envelope: Envelope, wrong: Any, data: st.DataObject) -> None:
    """Nothing is coerced."""
    doc = json.loads(to_json(envelope))
    typed = [path for path in places(doc) if path and not (path[-1] == "value" and path[0] == "body")]
    fitting = [path for path in typed if type(wrong) not in MAY_BE.get(path[-1], {type(at(doc, path))})]
    fitting = [
        path for path in fitting if not (path[-1] == "data" and isinstance(at(doc, path), dict) and isinstance(wrong, dict))
    ]
    path = data.draw(st.sampled_from(fitting))
    at(doc, path[:-1])[path[-1]] = wrong
    with pytest.raises(CodecError, match=path[-1] if isinstance(path[-1], str) else rf"\[{path[-1]}\]"):
        from_json(json.dumps(doc))


@given(envelope=envelopes, data=st.data())
def test_a_missing_field_of_the_envelope_is_refused(envelope: Envelope, data: st.DataObject) -> None:
    """Every envelope has all eight."""
    doc = json.loads(to_json(envelope))
    del doc[key := data.draw(st.sampled_from(sorted(doc)))]
    with pytest.raises(CodecError, match=f"missing `{key}`"):
        from_json(json.dumps(doc))


@pytest.mark.parametrize(
    ("path", "wrong", "told"),
    [
        (("sender", "type"), "admin", '`sender.type`: expected "user" or "session" or "actor" or "tool_call" or "system"'),
        (("body", "type"), "no_such_type", '`body.type`: expected "user_message" or'),
        (("body", "type"), ["user_message"], "`body.type`: expected"),
        (("id",), "", "`id`: expected an id"),
        (("id",), "a b", "`id`: expected an id"),
        (("sent_at",), "2026-01-31T10:00:00", "`sent_at`: expected a UTC time"),
        (("sent_at",), "2026-01-31T10:00:00.000000+02:00", "`sent_at`: expected a UTC time"),
        (("sent_at",), "2026-02-31T10:00:00.000000Z", "`sent_at`: "),
        (("priority",), "urgent", '`priority`: expected "normal" or "interrupt", got str "urgent"'),
        (("seq",), 2**64, "`seq`: an integer beyond 64 bits"),
        (("body", "media", 0, "data"), "AB==", "`body.media[0].data`: expected base64 text"),
        (("body", "media", 0, "data"), "A A=", "`body.media[0].data`: expected base64 text"),
    ],
)
def test_a_value_of_the_right_type_may_be_wrong_too(path: tuple[Any, ...], wrong: Any, told: str) -> None:
    """Two texts of one value, or a tag of nothing, are no JSON of ours."""
    doc = json.loads(to_json(enveloped(UserMessage("hi", [Media("image/png", b"\x00")]))))
    at(doc, path[:-1])[path[-1]] = wrong
    with pytest.raises(CodecError) as caught:
        from_json(json.dumps(doc))
    assert str(caught.value).startswith(f"this is no envelope: {told}")


@pytest.mark.parametrize("text", ["", "nonsense", "[]", "null", '{"id": NaN}', b"\xff", "[" * 100_000, '"\\ud800"'])
def test_what_is_no_envelope_at_all_is_refused(text: str | bytes) -> None:
    """Whatever comes over a wire."""
    with pytest.raises(CodecError, match="this is no"):
        from_json(text)


def test_a_media_in_a_value_is_as_strict_as_any_other() -> None:
    """It is ours, wherever it stands."""
    doc = unstructure_body(ToolCallFinished("c", "t", Outcome.completed({"pictures": [Media("image/png", b"")]})))
    doc["outcome"]["value"]["pictures"][0]["$media"]["size"] = 3
    with pytest.raises(CodecError, match=r'unknown `outcome.value.pictures\[0\]\["\$media"\].size`'):
        structure_body(doc)


LOOP: list[Any] = []
LOOP += [LOOP, LOOP]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (5, "`body`: builtins.int has no JSON; register it with actors.register(int)"),
        (UserMessage(5), "`body.text`: expected str, got int 5"),  # type: ignore[arg-type]
        (UserMessage("\ud800"), "`body.text`: a lone surrogate"),
        (Control("pause"), '`body.action`: expected object, got str "pause"'),  # type: ignore[arg-type]
        (Control(CancelCalls([1])), "`body.action.calls[0]`: expected str, got int 1"),  # type: ignore[list-item]
        (WatchedEvent("s", "k", {"a": float("nan")}), "`body.data.a`: nan has no JSON"),
        (WatchedEvent("s", "k", {"a": [float("-inf")]}), "`body.data.a[0]`: -inf has no JSON"),
        (WatchedEvent("s", "k", {"a": 2**64}), "`body.data.a`: an integer beyond 64 bits"),
        (WatchedEvent("s", "k", {"a": {1: 2}}), "`body.data.a`: the key 1 is an int; keys of JSON objects are str"),
        (WatchedEvent("s", "k", {"a": (1,)}), "`body.data.a`: a tuple (write a list) has no JSON"),
        (WatchedEvent("s", "k", {"a": object()}), "`body.data.a`: an object has no JSON"),
        (WatchedEvent("s", "k", {"a": LOOP}), "it is nested deeper than 100 levels, or contains itself"),
        (ToolCallFinished("c", "t", Outcome("done", None)), '`body.outcome.status`: expected "completed" or'),  # type: ignore[arg-type]
    ],
    ids=lambda each: each if isinstance(each, str) else type(each).__name__,
)
def test_what_could_not_be_read_again_is_not_written(body: object, told: str) -> None:
    """Better the sender's error now than a mailbox that nobody can open."""
    with pytest.raises(CodecError) as caught:
        to_json(enveloped(body))
    assert str(caught.value).startswith("m-7 has no JSON: ")
    assert told in str(caught.value)


def test_a_sender_that_is_none_of_ours_is_not_written() -> None:
    """Only the runtime makes senders."""
    with pytest.raises(CodecError, match="`sender`"):
        to_json(Envelope(1, 1, "ann", NORMAL, 0, 0.0, None, UserMessage("hi")))  # type: ignore[arg-type]
    with pytest.raises(CodecError, match=r"`sender.address`: expected str, got int 1"):
        to_json(Envelope(1, 1, FromActor(1), NORMAL, 0, 0.0, None, UserMessage("hi")))  # type: ignore[arg-type]


def test_a_reply_token_is_never_in_json() -> None:
    """It means something in one process only."""
    told = to_json(Envelope(1, 1, FromUser(), NORMAL, 0, 0.0, None, UserMessage("hi"), token=object()))
    assert "token" not in told
    assert from_json(told).token is None


@given(body=bodies, other=bodies)
def test_equal_bodies_share_a_digest_and_others_do_not(body: SessionBody, other: SessionBody) -> None:
    """An id that is sent again is told from an id that is used twice."""
    assert digest(body) == digest(structure_body(unstructure_body(body)))
    assert (digest(body) == digest(other)) == (unstructure_body(body) == unstructure_body(other))


def test_the_order_of_keys_does_not_matter_to_a_digest() -> None:
    """Equal objects are equal."""
    assert digest(WatchedEvent("s", "k", {"a": 1, "b": 2})) == digest(WatchedEvent("s", "k", {"b": 2, "a": 1}))
    assert len(digest(UserMessage("hi")) or b"") == 16


@pytest.mark.parametrize("body", ["text", 5, object(), WatchedEvent("s", "k", {"a": object()})], ids=repr)
def test_what_has_no_json_has_no_digest(body: object) -> None:
    """A plain actor's mail is compared by identity."""
    assert digest(body) is None
