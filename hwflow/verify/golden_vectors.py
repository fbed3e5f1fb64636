"""Golden vectors: stimuli and expected outputs of an emitted design, as beats."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hwflow.ir.graph import IntArray
from hwflow.sim.manifest import load_design
from hwflow.sim.vectors import Vectors
from hwflow.verify import golden

if TYPE_CHECKING:
    from hwflow.loaded_model import Model


def golden_vectors(model: Model, out: Path, inputs: Mapping[str, IntArray]) -> Vectors:
    """Return vectors of the design in ``out`` for integer ``inputs`` by port name, [frames, *shape]."""
    return Vectors.of(load_design(out), inputs, golden.evaluate(model.quantized, inputs))
