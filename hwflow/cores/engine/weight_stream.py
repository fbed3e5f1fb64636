"""The weights of an engine as the stream that it takes (:class:`hdl_lib.engine.layer_engine.LayerEngine`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hdl_lib.engine.program import Program
from hwflow.cores.engine.engine_layers import EngineLayer
from hwflow.ir.graph import IntArray


def weight_stream(program: Program, layers: Sequence[EngineLayer], order: Sequence[int]) -> IntArray:
    """Return the bytes of a frame, as signed numbers; ``order``: the number of each of the program's layers."""
    known = {number: _bytes_of(program, layers[number]) for number in dict.fromkeys(order)}
    return np.concatenate([known[number] for number in order]).astype(np.int64)


def _bytes_of(program: Program, layer: EngineLayer) -> IntArray:
    lanes = program.lanes
    blocks = -(-layer.outputs // lanes)
    parameters = np.zeros((blocks * lanes, program.header * lanes), dtype=np.int8)
    multiplier_bits, addend_bits = program.forms.multiplier_bits, program.forms.addend_bits
    for channel, (multiplier, addend) in enumerate(zip(layer.form.multipliers, layer.form.addends, strict=True)):
        number = (addend & ((1 << addend_bits) - 1)) << multiplier_bits | multiplier & ((1 << multiplier_bits) - 1)
        parameters[channel] = np.frombuffer(number.to_bytes(program.header * lanes, "little"), dtype=np.int8)
    header = parameters.reshape(blocks, lanes, program.header, lanes).swapaxes(1, 2)
    if layer.diagonal:
        taps = _padded(layer.weights, 1, lanes).reshape(-1, blocks, lanes).swapaxes(0, 1)
        words = taps[..., np.newaxis] * np.eye(lanes, dtype=np.int8)
    else:
        rows = _padded(layer.weights, 0, lanes).reshape(blocks, lanes, layer.window.taps, layer.inputs)
        words = _padded(rows, 3, lanes).reshape(blocks, lanes, -1, lanes).swapaxes(1, 2)
    return np.concatenate([header, words], axis=1).reshape(-1)


def _padded(weights: IntArray, axis: int, lanes: int) -> IntArray:
    """Return weights with zeros behind the others of an axis, to whole words."""
    more = [(0, -size % lanes if number == axis else 0) for number, size in enumerate(weights.shape)]
    return np.pad(weights.astype(np.int8), more)
