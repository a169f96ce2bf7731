"""The value that means "nothing was said here", where `None` says something of its own."""

from enum import Enum
from typing import Final


class Inherit(Enum):
    """Says that a setting comes from whoever stands above: the policy, the tree, the class."""

    INHERIT = "inherit"

    def __repr__(self) -> str:
        return "INHERIT"


INHERIT: Final = Inherit.INHERIT
