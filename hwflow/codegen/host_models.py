"""The manifest's `host`: the ONNX models that the host runs before and after the design, and the tensors between."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from hwflow.codegen.manifest_file import rational
from hwflow.codegen.top import StreamPort
from hwflow.ir.graph import Fractions, Graph, Port
from hwflow.numerics.functions.nearest_float import nearest_float
from hwflow.onnxspec.resolving.resolved_model import ResolvedModel


@dataclass(frozen=True)
class HostModel:
    """A model for the host: its file beside the manifest, its inputs and outputs by ONNX name."""

    file: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def host_nodes(graph: Graph) -> dict[str, list[str]]:
    """Return the ONNX nodes left to the host, before the inputs and after the outputs: `host` of the report."""
    return {"prefix": list(graph.prefix), "suffix": list(graph.suffix)}


def host_table(
    graph: Graph, model: ResolvedModel, streams: Iterable[StreamPort], prefix: HostModel | None,
    suffix: HostModel | None, *, maps: Mapping[str, Mapping[str, Any]] | None = None,
    any_float: Container[str] = (),
) -> dict[str, Any]:
    """Return `host` of the manifest: the model's own inputs and outputs, and for prefix and suffix file, nodes, inputs
    and outputs; None if the host runs nothing there.

    ``graph`` is the quantized one (it has the scales), ``streams`` are the design's.

    A tensor that passes between host and design has a ``port``, and ``conversion`` says what it is: "none": its
    elements are the stream's integers; "affine": they are scale * (integer - zero point); "keys": the integers are the
    keys of its floats (:mod:`hwflow.numerics.float_keys`); ``range`` has the least and the greatest integer. ``scale``
    and ``zero_point`` (exact, and rounded as ``..._float``) are in row-major order of ``broadcast``, a shape that
    broadcasts over a frame's ``shape``. An output that is ``constant`` is the same for every frame; suffix.onnx gives
    it without an axis of frames. ``maps``: for the model's inputs and outputs that are maps, how the rows of their
    tensor are some; ``any_float``: inputs whose floats may be NaN or infinite.
    """
    formed = {name: {"map": dict(form)} for name, form in (maps or {}).items()}
    prefixes = {s.port.name: s.prefix for s in streams}
    nodes = host_nodes(graph)
    sources = {p.value.origin: _source(p, prefixes) for p in graph.inputs}
    sinks = {p.name: _sink(p, prefixes) for p in graph.outputs}
    return {
        "inputs": [_input(model, name, sources, any_float) | formed.get(name, {}) for name in model.inputs],
        "outputs": [
            _tensor(model, name, sinks) | _constant(model, name) | formed.get(name, {}) for name in model.outputs
        ],
        "prefix": _part(prefix, model, nodes["prefix"], {}, sources),
        "suffix": _part(suffix, model, nodes["suffix"], sinks, {}),
    }


def _part(
    part: HostModel | None, model: ResolvedModel, nodes: Sequence[str], inputs: Mapping[str, dict[str, Any]],
    outputs: Mapping[str, dict[str, Any]],
) -> dict[str, Any] | None:
    if part is None:
        return None
    return {
        "file": part.file,
        "nodes": list(nodes),
        "inputs": [_tensor(model, name, inputs) for name in part.inputs],
        "outputs": [_tensor(model, name, outputs) for name in part.outputs],
    }


def _tensor(model: ResolvedModel, name: str, boundary: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    info = model.values[name]
    return {"name": name, "type": info.dtype, "shape": list(model.frame_shape(name)), **boundary.get(name, {})}


def _input(
    model: ResolvedModel, name: str, boundary: Mapping[str, dict[str, Any]], any_float: Container[str]
) -> dict[str, Any]:
    return _tensor(model, name, boundary) | ({"finite": False} if name in any_float else {})


def _constant(model: ResolvedModel, name: str) -> dict[str, bool]:
    return {"constant": True} if name in model.fixed else {}


def _source(port: Port, prefixes: Mapping[str, str]) -> dict[str, Any]:
    """Describe how the host's tensor becomes the integers of an input port."""
    meaning = port.value.meaning
    if port.floats:
        return _passes(port, prefixes, "keys", *_of_port(port))
    if meaning is None:  # a tensor of integers; scale and zero point are what they mean to the model
        return _passes(port, prefixes, "none", *_of_port(port))
    return _passes(port, prefixes, "affine", meaning.scale, meaning.zero_point)


def _sink(port: Port, prefixes: Mapping[str, str]) -> dict[str, Any]:
    """Describe how an output port's integers become the host's tensor."""
    scale, zero_point = _of_port(port)
    plain = (scale == 1).all() and (zero_point == 0).all()
    return _passes(port, prefixes, "none" if plain else "affine", scale, zero_point)


def _passes(
    port: Port, prefixes: Mapping[str, str], conversion: str, scale: Fractions, zero_point: Fractions
) -> dict[str, Any]:
    interval = port.value.typed.interval
    return {
        "port": prefixes[port.name], "conversion": conversion, "range": [interval.lo, interval.hi],
        **_parameters(scale, zero_point),
    }


def _of_port(port: Port) -> tuple[Fractions, Fractions]:
    """Return scale and zero point of a port, to broadcast over a frame."""
    along = [-1 if axis == port.axis else 1 for axis in range(len(port.shape))]
    scale, zero_point = (np.array(values, dtype=object) for values in (port.scale, port.zero_point))
    return scale.reshape(along if scale.size > 1 else ()), zero_point.reshape(along if zero_point.size > 1 else ())


def _parameters(scale: Fractions, zero_point: Fractions) -> dict[str, Any]:
    scales, zero_points = np.broadcast_arrays(scale, zero_point)
    return {
        "scale": [rational(s) for s in scales.reshape(-1)],
        "zero_point": [rational(z) for z in zero_points.reshape(-1)],
        "scale_float": _floats(scales),
        "zero_point_float": _floats(zero_points),
        "broadcast": list(scales.shape),
    }


def _floats(values: Fractions) -> list[float | None]:
    """Return the nearest floats; None (JSON has no infinity) on overflow."""
    return [number if isfinite(number := nearest_float(v)) else None for v in values.reshape(-1)]
