"""Train a network whose neurons read few inputs, so that they can be truth tables.

    python benchmarks/sparse_jet.py FOLDER

writes ``sparse_jet.onnx``, of the topology of jet taggers (16 features, 5 classes), and ``inputs.npz`` with test frames
and their labels. The data are made here, too: five overlapping clouds of random numbers. It takes a minute, needs numpy
and onnx alone, and prints the accuracy.

A neuron reads a few inputs of 2 bits each, chosen at random, as in LogicNets (Y. Umuroglu et al., "LogicNets:
Co-Designed Neural Networks and Circuits for Extreme-Throughput Applications", FPL 2020). Training rounds weights and
activations, and passes gradients through the rounding (straight-through estimator: Y. Bengio et al., "Estimating or
Propagating Gradients Through Stochastic Neurons for Conditional Computation", 2013).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

FEATURES, CLASSES = 16, 5
LAYERS = ((64, 4), (32, 4), (30, 4), (CLASSES, 6))  # neurons and the inputs that each reads
LEVELS = 3  # greatest activation, of 2 bits; of the last layer, whose integers are compared, of 4:
LAST_LEVELS = 15
WEIGHT_STEP, MOST_STEPS = 1 / 4, 7
INPUT_STEP, INPUT_LOW = 1.0, -1.5  # the levels of a feature are -1.5, -0.5, 0.5 and 1.5
TRAINING, TEST, BATCH, STEPS, RATE = 20_000, 2_000, 256, 6_000, 0.01

Array = npt.NDArray[Any]


def frames(rng: np.random.Generator, means: Array, count: int) -> tuple[Array, Array]:
    """Return features [count, 16] and labels [count]."""
    labels = rng.integers(0, CLASSES, count)
    return (means[labels] + rng.standard_normal((count, FEATURES))).astype(np.float32), labels


def rounded(weights: Array) -> Array:
    """Return the weights in steps of :data:`WEIGHT_STEP`."""
    return np.clip(np.rint(weights / WEIGHT_STEP), -MOST_STEPS, MOST_STEPS) * WEIGHT_STEP


def activations(x: Array, layers: list[list[Array]]) -> tuple[list[Array], list[Array]]:
    """Return what each layer reads, the result last, and the sums before rounding."""
    values, sums = [np.clip(np.rint((x - INPUT_LOW) / INPUT_STEP), 0, LEVELS)], []
    for number, (weights, bias) in enumerate(layers):
        most = LAST_LEVELS if number == len(layers) - 1 else LEVELS
        sums.append(values[-1] @ rounded(weights).T + np.rint(bias / WEIGHT_STEP) * WEIGHT_STEP)
        values.append(np.clip(np.rint(sums[-1]), 0, most))
    return values, sums


def fan_ins(outputs: int, inputs: int, fan_in: int, rng: np.random.Generator) -> Array:
    """Return which inputs each output reads, [outputs, inputs] of 0 and 1: random ones, each as often as the others."""
    mask = np.zeros((outputs, inputs))
    for row in mask:
        often = mask.sum(axis=0) + rng.random(inputs)
        row[np.argsort(often)[:fan_in]] = 1
    return mask


def trained(x: Array, labels: Array, rng: np.random.Generator) -> list[list[Array]]:
    """Return weights [outputs, inputs] and bias of each layer, in real numbers; Adam (D. P. Kingma, J. Ba, 2015)."""
    layers, masks, inputs = [], [], FEATURES
    for outputs, fan_in in LAYERS:
        mask = fan_ins(outputs, inputs, fan_in, rng)
        layers.append([mask * rng.normal(0, 1 / np.sqrt(fan_in), mask.shape), np.full(outputs, LEVELS / 2)])
        masks.append(mask)
        inputs = outputs
    layers[-1][1] += LAST_LEVELS / 2
    moments = [[np.zeros((2, *array.shape)) for array in layer] for layer in layers]
    for step in range(1, STEPS + 1):
        picked = rng.integers(0, len(x), BATCH)
        values, sums = activations(x[picked], layers)
        scores = sums[-1]
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        gradient = shares / shares.sum(axis=1, keepdims=True)
        gradient[np.arange(BATCH), labels[picked]] -= 1
        gradient /= BATCH
        for number in reversed(range(len(layers))):
            weights = layers[number][0]
            slopes = [gradient.T @ values[number] * masks[number], gradient.sum(axis=0)]
            gradient = gradient @ rounded(weights)
            if number:
                gradient = gradient * (np.abs(sums[number - 1] - LEVELS / 2) < LEVELS / 2 + 0.5)
            for array, slope, (first, second) in zip(layers[number], slopes, moments[number], strict=True):
                first += 0.1 * (slope - first)
                second += 0.001 * (slope**2 - second)
                most = np.sqrt(second / (1 - 0.999**step)) + 1e-8
                array -= RATE * (1 - step / STEPS) * first / (1 - 0.9**step) / most
    return layers


def as_onnx(layers: list[list[Array]]) -> onnx.ModelProto:
    """Return the QDQ model."""
    nodes, constants = [], []

    def constant(name: str, value: Any, kind: type) -> str:
        constants.append(numpy_helper.from_array(np.array(value, dtype=kind), name))
        return name

    def add(operator: str, inputs: list[str], output: str) -> str:
        nodes.append(helper.make_node(operator, inputs, [output], name=output))
        return output

    def quantized(value: str, name: str, step: float, kind: int) -> str:
        """Round to whole ``step``, as integers of type ``kind``."""
        constants.append(helper.make_tensor(f"{name}_zero", kind, [], [0]))
        scale = [constant(f"{name}_scale", step, np.float32), f"{name}_zero"]
        codes = add("QuantizeLinear", [value, *scale], f"{name}_codes")
        return add("DequantizeLinear", [codes, *scale], f"{name}_values")

    value = add("Sub", ["features", constant("input_offset", INPUT_LOW, np.float32)], "input_moved")
    value = quantized(value, "input", INPUT_STEP, TensorProto.UINT2)
    for number, (weights, bias) in enumerate(layers, 1):
        name = f"layer{number}"
        scale = constant(f"{name}_weight_scale", WEIGHT_STEP, np.float32)
        operands = [value]
        for what, array, kind in (("weight", weights, np.int8), ("bias", bias, np.int32)):
            codes = np.rint((rounded(array) if what == "weight" else array) / WEIGHT_STEP)
            stored = constant(f"{name}_{what}_codes", codes, kind)
            operands.append(add("DequantizeLinear", [stored, scale], f"{name}_{what}"))
        nodes.append(helper.make_node("Gemm", operands, [f"{name}_sums"], name=f"{name}_sums", transB=1))
        last = number == len(layers)
        value = quantized(f"{name}_sums", name, 1.0, TensorProto.UINT4 if last else TensorProto.UINT2)
    graph = helper.make_graph(
        nodes, "sparse_jet", [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["N", FEATURES])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, ["N", CLASSES])], constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    onnx.checker.check_model(model, full_check=True)
    return model


def main() -> None:
    folder = Path(sys.argv[1])
    rng = np.random.default_rng(2026)
    means = rng.normal(0, 0.55, (CLASSES, FEATURES))
    (x, labels), (test, expected) = (frames(rng, means, count) for count in (TRAINING, TEST))
    layers = trained(x, labels, rng)
    scores = activations(test, layers)[0][-1]
    nearest = ((test[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    for what, found in (("network", scores.argmax(axis=1)), ("nearest mean", nearest)):
        print(f"accuracy of the {what}: {np.mean(found == expected):.3f}")
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(as_onnx(layers), folder / "sparse_jet.onnx")
    np.savez(folder / "inputs.npz", features=test, labels=expected)


if __name__ == "__main__":
    main()
