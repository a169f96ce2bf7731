"""Text that has no UTF-8: lone surrogates, as file names, cut emoji and some JSON readers bring them into Python.

No store and no provider takes them. What a person or a host's code sends with one is refused; what a model or a tool
says is made readable, for nobody could send it again.
"""

from collections.abc import Mapping
from typing import Any

from ._errors import CodecError


def encodes(text: str) -> bool:
    """Whether a text has UTF-8."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def readable(text: str) -> str:
    """The text, with what is no UTF-8 (a byte of a file name, say) as an escape. Two halves of a character become that one."""
    if encodes(text):
        return text
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return whole.encode(errors="backslashreplace").decode()


def readable_within(value: Any) -> Any:
    """Plain JSON whose texts and keys are `readable`; the same object where nothing had to change."""
    return value if _all_encode(value) else _readable_within(value)


def _all_encode(value: Any) -> bool:
    if isinstance(value, str):
        return encodes(value)
    if isinstance(value, Mapping):
        return all(map(encodes, value)) and all(map(_all_encode, value.values()))
    return not isinstance(value, list) or all(map(_all_encode, value))


def _readable_within(value: Any) -> Any:
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, Mapping):
        return {readable(key): _readable_within(each) for key, each in value.items()}
    return [_readable_within(each) for each in value] if isinstance(value, list) else value


def check_text(what: str, text: str | None) -> None:
    """CodecError for a text that no store and no provider would take; `what` says what was tried."""
    if text is not None and not encodes(text):
        raise CodecError(f"{what} was refused: {text!r} holds a lone surrogate, which is no text in UTF-8")
