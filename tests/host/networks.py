"""Models with float nodes before and behind what is quantized."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from hwflow.loaded_model import Model, load
from tests.models import Array, Builder, kind_of


@dataclass(frozen=True)
class Network:
    """A model, and what passes between host and hardware: integer tensors by ONNX name."""

    proto: onnx.ModelProto
    sources: tuple[str, ...]
    sinks: tuple[str, ...]

    def save(self, path: Path) -> Path:
        onnx.save(self.proto, path)
        return path

    def load(self, folder: Path) -> Model:
        return load(self.save(folder / "model.onnx"))


def classifier(tail: str, opset: int = 19, frames: str | int = "N") -> Network:
    """Images [frames, 3, 4, 2] of 0..255: / 255, - mean, transposed -> dense layer -> `tail`.

    `tail`: "dequantize", "softmax", "log_softmax" or "arg_max".
    """
    b = Builder(opset, ir_version=9)
    x = b.input("image", [frames, 3, 4, 2])
    scaled = b.node("Div", x, b.constant(255.0))
    centred = b.node("Sub", scaled, b.constant(np.array([0.485, 0.456, 0.406]).reshape(3, 1, 1)))
    turned = b.node("Transpose", centred, perm=[0, 2, 3, 1])
    pixels = b.quantize(turned, 1 / 128, 3, "int8", name="pixels")
    flat = b.node("Flatten", b.dequantize(pixels, 1 / 128, 3, "int8"))
    rng = np.random.default_rng(5)
    product = b.node("MatMul", flat, b.weights(rng.integers(-128, 128, (24, 5)), 1 / 64))
    scores = b.quantize(product, 1 / 8, -7, "int8", name="scores")
    y = b.dequantize(scores, 1 / 8, -7, "int8", name="logits")
    match tail:
        case "softmax":
            y = b.node("Softmax", y, name="probabilities", axis=1)
        case "log_softmax":
            y = b.node("LogSoftmax", y, name="log_probabilities", axis=-1)
        case "arg_max":
            y = b.node("ArgMax", y, name="class", axis=1, keepdims=0)
    b.output(y)
    return Network(b.build(), ("pixels",), ("class",) if tail == "arg_max" else ("scores",))


def branches() -> Network:
    """Two inputs and two paths through hardware. `first_out` leaves it and is an output itself; `bent` needs what
    leaves by both; `with_input` needs the float input past the hardware, behind a node that the hardware's input needs,
    too."""
    b = Builder(19, ir_version=9)
    x, y = b.input("x", ["frames", 4]), b.input("y", ["frames", 4], "uint8")
    half = b.node("Mul", x, b.constant(0.5), name="half")
    first = b.node("Relu", b.dequantize(b.quantize(half, 0.25, 3, name="first_in"), 0.25, 3))
    q = b.quantize(first, 0.5, 1, name="first_out")
    r = b.quantize(b.node("Relu", b.dequantize(y, 0.5, 100)), 0.25, 2, name="second_out")
    bent = b.node("PRelu", b.dequantize(q, 0.5, 1, name="a"), b.dequantize(r, 0.25, 2, name="b"), name="bent")
    b.output(q, b.node("Sub", bent, half, name="with_input"), bent)
    return Network(b.build(), ("first_in", "y"), ("first_out", "second_out"))


def real_output(softmax: bool = False) -> Network:
    """A sum that stays real: its integers are accumulators, and their scales differ by channel."""
    b = Builder(19, ir_version=9)
    x = b.dequantize(b.quantize(b.input("x", ["N", 3]), 0.5, 3, name="levels"), 0.5, 3)
    w = b.weights([[1, -2], [3, 4], [-5, 6]], [0.25, 0.75], [0, 0], axis=1)
    sums = b.node("MatMul", x, w, name="sums")
    b.output(b.node("Softmax", sums, name="shares") if softmax else sums)
    return Network(b.build(), ("levels",), ("sums",))


def random_frames(network: Network, frames: int, seed: int = 0) -> dict[str, Array]:
    """Images of 0..255; vectors of quarters."""
    rng = np.random.default_rng(seed)
    found = {}
    for info in network.proto.graph.input:
        shape = (frames, *(d.dim_value for d in info.type.tensor_type.shape.dim[1:]))
        if info.type.tensor_type.elem_type == kind_of("uint8"):
            found[info.name] = rng.integers(0, 256, shape).astype(np.uint8)
        elif info.name == "image":
            found[info.name] = rng.integers(0, 256, shape).astype(np.float32)
        else:
            found[info.name] = rng.integers(-200, 200, shape).astype(np.float32) / 4
    return found
