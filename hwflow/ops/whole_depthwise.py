"""Depthwise convolutions by whole windows: one or several a beat, up to all of an image, every weight a constant.

Made of the core of :mod:`hwflow.ops.sliding_window` that sends whole windows and, behind it, that of
:mod:`hwflow.ops.constant_mvu` for a matrix which has, in the row of a channel, its weights in its own columns.
Folding: lanes are whole pixels; the kinds are "dsp", a multiplier block a weight, and "shift_add".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hdl_lib.chained import Chained
from hdl_lib.multiplier import BLOCK
from hwflow.ir.graph import IntArray, Node, Value
from hwflow.ops import constant_mvu
from hwflow.ops.operator import Built, Device, Folding, Resources
from hwflow.ops.sliding_window import SlidingWindow
from hwflow.ops.timing import Process, Timing, Wait

MOST_WEIGHTS = 1_000  # of a layer: more of them at once fit no board
_WINDOWS = SlidingWindow()


def foldings(node: Node, device: Device) -> list[Folding]:
    """As many windows a beat as the sliding window sends."""
    weights: IntArray = node.attributes["weights"]
    if weights.size > MOST_WEIGHTS:
        return []
    channels, windows = weights.shape[1], _window_node(node, None)
    matrix = _matrix_node(node, windows.outputs[0], None)
    kinds = {folding.multiplier for folding in constant_mvu.foldings(matrix, device)}
    narrow = max(node.inputs[0].typed.element.bits, windows.outputs[0].typed.element.bits) <= BLOCK
    found = []
    for folding in _WINDOWS.foldings(windows, device):
        several = folding.output_lanes // weights.size
        for kind in ("dsp", constant_mvu.KIND) if several else ():
            most = constant_mvu.MOST_BLOCKS if kind == "dsp" else constant_mvu.MOST_DIGITS
            by_row = kind == "dsp" and several == 1 and node.attributes["geometry"].kernel[0] == 1
            if kind not in kinds | {"dsp"} or (kind == "dsp" and not narrow) or by_row:
                continue
            if several * weights.size <= most:
                lanes = folding.input_lanes, several * channels
                found.append(Folding(*lanes, several * weights.size, kind))
    return found


def cycles(node: Node, folding: Folding) -> int:
    """Steps of the longest process."""
    windows, (there, _) = _window_node(node, folding), _parts(node, folding)
    return _WINDOWS.cycles(windows, there)


def timing(node: Node, folding: Folding) -> Timing:
    """The processes of both cores; the windows wait for credits of the queue between, the products for windows."""
    (first, second), (windows, matrix) = _parts(node, folding), _nodes(node, folding)
    sends, products = _WINDOWS.timing(windows, first), constant_mvu.timing(matrix, second)
    reader, depth = sends.processes[-1], _depth(node, folding)
    made = np.searchsorted(reader.produces[0], np.arange(reader.steps), side="right")  # beats with the step's own
    reader = replace(reader, waits=(*reader.waits, Wait(len(sends.processes), made - 1 - depth)))
    reader = replace(reader, produces={})
    taken = products.processes[0]
    last = len(sends.processes) - 1
    waits = (Wait(last, sends.processes[-1].produces[0], sends.latency[0]),)
    behind = Process(taken.steps, {}, taken.produces, waits)
    if len(sends.processes) == 1:  # a step a frame takes the image
        reader = replace(reader, consumes=sends.processes[0].consumes)
    return Timing((*sends.processes[:-1], reader, behind), products.latency)


def resources(node: Node, folding: Folding, depth: int, device: Device) -> Resources:
    """Of both cores."""
    (first, second), (windows, matrix) = _parts(node, folding), _nodes(node, folding)
    sent = _WINDOWS.resources(windows, first, [_depth(node, folding)], device)
    return sent + constant_mvu.resources(matrix, second, [depth], device)


def build(node: Node, folding: Folding, depth: int, name: str) -> Built:
    """The two cores."""
    (first, second), (windows, matrix) = _parts(node, folding), _nodes(node, folding)
    sends = _WINDOWS.build(windows, first, [_depth(node, folding)], f"{name}_windows")
    products = constant_mvu.build(matrix, second, [depth], f"{name}_products")
    core = Chained(sends.component, products.component)
    return Built(core, [core.i], [core.o], [*sends.files, *products.files])


def _parts(node: Node, folding: Folding) -> tuple[Folding, Folding]:
    """Of the windows, of the products."""
    weights = node.attributes["weights"]
    several = folding.output_lanes // weights.shape[1]
    windows = Folding(folding.input_lanes, several * weights.size)
    count = several * weights.size * weights.shape[1]
    return windows, Folding(several * weights.size, folding.output_lanes, count, folding.multiplier)


def _nodes(node: Node, folding: Folding) -> tuple[Node, Node]:
    windows = _window_node(node, folding)
    return windows, _matrix_node(node, windows.outputs[0], folding)


def _window_node(node: Node, folding: Folding | None) -> Node:
    names = ("geometry", "pad_value", "rows")
    attributes: dict[str, Any] = {name: node.attributes[name] for name in names if name in node.attributes}
    if folding is not None:
        attributes["folding"] = _parts(node, folding)[0]
    types = _WINDOWS.infer(attributes, [node.inputs[0].typed])
    return Node(node.name, "sliding_window", list(node.inputs), [Value("windows", types[0])], attributes)


def _matrix_node(node: Node, windows: Value, folding: Folding | None) -> Node:
    """What is found of the matrix stays with the node."""
    if "matrix" not in node.attributes:
        weights: IntArray = node.attributes["weights"]
        taps, channels = weights.shape
        matrix = np.zeros((channels, taps, channels), dtype=np.int64)
        matrix[np.arange(channels), :, np.arange(channels)] = weights.T
        node.attributes["matrix"] = {
            "weights": matrix.reshape(channels, -1), "pixels_per_vector": taps,
            "weight_range": node.attributes["weight_range"],
        }
    attributes = node.attributes["matrix"]
    chosen = folding is not None and node.attributes.get("folding") == folding
    attributes["folding"] = _parts(node, folding)[1] if folding is not None and chosen else None
    return Node(node.name, "mvu", [windows], list(node.outputs), attributes)


def _depth(node: Node, folding: Folding) -> int:
    """Of the queue between: what keeps a beat a cycle."""
    latency: int = _WINDOWS.timing(_window_node(node, folding), _parts(node, folding)[0]).latency[0]
    return latency + 1
