"""A docstring is split into what the function does and what each argument is."""

import pytest

from actors.tools._docstring import split_docstring


def bare(a: int, b: int) -> None:
    pass


def short(a: int, b: int) -> None:
    """Do it."""


def full(a: int, b: int, rest: int) -> None:
    """Do it.

    In full.

    Args:
        a: The first,
            over two lines: with a colon.
        b (int): The second.

        rest: What is left.

    Returns:
        It.
    """


def arguments_last(a: int) -> None:
    """Do it.

    Arguments:
      a:
        Below its name.
    """


@pytest.mark.parametrize(
    ("fn", "description", "texts"),
    [
        (bare, "", {}),
        (short, "Do it.", {}),
        (
            full,
            "Do it.\n\nIn full.\n\nReturns:\n    It.",
            {"a": "The first, over two lines: with a colon.", "b": "The second.", "rest": "What is left."},
        ),
        (arguments_last, "Do it.", {"a": "Below its name."}),
    ],
)
def test_the_arguments_are_told_apart_from_the_description(fn: object, description: str, texts: dict[str, str]) -> None:
    """A model is shown each text once, where it belongs."""
    assert split_docstring(fn) == (description, texts)
