"""What is made once for all workers of a session."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def shared_folder(base: Path) -> Path:
    """A folder of all workers of a session; ``base``: pytest's folder of this one."""
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One worker at a time."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
