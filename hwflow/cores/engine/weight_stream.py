"""The weights of an engine as the stream that it takes (:class:`hdl_lib.engine.layer_engine.LayerEngine`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hdl_lib.engine.program import BYTE, Program
from hwflow.cores.engine.engine_layers import EngineLayer
from hwflow.ir.graph import IntArray


def weight_stream(program: Program, layers: Sequence[EngineLayer], order: Sequence[int]) -> IntArray:
    """Return the bytes of a frame, as signed numbers; ``order``: the number of each of the program's layers."""
    known = {number: _bytes_of(program, layers[number]) for number in dict.fromkeys(order)}
    return np.concatenate([known[number] for number in order]).astype(np.int64)


def _bytes_of(program: Program, layer: EngineLayer) -> IntArray:
    lanes = program.lanes
    blocks = -(-layer.outputs // lanes)
    parameters: IntArray = np.zeros((blocks * lanes, program.header * lanes), dtype=np.int8)
    multiplier_bits, addend_bits = program.forms.multiplier_bits, program.forms.addend_bits
    for channel, (multiplier, addend) in enumerate(zip(layer.form.multipliers, layer.form.addends, strict=True)):
        number = (addend & ((1 << addend_bits) - 1)) << multiplier_bits | multiplier & ((1 << multiplier_bits) - 1)
        parameters[channel] = np.frombuffer(number.to_bytes(program.header * lanes, "little"), dtype=np.int8)
    header = parameters.reshape(blocks, lanes, program.header, lanes).swapaxes(1, 2)
    words: IntArray
    if layer.diagonal:
        words = _padded(layer.weights, 1, lanes).reshape(-1, blocks, lanes).swapaxes(0, 1)
    else:
        rows = _padded(layer.weights, 0, lanes).reshape(blocks, lanes, layer.window.taps, layer.inputs)
        words = _padded(rows, 3, lanes).reshape(blocks, lanes, -1, lanes).swapaxes(1, 2)
    taps = words.shape[1] | int(layer.diagonal) << program.width - 1
    first = np.frombuffer(taps.to_bytes(program.width // BYTE, "little"), dtype=np.int8)
    firsts: IntArray = np.broadcast_to(first, (blocks, len(first)))
    return np.concatenate([firsts, header.reshape(blocks, -1), words.reshape(blocks, -1)], axis=1).reshape(-1)


def _padded(weights: IntArray, axis: int, lanes: int) -> IntArray:
    """Return weights with zeros behind the others of an axis, to whole words."""
    more = [(0, -size % lanes if number == axis else 0) for number, size in enumerate(weights.shape)]
    return np.pad(weights.astype(np.int8), more)
