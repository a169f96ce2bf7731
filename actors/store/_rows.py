"""What stands in the rows of a durable store: strict, tagged JSON, each thing once.

    an item         {"type": "user" | "amend" | "assistant" | "results", ...}; what would be empty is left out
    its mail        the seqs of rows of the mailbox; an envelope that has no row there stands in `whole`
    its outcomes    in the ledger; a result holds only what the ledger does not
    a call's row    its arguments only where no assistant item has them
    a finished call's mail   as any body, without the outcome, which is in the ledger; so is the answer to a deferred one

Rows carry the number of this form (`CODEC`); a reader that does not know a number says so instead of guessing.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any, NewType, get_type_hints

import attrs
import cattrs
import msgspec
from attrs import fields, frozen

from actors._codec import ACTIONS, SENDERS, read_body, read_envelope, unstructure_body, write_envelope
from actors._envelope import Action, ContinuationResult, Envelope, FromToolCall, Sender, ToolCallFinished, UserMessage
from actors._errors import StoreError
from actors._limits import Limits
from actors._outcome import Outcome
from actors._problems import MisfitError
from actors._tagged import tagged_converter
from actors.agent._record import CallRecord, Commit, State
from actors.models._blocks import Block, Text, Thinking, ToolCall, Usage
from actors.models._items import AssistantItem, Item, Nudge, Placeholder, Result, ResultsItem, UserItem

CODEC = 1
Held = Callable[[Envelope], bool]
Whole = NewType("Whole", object)  # an envelope that has no row

_converter = tagged_converter(
    {Sender: SENDERS, Action: ACTIONS, Block: {"text": Text, "thinking": Thinking, "tool_call": ToolCall}}
)
for _tp in (Envelope, Whole):
    _converter.register_structure_hook(_tp, read_envelope)
    _converter.register_unstructure_hook(_tp, write_envelope)


@frozen
class _User:
    """A user item as it stands in JSON; a negative number is a place in `whole`, from -1."""

    mail: tuple[int, ...] = ()
    nudge: Nudge | None = None
    already_read: tuple[str, ...] = ()
    waiting: int = 0
    cuts: tuple[tuple[str, int], ...] = ()
    tools: tuple[tuple[str, str], ...] = ()
    whole: tuple[Whole, ...] = ()


@frozen
class _Result:
    """A result as it stands in JSON: without outcome and placeholder, the ledger has it."""

    call: str
    tool: str
    outcome: Outcome | None = None
    placeholder: Placeholder | None = None
    mail: _User | None = None


@frozen
class _Results:
    results: tuple[_Result, ...]


# ------------------------------------------------------------------ JSON of records
def _slim(doc: Any) -> Any:
    """Without what is empty: the readers put it back. Values of tools and models are not touched."""
    return {key: each for key, each in doc.items() if each is not None and each not in ([], 0)}


def _writer(tp: Any) -> Callable[[Any], Any]:
    """What writes values of this type."""
    write: Callable[[Any], Any] = _converter.get_unstructure_hook(tp)
    return write


def _same(value: Any) -> Any:
    return value


_write_assistant = _writer(AssistantItem)
_encode = msgspec.json.Encoder().encode


def _text(doc: Any) -> str:
    return _encode(doc).decode()


def dump(value: Any, tp: Any = None) -> str:
    """A record of ours as JSON."""
    return msgspec.json.encode(_converter.unstructure(value, unstructure_as=tp or type(value))).decode()


def _read(doc: Any, tp: Any, what: str) -> Any:
    try:
        return _converter.structure(doc, tp)
    except (MisfitError, cattrs.StructureHandlerNotFoundError) as error:
        raise StoreError(f"the store holds {what} that this version cannot read: {error}") from None


def parse(text: str, tp: Any, what: str) -> Any:
    """A record of ours from JSON. Raises `StoreError`, naming `what` it was."""
    try:
        doc = msgspec.json.decode(text)
    except ValueError as error:
        raise StoreError(f"the store holds {what} that is no JSON: {error}") from None
    return _read(doc, tp, what)


def check_codec(number: int, what: str) -> None:
    """`StoreError` if these rows were written in a form that came after this version."""
    if number != CODEC:
        raise StoreError(
            f"{what} is written in form {number}, and this version reads form {CODEC}; use a newer version of postroom"
        )


# ------------------------------------------------------------------ items
def _user(item: UserItem, held: Held) -> dict[str, Any]:
    numbers: list[int] = []
    whole: list[Any] = []
    for envelope in item.mail:
        if held(envelope):
            numbers.append(envelope.seq)
        else:
            whole.append(envelope)
            numbers.append(-len(whole))
    if not (whole or item.nudge or item.already_read or item.waiting or item.cuts or item.tools):
        return {"mail": numbers} if numbers else {}
    row = _User(tuple(numbers), item.nudge, item.already_read, item.waiting, item.cuts, item.tools, tuple(whole))
    return _slim(_converter.unstructure(row))  # type: ignore[no-any-return]


def write_item(item: Item, held: Held, outcomes: Mapping[str, Outcome | None], *, amends: bool = False) -> str:
    """An item as JSON. `held`: whether an envelope has a row in the mailbox; `outcomes`: what the ledger holds of these calls."""
    doc: dict[str, Any]
    if isinstance(item, UserItem):
        doc = {"type": "amend" if amends else "user", **_user(item, held)}
    elif isinstance(item, AssistantItem):
        doc = {"type": "assistant", **_write_assistant(item)}
    else:
        doc = {"type": "results", "results": [_result(each, held, outcomes) for each in item.results]}
    return _text(doc)


def _result(result: Result, held: Held, outcomes: Mapping[str, Outcome | None]) -> dict[str, Any]:
    doc: dict[str, Any] = {"call": result.call, "tool": result.tool}
    if isinstance(result.outcome, Placeholder):
        doc["placeholder"] = _slim(_converter.unstructure(result.outcome))
        doc["placeholder"]["can_wait"] = result.outcome.can_wait
    elif outcomes.get(result.call) != result.outcome:
        doc["outcome"] = _converter.unstructure(result.outcome)
    if result.mail is not None:
        doc["mail"] = _user(result.mail, held)
    return doc


@frozen
class Shelf:
    """What items refer to: the mail of their session by seq, and the outcomes of its calls."""

    mail: Mapping[int, Envelope]
    outcomes: Mapping[str, Outcome | None]

    def read(self, texts: list[str], what: str) -> list[Item]:
        """The items of these rows, oldest first; an amendment goes into the item before it."""
        items: list[Item] = []
        for text in texts:
            doc = msgspec.json.decode(text)
            kind = doc.pop("type")
            if kind == "amend":
                last = items[-1]
                assert not isinstance(last, AssistantItem)
                items[-1] = last.amended(self._user(_read(doc, _User, what), what))
            elif kind == "user":
                items.append(self._user(_read(doc, _User, what), what))
            elif kind == "assistant":
                items.append(_read(doc, AssistantItem, what))
            elif kind == "results":
                items.append(ResultsItem(tuple(self._result(row, what) for row in _read(doc, _Results, what).results)))
            else:
                raise StoreError(f"the store holds {what} of an unknown kind, {kind!r}; use a newer version of postroom")
        return items

    def _user(self, row: _User, what: str) -> UserItem:
        missing = [seq for seq in row.mail if seq >= 0 and seq not in self.mail]
        if missing:
            raise StoreError(
                f"the store holds {what} that refers to mail {missing[0]}, which is not there; restore it from a backup"
            )
        mail: list[Any] = [self.mail[seq] if seq >= 0 else row.whole[-seq - 1] for seq in row.mail]
        return UserItem(mail, row.nudge, row.already_read, row.waiting, row.cuts, row.tools)

    def _result(self, row: _Result, what: str) -> Result:
        outcome = row.placeholder or row.outcome or self.outcomes.get(row.call)
        if outcome is None:
            raise StoreError(
                f"the store holds {what} with a result of {row.call}, whose outcome is not there; restore it from a backup"
            )
        return Result(row.call, row.tool, outcome, None if row.mail is None else self._user(row.mail, what))


# ------------------------------------------------------------------ calls
_CALL_COLUMNS = {"id", "tool", "arguments", "status", "outcome"}
_CALL_TYPES = {name: tp for name, tp in get_type_hints(CallRecord).items() if name not in _CALL_COLUMNS}
_CALL_DEFAULTS = {each.name: each.default for each in fields(CallRecord)}
_CALL_PLAN = [(name, _CALL_DEFAULTS[name], _writer(tp)) for name, tp in _CALL_TYPES.items() if name != "idempotency_key"]
_write_arguments, _write_outcome = _writer(Mapping[str, Any]), _writer(Outcome)


def write_call(row: CallRecord, key: str, *, told: bool) -> tuple[str, str, str, str | None, str | None, str]:
    """The columns of a call: id, tool, status, arguments, outcome, other facts. `told`: an assistant item has its arguments."""
    facts = {name: write(value) for name, default, write in _CALL_PLAN if (value := getattr(row, name)) != default}
    if row.idempotency_key != key:
        facts["idempotency_key"] = row.idempotency_key
    arguments = None if told else _text(_write_arguments(row.arguments))
    outcome = None if row.outcome is None else write_outcome(row.outcome)
    tool = row.tool.replace(
        "\0", "\N{REPLACEMENT CHARACTER}"
    )  # not every store has room for that; a model may name a tool as it likes
    return row.id, tool, row.status, arguments, outcome, _text(facts)


def write_outcome(outcome: Outcome) -> str:
    """How a call ended, as its column has it."""
    return _text(_write_outcome(outcome))


def read_call(
    columns: tuple[str, str, str, str | None, str], key: str, asked: Mapping[str, Any], outcome: Outcome | None
) -> CallRecord:
    """A call from its columns. `asked`: the arguments of calls in assistant items; `outcome`: how it ended."""
    id, tool, status, arguments, facts = columns
    what = f"call {key}"
    found = msgspec.json.decode(facts)
    known = {name: _read(each, _CALL_TYPES[name], what) for name, each in found.items() if name in _CALL_TYPES}
    known.setdefault("idempotency_key", key)  # what is left out is the key that every call gets
    given = asked.get(id, {}) if arguments is None else parse(arguments, Mapping[str, Any], what)
    return CallRecord(id, tool, given, status, outcome, **known)  # type: ignore[arg-type]


def asked_in(items: list[Item]) -> dict[str, Mapping[str, Any]]:
    """The arguments of all calls that these items ask for."""
    return {call.id: call.arguments for item in items if isinstance(item, AssistantItem) for call in item.calls}


# ------------------------------------------------------------------ what else is known of a session
_COLUMNS = {
    "id", "agent", "parent", "owner", "status", "version", "epoch", "mail_cursor", "control_cursor", "floor", "limits",
    "items", "calls", "live", "deferred", "timers", "watches",
}  # fmt: skip
_FACTS = {name: tp for name, tp in get_type_hints(State).items() if name not in _COLUMNS}
_BLANK = State("", "")
_AS_THEY_ARE = {int, Usage}  # msgspec writes them as the readers take them
_PLAN = [(name, getattr(_BLANK, name), _same if tp in _AS_THEY_ARE else _writer(tp)) for name, tp in _FACTS.items()]
_plain_facts = attrgetter(*_FACTS)
_all_of = attrgetter(*(each.name for each in fields(State)))


def after(state: State, commit: Commit) -> State:
    """What the state will be, without items, calls, timers and watches."""
    ahead = State(*_all_of(state))  # a copy made by `evolve` costs five times as much
    ahead.items = state.items[-1:] if commit.amend is not None else []
    ahead.calls, ahead.live, ahead.deferred, ahead.timers, ahead.watches = {}, {}, {}, {}, {}
    ahead.placeholders, ahead.fetched, ahead.refused = set(state.placeholders), set(state.fetched), dict(state.refused)
    ahead.apply(commit)
    return ahead


def write_facts(state: State) -> str:
    """All that has no column of its own."""
    values = zip(_PLAN, _plain_facts(state), strict=True)
    return _text({name: write(value) for (name, blank, write), value in values if value is not blank and value != blank})


def read_facts(text: str, what: str) -> dict[str, Any]:
    """The fields of a `State` that `write_facts` wrote."""
    found = msgspec.json.decode(text)
    unknown = sorted(set(found) - set(_FACTS))
    if unknown:
        raise StoreError(
            f"the store holds {what} with {unknown[0]!r}, which this version does not know; use a newer version of postroom"
        )
    return {name: _read(each, _FACTS[name], what) for name, each in found.items()}


def write_limits(limits: Limits) -> str:
    """Limits as JSON: those that are set."""
    found = {each.name: getattr(limits, each.name) for each in attrs.fields(Limits)}
    return msgspec.json.encode({name: value for name, value in found.items() if not hasattr(value, "INHERIT")}).decode()


def read_limits(text: str) -> Limits:
    """Limits from JSON."""
    found = msgspec.json.decode(text)
    if "wake_on" in found:
        found["wake_on"] = tuple(found["wake_on"])
    return Limits(**found)


# ------------------------------------------------------------------ mail
TOLD_BY_THE_LEDGER = ("tool_call_finished", "continuation_result")  # bodies whose outcome is not written twice


def write_body(body: Any, outcomes: Mapping[str, Outcome | None], sender: Sender) -> str:
    """The body of an envelope as JSON; `outcomes` are in the ledger. Raises `CodecError` for one that has none."""
    if type(body) is UserMessage and not body.media and type(body.text) is str:
        try:  # most mail by far; what has no JSON is worded below
            return f'{{"type":"user_message","text":{_encode(body.text).decode()},"media":[]}}'
        except UnicodeError:
            pass
    if isinstance(body, ToolCallFinished) and outcomes.get(body.call) == body.outcome:
        return msgspec.json.encode({"type": "tool_call_finished", "call": body.call, "tool": body.tool}).decode()
    if isinstance(body, ContinuationResult) and isinstance(sender, FromToolCall) and outcomes.get(sender.call) == body.outcome:
        return _text({"type": "continuation_result", "token": body.token, "call": sender.call})
    return msgspec.json.encode(unstructure_body(body)).decode()


def body_from(text: str, outcomes: Mapping[str, Outcome | None], what: str) -> Any:
    """A body from JSON; what it leaves out is in the ledger."""
    doc = msgspec.json.decode(text)
    if doc.get("type") in TOLD_BY_THE_LEDGER and "outcome" not in doc:
        outcome = outcomes.get(doc["call"])
        if outcome is None:
            raise StoreError(f"the store holds {what} of {doc['call']}, whose outcome is not there; restore it from a backup")
        if doc["type"] == "continuation_result":
            return ContinuationResult(doc["token"], outcome)
        return ToolCallFinished(doc["call"], doc["tool"], outcome)
    try:
        return read_body(doc)
    except MisfitError as error:
        raise StoreError(f"the store holds {what} that this version cannot read: {error}; register its class first") from None


_SENDER_PLAN = {cls: (tag, tuple(each.name for each in fields(cls))) for tag, cls in SENDERS.items()}


@lru_cache(maxsize=1024)
def dump_sender(sender: Sender) -> str:
    """A sender as JSON, equal for equal ones."""
    tag, names = _SENDER_PLAN[type(sender)]
    return _text({"type": tag, **{name: getattr(sender, name) for name in names}})


def read_sender(text: str) -> Sender:
    """A sender from JSON."""
    sender: Sender = parse(text, Sender, "a sender")
    return sender
