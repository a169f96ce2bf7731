"""Which method handles a message."""

from typing import Annotated, Any, Optional, Union

import pytest
from attrs import frozen

from actors import Actor, handle
from actors._dispatch import resolve


class Base: ...


class Middle(Base): ...


class Leaf(Middle): ...


@frozen
class Order:
    item: str


def handler(actor: type[Actor], body: object) -> str | None:
    """The name of the method that would handle it."""
    found = resolve(actor.__handlers__, type(body))
    return None if found is None else found.__name__


class Several(Actor):
    @handle
    def orders(self, message: Order) -> None: ...

    @handle
    async def texts(self, message: str | bytes) -> None: ...

    @handle
    def middles(self, message: Middle) -> None: ...

    @handle
    def nothing(self, message: None) -> None: ...

    @handle
    def lists(self, message: list[int]) -> None: ...


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (Order("tea"), "orders"),
        ("a", "texts"),
        (b"a", "texts"),
        (Middle(), "middles"),
        (Leaf(), "middles"),
        (Base(), None),
        (None, "nothing"),
        ([1], "lists"),
        (["a"], "lists"),
        (1, None),
    ],
)
def test_a_message_goes_to_the_method_that_names_its_class(body: object, name: str | None) -> None:
    """The annotation is the only routing there is."""
    assert handler(Several, body) == name


def test_the_handler_of_the_first_class_in_the_mro_wins() -> None:
    """The most special handler is the one meant, in whatever order they stand."""

    class Chosen(Actor):
        @handle
        def anything(self, message: object) -> None: ...

        @handle
        def base(self, message: Base) -> None: ...

        @handle
        def leaf(self, message: Leaf) -> None: ...

    assert [handler(Chosen, body) for body in (Leaf(), Middle(), Base(), 1)] == ["leaf", "base", "base", "anything"]


def test_any_is_object() -> None:
    """Whoever writes `Any` wants everything."""

    class Everything(Actor):
        @handle
        def all(self, message: Any) -> None: ...

    assert handler(Everything, 1) == "all"


def test_every_way_to_write_a_union_counts_its_members_singly() -> None:
    """An optional message is a message or None."""

    class Unions(Actor):
        @handle
        def first(self, message: Union[int, Optional[str]]) -> None: ...  # noqa: UP007, UP045  # older code writes it so

        @handle
        def second(self, message: Annotated[bytes | list[int] | list[str], "a note"]) -> None: ...

    assert set(Unions.__handlers__) == {int, str, type(None), bytes, list}


def test_two_handlers_for_one_type_are_a_mistake_in_the_class() -> None:
    """Which one would win is nobody's to guess; the class is never made."""
    with pytest.raises(TypeError, match=r"Twice has two handlers for str: one and two; keep one"):

        class Twice(Actor):
            @handle
            def one(self, message: str) -> None: ...

            @handle
            def two(self, message: int | str) -> None: ...


def test_two_handlers_for_one_type_are_found_across_bases() -> None:
    """A subclass does not shadow a handler by accident under another name."""
    with pytest.raises(TypeError, match=r"two handlers for Order: orders and mine"):

        class Shadow(Several):
            @handle
            def mine(self, message: Order) -> None: ...


def test_handlers_are_inherited_and_replaced_by_name() -> None:
    """As any method; the base is not changed."""

    class Other(Several):
        @handle
        async def texts(self, message: str) -> None: ...  # type: ignore[override]  # fewer than its base: what this tests

        def orders(self, message: Order) -> None:
            """Replaces without saying again what it handles."""

    assert handler(Other, "a") == "texts"
    assert handler(Other, b"a") is None
    assert Other.__handlers__[Order] is Other.orders
    assert handler(Several, b"a") == "texts"


def test_a_handler_can_be_taken_away() -> None:
    """`name = None` is how Python takes a method back."""

    class Fewer(Several):
        orders = None  # type: ignore[assignment]

    assert handler(Fewer, Order("tea")) is None


def test_a_base_that_is_no_actor_brings_its_handlers() -> None:
    """A mixin's handlers are not dropped in silence."""

    class Mixin:
        @handle
        def bases(self, message: Base) -> None: ...

    class Mixed(Mixin, Several): ...

    assert handler(Mixed, Base()) == "bases"


def test_of_two_bases_the_method_that_python_calls_says_what_it_handles() -> None:
    """A diamond has one method per name; its annotation is the one that counts."""

    class Left(Several): ...

    class Right(Several):
        @handle
        async def texts(self, message: bytearray) -> None: ...  # type: ignore[override]  # another: what this tests

    class Both(Left, Right): ...

    assert (handler(Both, bytearray()), handler(Both, "a")) == ("texts", None)


def test_an_annotation_may_be_a_text_that_names_something_local() -> None:
    """`from __future__ import annotations` makes all of them texts."""

    class Local: ...

    class Texts(Actor):
        @handle
        def local(self, message: "Local | Texts") -> None: ...

    assert set(Texts.__handlers__) == {Local, Texts}


def test_only_the_message_has_to_be_known() -> None:
    """What a handler returns may be known to the type checker alone."""

    class Returns(Actor):
        @handle
        def text(self, message: str) -> "Unknown":  # type: ignore[name-defined]  # noqa: F821
            ...

    assert handler(Returns, "a") == "text"


def test_an_annotation_that_cannot_be_resolved_is_named() -> None:
    """The class is wrong where it stands, not when the first message comes."""
    with pytest.raises(TypeError, match=r"Lost\.look: its annotation 'Nowhere' cannot be resolved.*define the class before"):

        class Lost(Actor):
            @handle
            def look(self, message: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821


def test_what_is_no_class_cannot_be_handled() -> None:
    """A message is told by its class."""
    with pytest.raises(TypeError, match="which is no class"):

        class Wrong(Actor):
            @handle
            def wrong(self, message: Annotated[Any, "x"] | 5) -> None: ...  # type: ignore[valid-type]


@pytest.mark.parametrize(
    ("method", "why"),
    [
        (lambda self: None, "takes 0 arguments"),
        (lambda self, a, b: None, "takes 2 arguments"),
        (lambda self, *, a: None, "takes 1 arguments"),
        (lambda self, a: None, "does not say what it handles; annotate 'a'"),
    ],
)
def test_a_method_that_cannot_take_one_message_is_no_handler(method: Any, why: str) -> None:
    """It would fail at the first message, in another task."""
    with pytest.raises(TypeError, match=why):
        type("Wrong", (Actor,), {"wrong": handle(method)})
