"""SHA-256 of a model's files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hwflow.onnxspec import read_model
from hwflow.onnxspec.reading.external_loading import external_locations
from hwflow.sim.digests import digest


def model_digests(path: Path) -> dict[str, Any]:
    """Return ``sha256`` of a model's file, and ``external_sha256`` of each of its external data files, by the name that
    the model has for it."""
    locations = external_locations(read_model(path))
    return {
        "sha256": digest(path),
        "external_sha256": {location: digest(path.parent / location) for location in locations},
    }
