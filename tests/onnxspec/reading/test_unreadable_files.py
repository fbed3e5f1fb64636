"""External data that is there and cannot be read, or changes while it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hwflow.onnxspec.reading.external_files import ExternalFiles, File, Problem


def problem(folder: Path, location: str) -> str:
    found = ExternalFiles(folder).find(location)
    assert isinstance(found, Problem)
    return found.message


def test_a_name_that_the_system_cannot_have(tmp_path: Path) -> None:
    assert problem(tmp_path, "a\0b") == r"file 'a\x00b' must be readable, but: embedded null byte"


def test_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "w").write_bytes(bytes(8))
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may read all
    assert problem(tmp_path, "w") == "file 'w' must be readable, but it is not"


def test_a_file_of_holes(tmp_path: Path) -> None:
    with (tmp_path / "w").open("wb") as file:
        file.truncate(1 << 34)
    message = problem(tmp_path, "w")
    assert message == f"file 'w' must hold its data, but of its {1 << 34} bytes 0 are stored"


def test_a_file_that_changes(tmp_path: Path) -> None:
    """Into a shorter one, into a folder, into none."""
    path = tmp_path / "w"
    path.write_bytes(bytes(range(8)))
    files, file = ExternalFiles(tmp_path), File(str(path), 8)
    assert files.read(file, 2, 3) == b"\2\3\4"
    path.write_bytes(bytes(4))
    with pytest.raises(OSError, match="it has only 4 bytes"):
        files.read(file, 2, 3)
    path.unlink()
    path.mkdir()
    with pytest.raises(OSError, match="it is no longer a regular file"):
        files.read(file, 0, 1)
    path.rmdir()
    with pytest.raises(FileNotFoundError):
        files.sha1(file)
