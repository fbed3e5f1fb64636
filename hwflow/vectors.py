"""Golden vectors: what goes into an emitted design and what must come out, as beats."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hwflow import golden
from hwflow.ir.graph import IntArray
from hwflow.sim.manifest import load_design
from hwflow.sim.vectors import Vectors, to_stream

if TYPE_CHECKING:
    from hwflow.compiler import Model


def golden_vectors(model: Model, out: Path, inputs: Mapping[str, IntArray]) -> Vectors:
    """Vectors of the design in ``out`` for integer ``inputs`` by port name, [frames, *shape]."""
    outputs = golden.evaluate(model.quantized, inputs)
    design = load_design(out)
    return Vectors(
        {s.port: to_stream(s, inputs[s.name]) for s in design.inputs},
        {s.port: to_stream(s, outputs[s.name]) for s in design.outputs},
    )
