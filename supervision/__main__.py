"""`python -m supervision`, which is also the script `postroom`."""

import sys
from collections.abc import Sequence

try:
    from supervision.terminal._main import main
except ModuleNotFoundError as missing:
    if missing.name is None or missing.name.partition(".")[0] != "rich":
        raise

    def main(arguments: Sequence[str] | None = None) -> int:  # noqa: ARG001  # the same face as the real one
        """Say what the command line needs."""
        sys.stderr.write("postroom: the command line draws with rich, which is not here: pip install 'postroom[cli]'\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
