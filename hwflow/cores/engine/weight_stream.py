"""The weights of an engine as the stream that it takes (:class:`hdl_lib.engine.layer_engine.LayerEngine`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hdl_lib.engine.engine_program import BYTE, Layer, Program
from hdl_lib.engine.serial_program import SerialProgram
from hdl_lib.external.fetch_plan import Parts
from hwflow.cores.engine.network_part import Network, Shape
from hwflow.cores.external.weight_memory import Fetched
from hwflow.ir.graph import IntArray
from hwflow.types import IntType


def weight_stream(program: Program, network: Network, order: Sequence[int], *, as_bytes: bool) -> Fetched:
    """Return the weights of a frame as signed numbers; ``order``: the map that each of the program's layers makes.
    ``as_bytes``: where weights have four bits, a number is two of them. Of a layer that is computed in strips they lie
    in the memory once; but a serial engine's lie there for each strip, as what finds parts takes more logic than such
    an engine can spare."""
    serial, bits = isinstance(program, SerialProgram), BYTE if as_bytes else program.weight_bits
    layers = dict(zip(order, program.layers, strict=True))
    known = {
        number: _serial_bytes_of(program, network, number, layer) if serial
        else _together(_numbers_of(program, network, number, layer), program.weight_bits, bits)
        for number, layer in layers.items()
    }
    numbers = order if serial else list(layers)
    weights = np.concatenate([known[number] for number in numbers]).astype(np.int64)
    parts = None
    if len(numbers) < len(order):
        places = {number: place for place, number in enumerate(numbers)}
        sizes = tuple(len(known[number]) for number in numbers)
        parts = Parts(sizes, tuple(places[number] for number in order))
    return Fetched(weights[None], 1, IntType(bits, True), program, parts)


def _numbers_of(program: Program, network: Network, number: int, made: Layer) -> IntArray:
    """Return those of a layer, each with the bits of a weight."""
    layer, lanes = network.layer(number), program.lanes
    source = _places(network.shapes[layer.source], lanes)
    target = _places(network.shapes[number], lanes)
    blocks = int(target[-1]) // lanes + 1
    bits, of_row = program.weight_bits, program.header * lanes
    parameters: IntArray = np.zeros((blocks * lanes, of_row), dtype=np.uint8)
    multiplier_bits, addend_bits = program.forms.multiplier_bits, program.forms.addend_bits
    for place, multiplier, addend in zip(target, layer.form.multipliers, layer.form.addends, strict=True):
        both = (addend & ((1 << addend_bits) - 1)) << multiplier_bits | multiplier & ((1 << multiplier_bits) - 1)
        parameters[place] = _split(both, of_row, bits)
    header = parameters.reshape(blocks, lanes, program.header, lanes).swapaxes(1, 2)
    words: IntArray
    if layer.diagonal:
        columns = layer.window.kernel[1] if made.slides else 1  # the newest one comes first
        count = program.needed(made) - program.header
        taps = layer.weights[: count * columns].reshape(count, columns, layer.outputs)[:, ::-1]
        words = np.zeros((count, max(1, program.columns), blocks * lanes), dtype=np.uint8)
        words[:, :columns, target] = taps
        words = words.reshape(count, -1, blocks, lanes).transpose(2, 0, 1, 3)
    else:
        width = (int(source[-1]) // lanes + 1) * lanes
        words = np.zeros((blocks * lanes, layer.window.taps, width), dtype=np.uint8)
        words[:layer.outputs, :, source] = layer.weights.reshape(layer.outputs, layer.window.taps, layer.inputs)
        words = words.reshape(blocks, lanes, -1, lanes).swapaxes(1, 2)
    count = words.shape[1] | int(layer.diagonal) << program.width - 1
    first = _split(count, program.width // bits, bits)
    firsts: IntArray = np.broadcast_to(first, (blocks, len(first)))
    numbers: IntArray = np.concatenate([firsts, header.reshape(blocks, -1), words.reshape(blocks, -1)], axis=1)
    return numbers.reshape(-1)


def _together(numbers: IntArray, few: int, bits: int) -> IntArray:
    """Return numbers of ``few`` bits as signed ones of more, the first of each in its lowest bits."""
    shifts = few * np.arange(bits // few, dtype=np.uint8)
    both = ((numbers.reshape(-1, len(shifts)) & ((1 << few) - 1)) << shifts).sum(axis=1, dtype=np.uint8)
    result: IntArray = (both << BYTE - bits).view(np.int8) >> BYTE - bits
    return result


def _split(value: int, count: int, bits: int) -> IntArray:
    """Return a number as so many of fewer bits, the lowest first."""
    return np.array([value >> bits * place & ((1 << bits) - 1) for place in range(count)], dtype=np.uint8)


def _serial_bytes_of(program: Program, network: Network, number: int, made: Layer) -> IntArray:
    """Return those of a serial engine: rows in words of their own for multiplier and addend, then those of each step.
    """
    layer, lanes, rows = network.layer(number), program.lanes, program.header // 2
    source = _places(network.shapes[layer.source], lanes)
    target = _places(network.shapes[number], lanes)
    channels = lanes if layer.diagonal else rows  # of a block
    blocks = int(target[-1]) // channels + 1
    parameters: IntArray = np.zeros((blocks * channels, 2, rows), dtype=np.int8)
    for place, multiplier, addend in zip(target, layer.form.multipliers, layer.form.addends, strict=True):
        for kind, value in enumerate((multiplier, addend)):
            parameters[place, kind] = np.frombuffer(value.to_bytes(rows, "little", signed=True), dtype=np.int8)
    taps, words = 1 if made.same else layer.window.taps, int(source[-1]) + 1
    weights: IntArray = np.zeros((blocks * channels, taps, 1 if layer.diagonal else words), dtype=np.int8)
    if layer.diagonal:
        weights[target, :, 0] = layer.weights[:taps].T
    else:
        weights[target[:, np.newaxis, np.newaxis], np.arange(taps)[:, np.newaxis], source] = (
            layer.weights.reshape(layer.outputs, taps, layer.inputs)
        )
    found: IntArray = np.zeros((blocks, program.header + taps * weights.shape[2], rows), dtype=np.int8)
    found[:, : 2 * channels] = parameters.reshape(blocks, 2 * channels, rows)
    found[:, program.header :, :channels] = weights.reshape(blocks, channels, -1).swapaxes(1, 2)
    return found.reshape(-1)


def _places(shape: Shape, lanes: int) -> IntArray:
    """Return where in a pixel's words the channels of a map are: each part begins with a word."""
    found, first = [], 0
    for channels in shape.parts:
        found.append(np.arange(first, first + channels))
        first += -(-channels // lanes) * lanes
    return np.concatenate(found)
