"""An emitted directory around ``plus_one.v``, for tests of boards and toolchains."""

from __future__ import annotations

import json
from pathlib import Path


def stream(name: str, port: str, **changes) -> dict:
    """One entry of the manifest's ``inputs`` or ``outputs``: four beats of one unsigned byte."""
    return {
        "name": name, "port": port, "pixels": 4, "channels": 1, "lanes": 1, "beats": 4,
        "element": {"width": 8, "signed": False}, "element_bytes": 1, "shape": [1, 4], "order": [0, 1, 2, 3], **changes,
    }


def emit(out: Path) -> Path:
    """Write ``design.v``, ``weights/`` and ``manifest.json``."""
    (out / "weights").mkdir(parents=True)
    (out / "design.v").write_text((Path(__file__).parent / "plus_one.v").read_text())
    (out / "weights" / "increment.mem").write_text("01\n")
    manifest = {
        "format": 1, "top": "hwflow_top", "model": "plus_one", "clock": "clk", "reset": "rst", "error": "error",
        "sources": ["design.v"], "weights": ["weights/increment.mem"],
        "inputs": [stream("x", "s_axis")], "outputs": [stream("y", "m_axis")],
        "timing": {"initiation_interval": 4, "latency": 2, "frames": 4},
        "model_file": {"sha256": bytes(range(32)).hex()}, "versions": {"hwflow": "1.2.3"},
    }
    (out / "manifest.json").write_text(json.dumps(manifest))
    return out
