"""`.env`: settings of a folder, read by the command line only, so that no library call depends on where it runs."""

import os
import re
from pathlib import Path

_LINE = re.compile(r"""\s*(?:export\s+)?(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<value>"[^"]*"|'[^']*'|.*?)\s*(?:\s#.*)?\Z""", re.ASCII)


def parse(text: str) -> dict[str, str]:
    """The settings in the text of a `.env` file: `NAME=value`, quoted or not, `export` allowed; other lines say nothing."""
    found = {}
    for line in text.splitlines():
        setting = None if line.lstrip().startswith("#") else _LINE.match(line)
        if setting:
            value = setting["value"]
            found[setting["name"]] = (
                value[1:-1] if value[:1] in {"'", '"'} and value[-1:] == value[:1] and len(value) > 1 else value
            )
    return found


def load(folder: Path) -> None:
    """Put the settings of the folder's `.env`, if it has a readable one, into the environment; what is set there stays."""
    try:
        text = (folder / ".env").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return
    for name, value in parse(text).items():
        os.environ.setdefault(name, value)
