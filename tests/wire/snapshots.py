"""Recorded request bodies: what went over the wire, in JSON files beside the tests.

`POSTROOM_SNAPSHOTS=write python -m pytest tests/wire` records them anew; read the difference before you commit it. Of a body after
the first, what stands at the front as it stood before is only counted: the prompt prefix that providers keep cached. So is
what does not change at all.
"""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("snapshots")
WRITE = os.environ.get("POSTROOM_SNAPSHOTS") == "write"
_WAITED = re.compile(r"(waited_seconds\W+)[\d.e-]+")
_HISTORY = ("messages", "input", "contents")
_MAIL = re.compile(r"\bm-[0-9a-z]+\b")
_ANSWER = re.compile(r"\bc-[0-9a-f]{8}\b")
_DURATION = re.compile(r"(completed|failed|cancelled) in [\d.]+ s")


def recorded(bodies: Sequence[dict[str, Any]], *, tools: bool) -> list[dict[str, Any]]:
    """Bodies as they are recorded, with their tools or without."""
    told: list[dict[str, Any]] = []
    before: dict[str, Any] = {}
    for whole in bodies:
        body = {name: value for name, value in whole.items() if tools or name != "tools"}
        told.append(
            {name: _changed(name, value, before.get(name)) for name, value in body.items() if _differs(name, value, before)}
        )
        before = body
    return _timeless(told)


def _timeless(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without durations, and with ids of mail counted from 1: a system numbers the mail of all its sessions, and tokens are secret."""
    text = _WAITED.sub(r"\g<1>0", _DURATION.sub(r"\1 in N s", json.dumps(told)))
    for kind in (_MAIL, _ANSWER):
        text = _counted(kind, text)
    timeless: list[dict[str, Any]] = json.loads(text)
    return timeless


def _counted(kind: re.Pattern[str], text: str) -> str:
    numbers = {name: f"{name[:2]}{number}" for number, name in enumerate(dict.fromkeys(kind.findall(text)), 1)}
    return kind.sub(lambda found: numbers[found[0]], text)


def _differs(name: str, value: Any, before: dict[str, Any]) -> bool:
    return name in _HISTORY or before.get(name) != value


def _changed(name: str, value: Any, before: Any) -> Any:
    if name not in _HISTORY or not before:
        return value
    same = next((place for place, (old, new) in enumerate(zip(before, value, strict=False)) if old != new), len(before))
    return [f"{same} of {len(before)} as before", *value[same:]]


def kept(name: str, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was recorded under this name; or, if that is asked for, what was found is recorded now."""
    path = FOLDER / f"{name}.json"
    if WRITE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    assert path.exists(), f"nothing is recorded as {name}: run with POSTROOM_SNAPSHOTS=write"
    then: list[dict[str, Any]] = json.loads(path.read_text())
    return then
