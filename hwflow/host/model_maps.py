"""Maps at the ends of a loaded model, as its frames have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hwflow.host.runtime.tensors.map_rows import MapRows

if TYPE_CHECKING:
    from hwflow.loaded_model import Model


def input_maps(model: Model) -> dict[str, MapRows]:
    """Return how the rows of inputs are maps, by name."""
    return {name: MapRows(end.keys, end.columns, end.type) for name, end in model.maps.inputs.items()}


def output_maps(model: Model) -> dict[str, MapRows]:
    """Return how the rows of outputs are maps, by name."""
    return {name: MapRows(end.keys, end.columns, end.type) for name, end in model.maps.outputs.items()}


def map_tables(model: Model) -> dict[str, dict[str, Any]]:
    """Return what the manifest has of them, by the names of inputs and outputs."""
    return {name: form.table() for name, form in (input_maps(model) | output_maps(model)).items()}


def own_types(model: Model, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return outputs, arrays by name, with lists of maps where ONNX's type is a sequence of them."""
    maps = output_maps(model)
    return {name: maps[name].maps(array) if name in maps else array for name, array in outputs.items()}
