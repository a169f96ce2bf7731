"""Plain JSON in Python, with media in it, without loss.

Values that no annotation describes (a tool's result, an event's data) are JSON, `Media`, or lists and objects of
those. In JSON a `Media` is `{"$media": {"mime": ..., "data": <base64>, "name": ...}}`. An object of the user's that has
that one key, or that key behind more dollars, gets one dollar more when written and loses it when read, so whatever a
user writes comes back as it was.
"""

import base64
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from ._outcome import Media
from ._problems import MisfitError, Path, Problem
from ._text import encodes

MEDIA_KEY = "$media"
DEEPEST = 100  # levels: what is deeper is a mistake, and would exhaust the stack of whoever reads it
TOO_DEEP = f"it is nested deeper than {DEEPEST} levels, or contains itself"
INTEGERS = range(-(2**63), 2**64)  # what JSON readers elsewhere hold exactly
TOO_BIG = "an integer beyond 64 bits is not read exactly by others; send it as str"
SCALARS = (str, int, float)
_LIKE_OURS = re.compile(r"\$+media\Z")


def unfit(value: Any, path: Path = ()) -> Problem | None:
    """What keeps a value from being plain JSON: the first thing found, or None. Exact types only; no media."""
    kind = type(value)
    if value is None or kind is bool or (kind is str and value.isascii()):
        return None
    if kind is dict or kind is list:
        return _unfit_within(value, path) if len(path) <= 2 * DEEPEST else Problem(path[:8], TOO_DEEP)
    if kind is str and not encodes(value):
        return Problem(path, "a lone surrogate is no text in UTF-8")
    if kind is int and value not in INTEGERS:
        return Problem(path, TOO_BIG)
    if kind is float and not math.isfinite(value):
        return Problem(path, f"{value} has no JSON; send None or a str instead")
    return None if kind in SCALARS else Problem(path, f"{_named(kind)} has no JSON")


def _unfit_within(value: Any, path: Path) -> Problem | None:
    """One pass over the scalars, which are most of a message, then into what holds more."""
    keyed = type(value) is dict
    for key, each in value.items() if keyed else enumerate(value):
        if keyed and (type(key) is not str or not encodes(key)):
            return Problem(path, f"the key {key!r} is {_named(type(key))}; keys of JSON objects are str")
        if each is None or each is True or each is False or (type(each) is str and each.isascii()):
            continue
        if found := unfit(each, (*path, key)):
            return found
    return None


def _named(kind: type) -> str:
    hints: dict[type, str] = {tuple: " (write a list)", set: " (write a list)", bytes: " (wrap it in Media, or write text)"}
    hint = hints.get(kind, "")
    return f"{'a' if kind.__name__[:1].lower() not in 'aeiou' else 'an'} {kind.__name__}{hint}"


def plain_media(media: Media) -> dict[str, Any]:
    """A media's fields as JSON."""
    return {"mime": media.mime, "data": base64.b64encode(media.data).decode(), "name": media.name}


def escaped(value: Any) -> Any:
    """The value with its media as JSON objects and look-alikes escaped; what is no JSON stays, for `unfit` to find.

    Raises:
        MisfitError: It is nested too deep, or contains itself.
    """
    return _escaped(value, DEEPEST)


def _escaped(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # a `StrEnum` is its text
    if isinstance(value, int | float):
        return int(value) if isinstance(value, int) else float(value)
    if depth < 0:
        raise MisfitError(Problem((), TOO_DEEP))
    if isinstance(value, Media):
        return {MEDIA_KEY: plain_media(value)}
    if isinstance(value, Mapping):
        found = {str.__str__(k) if isinstance(k, str) else k: _escaped(each, depth - 1) for k, each in value.items()}
        return {f"${key}": each for key, each in found.items()} if _looks_like_ours(found) else found
    return [_escaped(each, depth - 1) for each in value] if isinstance(value, list) else value


def _looks_like_ours(found: dict[Any, Any]) -> bool:
    if len(found) != 1:
        return False
    (key,) = found
    return isinstance(key, str) and _LIKE_OURS.match(key) is not None


def restored(value: Any, media: Callable[[Any], Media], path: Path = ()) -> Any:
    """The inverse of `escaped`; `media` reads the fields of a media.

    Raises:
        MisfitError: Something stands where a media should; with its path.
    """
    if type(value) is list:
        return [restored(each, media, (*path, index)) for index, each in enumerate(value)]
    if type(value) is not dict:
        return value
    if not _looks_like_ours(value):
        return {key: restored(each, media, (*path, key)) for key, each in value.items()}
    ((key, inner),) = value.items()
    if key != MEDIA_KEY:
        return {key[1:]: restored(inner, media, (*path, key))}
    try:
        return media(inner)
    except MisfitError as error:
        raise MisfitError(*(Problem((*path, key, *each.path), each.text) for each in error.problems)) from None
