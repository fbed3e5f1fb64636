"""Tell whether the files of an emitted directory are unchanged, by the SHA-256 of each in manifest.json."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .sim_errors import ManifestError

KEY = "sha256"


@dataclass(frozen=True)
class Changed:
    """A file whose digest differs; ``found``: None where there is no such file."""

    file: str
    expected: str
    found: str | None

    def __str__(self) -> str:
        found = f"not {self.found}" if self.found else "not missing"
        return f"must be as it was written, with SHA-256 {self.expected}, {found}"


def digest(path: Path) -> str | None:
    """Return a file's digest in hexadecimal; None if it cannot be read."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def digests(directory: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the digests of those of the files ``names`` that exist in ``directory``."""
    found = {name: digest(directory / name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def changed_files(directory: Path | str) -> tuple[Changed, ...]:
    """Return the files that differ from manifest.json. Raises :class:`ManifestError` if it has no digests."""
    path = Path(directory).resolve() / "manifest.json"
    try:
        written = json.loads(path.read_text())[KEY]
        pairs = [(str(name), str(value)) for name, value in written.items()]
    except OSError as error:
        raise ManifestError(f"{path}: must be a readable file ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ManifestError(f"{path}: '{KEY}' must hold the files' digests, not be missing") from None
    found = ((name, expected, digest(path.parent / name)) for name, expected in pairs)
    return tuple(Changed(name, expected, now) for name, expected, now in found if now != expected)
