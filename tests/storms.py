"""Random runs of a session: a random script, random tools, and people who do anything at any time.

A `Storm` is drawn by Hypothesis and played through the real loop on virtual time, in a drawn task order. What has to hold
afterwards, whatever happened, is in `check`.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any

import trio
from attrs import field, fields, frozen
from hypothesis import strategies as st
from scenes import Diary, Scene, Worker
from trio.testing import MockClock

from actors import (
    FromActor,
    FromSession,
    Limits,
    ModelError,
    Placeholder,
    ResultsItem,
    RunFailed,
    Status,
    StopRun,
    ToolCallFinished,
    UserItem,
)
from actors.agent._actions import Switches
from actors.agent._record import Commit, State
from actors.events import AnyEvent
from actors.models import Said, ScriptedModel, call, calls, fail, raw_call, say, slow
from actors.models._transcript import Validator
from actors.store.memory import MemoryStore
from actors.testing import scheduled
from supervision import System, open_system


class SlowStore(MemoryStore):
    """A store whose commits take time, as those of a disk do: everything may happen meanwhile."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    async def commit(self, state: State, commit: Commit) -> None:
        """Wait, then commit; not to be cancelled half-way."""
        with trio.CancelScope(shield=True):
            await trio.sleep(self._seconds)
        await super().commit(state, commit)


# ------------------------------------------------------------------ what is drawn
@frozen
class Act:
    """Something somebody does to the session, so many seconds after the last one did something."""

    after: float
    what: str
    argument: Any = None


@frozen
class Storm:
    """One random run."""

    script: tuple[Said, ...]
    acts: tuple[Act, ...]
    limits: Limits
    max_rounds: int = 10
    store: float = field(default=0.0)
    switches: Mapping[str, bool] = field(factory=dict)
    seed: int = 0


SECONDS = st.sampled_from([0, 0, 1, 2, 5, 9, 10, 11, 30])
IDS = st.sampled_from(["call_1", "call_2", "call_3", "call_4", "call_9"])
ONE_CALL = st.one_of(
    st.builds(lambda tool, seconds: call(tool, seconds=seconds), st.sampled_from(["work", "patient", "background"]), SECONDS),
    st.just(call("broken", text="x")),
    st.just(call("unknown")),
    st.just(raw_call("work", "{")),
    st.builds(lambda ids: call("cancel_tool_call", tool_call_id=ids), IDS),
    st.builds(lambda ids, wait: call("get_tool_call_status", tool_call_id=ids, wait_for_completion=wait), IDS, st.booleans()),
    st.just(call("list_running_tool_calls")),
    st.builds(
        lambda what, seconds: call("wait", **{"for": what}, timeout_seconds=seconds),
        st.one_of(st.sampled_from(["any_call", "mail"]), st.lists(IDS, min_size=1, max_size=2)),
        SECONDS,
    ),
)
ANSWERS = st.one_of(
    st.lists(ONE_CALL, min_size=1, max_size=4).map(lambda each: calls(*each)),
    st.lists(ONE_CALL, min_size=1, max_size=2).map(lambda each: calls(say("words"), *each)),
    st.just(say("an answer")),
    st.just(say("")),
    st.just(fail(ModelError(reason="refused"))),
    st.just(fail(ModelError(reason="overloaded", retryable=True))),
)
SCRIPTS = st.lists(st.builds(slow, SECONDS, ANSWERS), max_size=8).map(tuple)
ACTS = st.lists(
    st.builds(
        Act,
        st.sampled_from([0, 0, 0.5, 1, 3, 10]),
        st.sampled_from(
            [
                "send",
                "send",
                "interrupt",
                "actor",
                "peer",
                "host",
                "timer",
                "pause",
                "resume",
                "stop_run",
                "cancel_attached",
                "cancel",
            ]
        ),
        IDS,
    ),
    max_size=10,
).map(tuple)
STORMS = st.builds(
    Storm,
    SCRIPTS,
    ACTS,
    st.builds(Limits, max_calls=st.integers(1, 3), max_detached=st.sampled_from([1, 16])),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.0, 0.25]),
    st.fixed_dictionaries({each.name: st.booleans() for each in fields(Switches)}),
    st.integers(0, 2**32 - 1),
)


# ------------------------------------------------------------------ playing it
async def _act(here: Scene, act: Act, number: int) -> None:
    session = here.session
    place = session._session()
    deeds: dict[str, Callable[[], Any]] = {
        "send": lambda: session.send(f"words {number}"),
        "interrupt": lambda: session.interrupt(f"urgent {number}"),
        "pause": session.pause,
        "resume": session.resume,
        "stop_run": session.stop_run,
        "cancel_attached": session.cancel_attached,
        "cancel": lambda: session.cancel_calls(act.argument),
        "timer": lambda: session.send_after(len(act.argument), f"later {number}"),
    }
    if act.what == "host":
        here.diary.host.append(f"from the host {number}")
        return
    if act.what in deeds:
        await deeds[act.what]()
    else:
        sender = FromActor("clock") if act.what == "actor" else FromSession("stranger")
        place.mailbox.accept(place._body(f"{act.what} {number}"), sender)


@contextmanager
def _quiet() -> Iterator[None]:
    """Crashes are part of the play; nobody reads of them."""
    log = logging.getLogger("postroom")
    before, log.disabled = log.level, False
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


async def _play(storm: Storm) -> None:
    async with open_system(store=SlowStore(storm.store) if storm.store else None) as system:
        await _session(system, "s", storm)


async def _session(system: System, name: str, storm: Storm) -> None:
    model, diary, seen = ScriptedModel([*storm.script, *[say("at rest")] * 40]), Diary(), list[AnyEvent]()
    system.listen(seen.append)
    options: dict[str, Any] = {"limits": storm.limits, "max_rounds": storm.max_rounds, **storm.switches}
    session = await system.open(Worker, session=name, model=model, deps=diary, inbox=diary, **options)
    here = Scene(system, session, model, diary, seen)
    await session.send("begin")
    for number, act in enumerate(storm.acts):
        await trio.sleep(act.after)
        await _act(here, act, number)
    with trio.fail_after(20_000):
        await trio.sleep(1_000)
        await session.resume()
        await _come_to_rest(here)
    check(here)


async def _come_to_rest(here: Scene) -> None:
    """Ask until there is an answer and nothing fails behind it: what is left of the script may fail, or say nothing."""
    answer = ""
    while not answer or here.session.status is not Status.IDLE:
        with suppress(RunFailed):
            answer = await here.session.ask("and now?")
        while (session := here.session._session().session).busy or session.state.live:  # noqa: ASYNC110  # nothing tells it
            await trio.sleep(1)  # virtual seconds: `wait_idle` would wait for the others too


def play(storm: Storm) -> None:
    """Play a storm and check what has to hold after it."""
    with scheduled(storm.seed), _quiet():
        trio.run(_play, storm, clock=MockClock(autojump_threshold=0))


async def _play_all(storms: Sequence[Storm]) -> None:
    async with open_system(store=SlowStore(0.01)) as system, trio.open_nursery() as nursery:
        for number, storm in enumerate(storms):
            nursery.start_soon(_session, system, f"s{number}", storm)


def play_all(storms: Sequence[Storm]) -> None:
    """Play them at once, each on a session of its own in one system."""
    with scheduled(storms[0].seed), _quiet():
        trio.run(_play_all, storms, clock=MockClock(autojump_threshold=0))


# ------------------------------------------------------------------ what has to hold
def check(here: Scene) -> None:
    """Whatever happened: nothing lost, nothing doubled, each call with one result and one end."""
    session = here.session._session().session
    state, turn = session.state, session.turn
    Validator().check(state.items)
    _check_mail(here, state)
    _check_calls(here, state)
    _check_runs(here)
    assert state.status is Status.IDLE
    assert (turn.open, dict(turn.began), session.calls.progress, dict(state.live)) == ([], {}, {}, {})
    assert state.placeholders <= {each.body.call for each in here.unread() if isinstance(each.body, ToolCallFinished)}


def _check_mail(here: Scene, state: State) -> None:
    """Each accepted envelope is in one user item, or was consumed because its result told it, or is unread."""
    accepted = {event.envelope.seq: event.envelope for event in here.events("mail_accepted")}
    assert list(accepted) == list(range(1, len(accepted) + 1)), [*accepted]
    beside = [item.results[-1].mail for item in state.items if isinstance(item, ResultsItem)]
    folded = [each for item in [*state.items, *beside] if isinstance(item, UserItem) for each in item.mail]
    assert not here.diary.host
    told = Counter(each.seq for each in folded)
    stops = {seq for seq, each in accepted.items() if isinstance(getattr(each.body, "action", None), StopRun)}
    assert all(count == 1 for count in told.values())
    outcomes = {each.call for item in state.items if isinstance(item, ResultsItem) for each in item.results}
    late = {each.call for item in state.items if isinstance(item, ResultsItem) for each in item.results if _placed(each)}
    for seq, envelope in accepted.items():
        body = envelope.body
        if seq > state.mail_cursor or (hasattr(body, "action") and seq not in stops):
            assert seq not in told or seq in stops
        elif isinstance(body, ToolCallFinished):
            assert (seq in told) == (body.call in late), (seq, body)
            assert body.call in outcomes
        elif seq not in stops:
            assert seq in told, envelope


def _placed(result: Any) -> bool:
    return isinstance(result.outcome, Placeholder)


def _check_calls(here: Scene, state: State) -> None:
    """Each announced call has one end; each detached one at most one mail."""
    started = [event.call for event in here.events("tool_started")]
    finished = [event.call for event in here.events("tool_finished")]
    assert sorted(started) == sorted(finished) == sorted(state.calls)
    sent = [
        each.envelope.body.call for each in here.events("mail_accepted") if isinstance(each.envelope.body, ToolCallFinished)
    ]
    assert len(sent) == len(set(sent))
    for event in here.events("tool_finished"):
        assert state.calls[event.call].outcome == event.outcome
        assert event.outcome.status != "orphaned"


def _check_runs(here: Scene) -> None:
    """Runs begin and end in turns, and are counted."""
    kinds = [event.kind for event in here.events("run_started", "run_stopped")]
    assert all(before != after for before, after in pairwise(kinds)), kinds
    assert kinds[-1] == "run_stopped"
    assert [event.run for event in here.events("run_started")] == list(range(1, kinds.count("run_started") + 1))
    assert here.asked <= here.events("turn_started")[-1].turn
