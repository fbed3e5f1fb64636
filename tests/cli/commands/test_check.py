"""What `check` does besides what it finds."""

from __future__ import annotations

import gc
from pathlib import Path


def test_the_garbage_collector_is_left_as_it_was(hwflow, tmp_path: Path) -> None:
    """Else a program that checks models in its own process never frees a cycle again."""
    path = tmp_path / "m.onnx"
    path.write_bytes(b"no model")
    assert gc.isenabled()
    hwflow("check", path, path)
    assert gc.isenabled()
