"""Files for what has to be on a disk, thrown away afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def a_file() -> Iterator[Path]:
    """The path of a database that is not there yet; `TMPDIR` says on which disk."""
    with TemporaryDirectory(prefix="postroom-") as folder:
        yield Path(folder) / "sessions.db"


def size(path: Path) -> int:
    """Bytes of a database, with what is beside it."""
    return sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*"))
