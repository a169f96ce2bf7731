"""The tree's rules: a limit below may only be narrower, and what is set above holds for all below."""

from math import nan
from typing import Any

import pytest
from hands import Do, Hand
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from actors import Actor, ActorRef, ConfigError, LimitExceeded, Limits, MailboxFull, StartFailed, TooManyHops
from actors._inherit import INHERIT
from actors._limits import BREADTH, FIELDS, SESSION_DEFAULTS
from actors.testing import Gate
from supervision import ChildSpec, Supervisor, open_system

# ------------------------------------------------------------------ narrowing, pure
NARROWER = [
    ("max_unread", 10, 9),
    ("max_unread", 10, 10),
    ("max_wait", 300.0, 0.5),
    ("mail_scope", "all", "own"),
    ("mail_scope", "siblings", "subtree"),
    ("interrupt_scope", "children", "children"),
    ("wake_on", ("user", "tool"), ("user",)),
    ("wake_on", ("user", "tool"), ()),
    ("max_tokens", None, 1000),
    ("max_cost", None, None),
    ("max_depth", INHERIT, 100),
]
WIDER = [
    ("max_unread", 10, 11),
    ("max_wait", 0.5, 300.0),
    ("mail_scope", "own", "all"),
    ("interrupt_scope", "children", "subtree"),
    ("wake_on", ("user",), ("user", "tool")),
    ("max_tokens", 1000, None),
    ("max_cost", 1.5, 1.6),
]


@pytest.mark.parametrize(("name", "above", "below"), NARROWER)
def test_a_narrower_limit_below_holds(name: str, above: Any, below: Any) -> None:
    """Whoever starts something may give it less than he has."""
    assert getattr(Limits(**{name: above}).narrow(Limits(**{name: below})), name) == below


@pytest.mark.parametrize(("name", "above", "below"), WIDER)
def test_a_wider_limit_below_is_refused(name: str, above: Any, below: Any) -> None:
    """And the text names the limit and both values."""
    with pytest.raises(ConfigError) as caught:
        Limits(**{name: above}).narrow(Limits(**{name: below}))
    assert f"{name}={below!r}" in str(caught.value)
    assert f"{name}={above!r}" in str(caught.value)


@pytest.mark.parametrize("name", FIELDS)
def test_what_nobody_sets_is_inherited(name: str) -> None:
    """`over` fills with defaults, `narrow` with what is above, and neither touches what is set."""
    above = getattr(SESSION_DEFAULTS, name)
    assert getattr(Limits().over(SESSION_DEFAULTS), name) == above
    assert getattr(SESSION_DEFAULTS.narrow(Limits()), name) == above
    assert getattr(Limits().narrow(SESSION_DEFAULTS), name) == above
    assert getattr(Limits(**{name: above}).over(Limits()), name) == above


NUMBERS = st.integers(1, 5)
KINDS = st.lists(st.sampled_from(["user", "tool", "parent"]), unique=True).map(tuple)
VALUES = {
    name: st.sampled_from(sorted(BREADTH)) if name.endswith("_scope") else
    KINDS if name == "wake_on" else
    NUMBERS | st.none() if name in {"max_requests", "max_tokens", "max_cost"} else NUMBERS
    for name in FIELDS
}  # fmt: skip
LIMITS = st.builds(Limits, **{name: st.just(INHERIT) | value for name, value in VALUES.items()})


def width(name: str, value: Any) -> Any:
    """How much a value allows, in an order of its own."""
    if name == "wake_on":
        return frozenset(value)
    return BREADTH[value] if name.endswith("_scope") else float("inf") if value is None else value


@given(LIMITS, st.lists(LIMITS, max_size=4))
def test_narrowing_never_widens(top: Limits, below: list[Limits]) -> None:
    """Down any path of a tree each limit only shrinks; what would grow is refused, and nothing else is."""
    for each in below:
        wider = [
            name for name in FIELDS
            if INHERIT not in {getattr(top, name), getattr(each, name)}
            and not width(name, getattr(each, name)) <= width(name, getattr(top, name))
        ]  # fmt: skip
        if wider:
            with pytest.raises(ConfigError, match=wider[0]):
                top.narrow(each)
            return
        merged = top.narrow(each)
        for name in FIELDS:
            mine, its = getattr(top, name), getattr(each, name)
            assert getattr(merged, name) == (mine if its is INHERIT else its)
        top = merged


# ------------------------------------------------------------------ refused when they are written
SENSELESS: dict[str, list[Any]] = {
    "max_unread": [0, -1, 2.5, True, None, "3"],
    "max_calls": [0, None],
    **{name: [-1, 1.5, None] for name in ("max_hops", "max_detached", "max_watches", "max_children", "max_depth")},
    "max_requests": [-1, 0.5],
    "max_tokens": [-1, "many"],
    "max_cost": [-0.01, nan, "1 EUR"],
    "max_wait": [0, -1, nan, None, True],
    "mail_scope": ["everyone", None, 3],
    "interrupt_scope": ["none"],
    "wake_on": ["user", ("users",), None, {"user"}],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in SENSELESS.items() for value in values])
def test_a_limit_nobody_could_live_with_is_refused_when_it_is_written(name: str, value: Any) -> None:
    """Instead of a mailbox that takes nothing, or a wait that is over before it begins."""
    with pytest.raises(ConfigError, match=rf"Limits: found {name}=.*; write "):
        Limits(**{name: value})
    assert set(SENSELESS) == set(FIELDS)


def wide(name: str = "wide") -> ChildSpec:
    return ChildSpec(Hand, name=name, limits=Limits(max_unread=20))


def test_a_tree_whose_child_widens_a_limit_is_refused_when_it_is_written() -> None:
    """Not when it starts, at night: the text names the child, and what to write."""
    with pytest.raises(ConfigError, match=r"top/wide: max_unread=20 is wider than max_unread=10"):
        Supervisor(wide(), name="top", limits=Limits(max_unread=10))


def test_a_grandchild_is_held_to_what_is_set_two_levels_above() -> None:
    """A supervisor between them that sets nothing passes it on."""
    with pytest.raises(ConfigError, match=r"top/middle/wide: max_unread=20 is wider"):
        Supervisor(Supervisor(wide(), name="middle"), name="top", limits=Limits(max_unread=10))


async def test_a_tree_wider_than_its_system_does_not_start() -> None:
    """The system's limits are not known when the tree is written; its start names the child, and leaves nothing behind."""
    async with open_system(limits=Limits(max_unread=10)) as system:
        with pytest.raises(ConfigError, match=r"wide: max_unread=20 is wider"):
            await system.spawn(Hand, name="wide", limits=Limits(max_unread=20))
        with pytest.raises((ConfigError, StartFailed), match=r"tree/wide: max_unread=20 is wider"):
            await system.start(Supervisor(wide(), name="tree"))
        assert not list(system.tree())


# ------------------------------------------------------------------ enforced
def held_tree(held: Gate, limits: Limits) -> Supervisor:
    """An actor two levels below the limits."""
    return Supervisor(Supervisor(ChildSpec(held.actor, name="c"), name="b"), name="a", limits=limits)


@pytest.mark.parametrize("where", ["system", "tree"])
async def test_max_unread_is_inherited_down_a_tree(where: str, autojump_clock: MockClock) -> None:
    """Set once at the top, it bounds every mailbox below."""
    held, limits = Gate(), Limits(max_unread=3)
    async with open_system(limits=limits if where == "system" else None) as system:
        await system.start(held_tree(held, limits if where == "tree" else Limits()))
        ref = system.ref("a/b/c")
        for number in range(3):
            ref.send_nowait(number)
        with pytest.raises(MailboxFull, match="3 unread messages of at most 3"):
            ref.send_nowait("one too many")
        held.open()


async def test_max_hops_binds_plain_actors_where_it_is_set(autojump_clock: MockClock) -> None:
    """Nowhere else: plain actors pass on what they were given, as often as they like."""
    async with open_system() as system:
        bound = await system.spawn(Hand, name="bound", limits=Limits(max_hops=2))
        free = await system.spawn(Hand, name="free")
        for ref, hops, refused in ((bound, 2, False), (bound, 3, True), (free, 1000, False)):
            assert await accepts(ref, hops) is not refused


async def accepts(ref: ActorRef, hops: int) -> bool:
    """Whether it takes mail that came so far."""
    try:
        ref._place().mailbox.accept("mail", ref._place().sender, hops=hops)  # type: ignore[attr-defined]
    except TooManyHops:
        return False
    return True


async def test_max_children_bounds_the_live_children_of_an_actor(autojump_clock: MockClock) -> None:
    """One that ended makes room for another."""

    async def grow(actor: Actor) -> int:
        for number in range(2):
            await actor.spawn(Hand, name=f"kid{number}")
        with pytest.raises(LimitExceeded, match="has 2 live children"):
            await actor.spawn(Hand, name="kid2")
        await actor.find(f"{actor.ref.address}/kid0").stop()
        await actor.spawn(Hand, name="kid2")
        return len(actor._life.runtime.place(actor.ref.address).children)  # type: ignore[union-attr]

    async with open_system() as system:
        ref = await system.spawn(Hand, limits=Limits(max_children=2))
        assert await ref.ask(Do(grow)) == 2


async def test_a_spawned_child_inherits_from_its_parent(autojump_clock: MockClock) -> None:
    """What an actor starts is bound as the actor is."""
    async with open_system() as system:
        root = await system.spawn(Hand, name="root", limits=Limits(max_unread=7, max_wait=5))
        root.send_nowait(Do(lambda actor: actor.spawn(Hand, name="kid")))
        await system.wait_idle()
        place = system._root.place("root/kid")
        assert (place.mailbox.capacity, place.max_wait) == (7, 5)
