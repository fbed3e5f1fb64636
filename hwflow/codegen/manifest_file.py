"""manifest.json: the description of an emitted design for simulators and hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from hdl_lib.loading.table_loader import CRC_BYTES
from hwflow.codegen.emitted.packaging import OWN_NAMES, Packaging
from hwflow.codegen.memory_image import memory_of, memory_table, ready_cycles
from hwflow.codegen.tapped_streams import LAYERS_FILE
from hwflow.codegen.top import LOAD_INPUT, LOAD_OUTPUT, StreamPort, Top
from hwflow.cores.chain import ChainAttributes, instances
from hwflow.cores.loadable_tables import rows_of
from hwflow.cores.matrix.neurons import NeuronsAttributes
from hwflow.ir.graph import Graph, Port
from hwflow.schedule.schedule import Schedule
from hwflow.schedule.throughput.circuits import has_delays

FORMAT = 1


def manifest(
    top: Top, schedule: Schedule, model: str, board: str | None, host: Mapping[str, Any] | None = None,
    packaging: Packaging = OWN_NAMES,
) -> dict[str, Any]:
    """Return the manifest of an emitted design; timings in cycles, ``order`` as in :class:`hwflow.ir.graph.Port`.

    ``host``: see :func:`hwflow.codegen.host_models.host_table`; None: the host runs nothing.
    """
    before = schedule.run.before if has_delays(schedule.graph) else 0
    memory = memory_of(schedule.graph)
    if memory is not None:
        before = schedule.run.before + ready_cycles(memory)
    return {
        "format": FORMAT,
        "top": packaging.top,
        "model": model,
        "clock": "clk",
        "reset": "rst",
        "error": "error",
        "sources": [packaging.source],
        "weights": [] if packaging.inline_weights else [packaging.weights(file.name) for file in top.files],
        "inputs": [_stream(s) for s in top.inputs],
        "outputs": [_stream(s) for s in top.outputs],
        "timing": {
            "initiation_interval": schedule.initiation_interval,
            "latency": schedule.latency,
            "frames": len(schedule.run.last_output),
            "last_output": list(schedule.run.last_output),
            **({} if schedule.run.exact else {"exact": False}),
            **({"before": before} if before else {}),
            **({"cyclic": schedule.run.cyclic} if schedule.run.cyclic > 1 else {}),
        },
        "cells": int(schedule.resources.lut + schedule.resources.ff),
        "truth_tables": any(isinstance(node.attributes, NeuronsAttributes) for node in schedule.plan.cores),
        "layers": {"top": packaging.layers, "source": LAYERS_FILE},
        "streams": [tap.table(top.names[tap.node.name]) for tap in top.taps],
        "names": _names(schedule.graph, top),
        "board": board,
        **({} if memory is None else {"memory": memory_table(schedule.graph, memory, packaging)}),
        **({"load": _load(top, packaging)} if top.loaded else {}),
        "host": {"prefix": None, "suffix": None} if host is None else dict(host),
    }


def _load(top: Top, packaging: Packaging) -> dict[str, Any]:
    """Return what is loaded: the ports, and of each table in order its file, the nodes that it is of, and its rows."""
    owners = {file.name: node for node, core in top.cores.items() for file in core.files}
    memories, size = [], 1
    for file in top.loaded:
        form, node = rows_of(file), owners[file.name]
        memories.append({
            "file": packaging.weights(file.name), "instance": top.names[node.name], "nodes": list(node.sources),
            "rows": form.rows, "row_bytes": form.row_bytes,
        })
        size += form.bytes + CRC_BYTES
    return {"input": LOAD_INPUT, "output": LOAD_OUTPUT, "bytes": size, "memories": memories}


def _stream(stream: StreamPort) -> dict[str, Any]:
    pixels, channels = stream.view
    port = stream.port
    scale, zero_point, axis = _scale(port)
    return {
        "name": port.name,
        "port": stream.prefix,
        "value": port.value.origin or port.name,
        "pixels": pixels,
        "channels": channels,
        "lanes": stream.lanes,
        "beats": stream.beats,
        "element": {"width": stream.type.element.bits, "signed": stream.type.element.signed},
        "element_bytes": stream.element_bytes,
        "shape": list(port.shape),
        "order": [int(k) for k in port.order],
        "scale": [rational(s) for s in scale],
        "zero_point": [rational(z) for z in zero_point],
        "axis": axis,
    }


def _scale(port: Port) -> tuple[Sequence[Fraction], Sequence[Fraction], int]:
    """Return scale and zero point of a stream's integers as the model has them, one or one for each index of the axis:
    of an output that is integers, those of its quantizer, which the host does not apply."""
    if port.levels is not None:
        scale, zero_point = port.levels.scale, port.levels.zero_point
        axes = {axis for values in (scale, zero_point) for axis, size in enumerate(values.shape) if size > 1}
        if len(axes) <= 1:
            return tuple(scale.reshape(-1)), tuple(zero_point.reshape(-1)), axes.pop() if axes else 0
    return port.scale, port.zero_point, port.axis


def rational(value: Fraction) -> str:
    """Format exactly, as "numerator/denominator"."""
    return f"{value.numerator}/{value.denominator}"


def _names(graph: Graph, top: Top) -> dict[str, str]:
    """Map each ONNX node to the HDL instances that implement it (comma-separated), and other hardware nodes by their
    own name."""
    table: dict[str, list[str]] = {}
    for node in graph.nodes:
        made = [(node, top.names[node.name])]
        if isinstance(node.attributes, ChainAttributes):
            made = list(zip([m.node for m in node.attributes.members], instances(node.attributes), strict=True))
        for each, instance in made:
            for source in each.sources or (each.name,):
                table.setdefault(source, []).append(instance)
    return {source: ",".join(instances) for source, instances in table.items()}
