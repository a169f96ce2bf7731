"""A Google docstring, taken apart: what a function does, and what each argument is."""

import inspect
import re
from typing import Any

_ARGS = re.compile(r"(Args|Arguments|Parameters):\s*\Z")
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def split_docstring(fn: Any) -> tuple[str, dict[str, str]]:
    """The docstring without its `Args:` section, and the section's texts by argument, each as one line."""
    lines = (inspect.getdoc(fn) or "").splitlines()
    start = next((number for number, line in enumerate(lines) if _ARGS.match(line)), None)
    if start is None:
        return "\n".join(lines).strip(), {}
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end])):
        end += 1
    kept = [*lines[:start], *lines[end:]]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip(), _entries(
        [line for line in lines[start + 1 : end] if line.strip()]
    )


def _entries(lines: list[str]) -> dict[str, str]:
    """Entries begin at the least indent; what is indented deeper goes on with the last."""
    found: dict[str, str] = {}
    outer = min(map(_indent, lines), default=0)
    name = None
    for line in lines:
        entry = _ENTRY.match(line.strip()) if _indent(line) == outer else None
        if entry:
            name = entry[1]
            found[name] = entry[2]
        elif name is not None:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found
