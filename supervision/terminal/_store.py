"""Which store a command works on: `--store`, else `$POSTROOM_STORE`."""

import argparse
import os

from actors import ConfigError

STORE = "POSTROOM_STORE"


def add_store(parser: argparse.ArgumentParser) -> None:
    """The option."""
    parser.add_argument(
        "--store", metavar="URL", default=os.environ.get(STORE) or None, help=f"where sessions are kept; else ${STORE}"
    )


def store_of(given: argparse.Namespace) -> str:
    """The store that was named; ConfigError if none was."""
    if given.store is None:
        raise ConfigError(f"no store: write --store sqlite:///agents.db, or set {STORE}")
    return str(given.store)
