"""Every linear operator that hardware is made of is quantized, with a scale for each output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import hwflow
from tests.quantization.networks import Network

RNG = np.random.default_rng(0)


def weights(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


@dataclass
class Case:
    """A network of one linear operator with weights ``w``. ``axis``: the one along which their scales differ (None:
    there is one). ``bias``: the bits of the bias ``b``, 0 for none or a float one."""

    network: Network
    output: str
    shape: Sequence[int | str]
    input: Sequence[int]
    axis: int | None
    bias: int = 0


def transposed(axes: int, groups: int = 1, inputs: int = 4, outputs: int = 3, bias: bool = True) -> Case:
    network = Network(["N", inputs, *[4] * axes])
    operands = [network.constant(weights(inputs, outputs, *[3] * axes), name="w")]
    if bias:
        operands.append(network.constant(weights(groups * outputs), name="b"))
    y = network.node(
        "ConvTranspose", "x", *operands, group=groups, strides=[2] * axes, pads=[1] * 2 * axes,
        output_padding=[1] * axes,
    )
    axis = 0 if groups == inputs else 1
    whole = bias and (inputs, outputs)[axis] == groups * outputs
    return Case(network, y, ["N", groups * outputs, *[8] * axes], [inputs, *[4] * axes], axis, 32 if whole else 0)


def matmul(w: np.ndarray, input: Sequence[int], shape: Sequence[int], axis: int | None, *, left: bool = False) -> Case:
    network = Network(["N", *input])
    operands = ["x", network.constant(w, name="w")]
    y = network.node("MatMul", *(operands[::-1] if left else operands))
    return Case(network, y, ["N", *shape], input, axis)


def gemm(turned: int) -> Case:
    network = Network(["N", 5])
    w = network.constant(weights(*((3, 5) if turned else (5, 3))), name="w")
    y = network.node("Gemm", "x", w, network.constant(weights(3), name="b"), transB=turned)
    return Case(network, y, ["N", 3], [5], 1 - turned, 32)


CASES: dict[str, Callable[[], Case]] = {
    "ConvTranspose 1-D": lambda: transposed(1),
    "ConvTranspose 2-D": lambda: transposed(2),
    "ConvTranspose 3-D": lambda: transposed(3, bias=False),
    "ConvTranspose, groups": lambda: transposed(2, groups=2),
    "ConvTranspose, one group per channel": lambda: transposed(2, groups=4, outputs=1),
    "ConvTranspose, one group per channel, several outputs": lambda: transposed(1, groups=4, outputs=2),
    "MatMul on the left": lambda: matmul(weights(6, 4), [4, 5], [6, 5], 0, left=True),
    "MatMul, one matrix per channel": lambda: matmul(weights(2, 5, 3), [2, 4, 5], [2, 4, 3], 2),
    "MatMul on the left, one matrix per channel": lambda: matmul(weights(2, 3, 4), [2, 4, 5], [2, 3, 5], 1, left=True),
    "MatMul, a vector": lambda: matmul(weights(5), [4, 5], [4], None),
    "Gemm": lambda: gemm(0),
    "Gemm, transB": lambda: gemm(1),
}


@pytest.mark.parametrize("name", CASES)
def test_linear_operators(tmp_path, name):
    case = CASES[name]()
    case.network.save(tmp_path / "m.onnx", case.output, case.shape)
    np.savez(tmp_path / "x.npz", x=RNG.normal(size=(12, *case.input)))
    done = hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx")
    proto = onnx.load(tmp_path / "q.onnx")
    found = {i.name: numpy_helper.to_array(i) for i in proto.graph.initializer}
    # Symmetric: the greatest weight of an output is 127 steps, and every weight within half a step.
    w = next(numpy_helper.to_array(t) for t in case.network.constants if t.name == "w")
    others = tuple(a for a in range(w.ndim) if a != case.axis)
    steps = np.abs(w).max(axis=others) / 127
    np.testing.assert_allclose(found["w_scale"], steps, rtol=1e-5)
    step = steps.reshape([-1 if a == case.axis else 1 for a in range(w.ndim)])
    assert np.abs(found["w_quantized"] * step - w).max() <= 0.5001 * steps.max()
    assert ("b_quantized" in found and found["b_quantized"].dtype == np.int32) == (case.bias == 32)
    # 8 bits of input, weights and output give some 40 dB.
    assert done.qualities[0].snr_db is not None and done.qualities[0].snr_db > 35
    assert done.compiles and hwflow.compare(tmp_path / "q.onnx", inputs=tmp_path / "x.npz").unexplained == 0
    assert done.host is not None and done.host.macs == 0 and done.host.total > 0


def encoder_and_decoder(tied: bool) -> Network:
    network = Network(["N", 1, 8, 8])
    w = network.constant(weights(4, 1, 3, 3), name="w")
    code = network.node("Conv", "x", w, network.constant(weights(4)), strides=[2, 2], pads=[1] * 4)
    code = network.node("Relu", code)
    back = w if tied else network.constant(weights(4, 1, 3, 3))
    image = network.node("ConvTranspose", code, back, strides=[2, 2], pads=[1] * 4, output_padding=[1, 1])
    network.node("Sigmoid", image, result="image")
    return network


@pytest.mark.parametrize("tied", [False, True])
def test_an_autoencoder(tmp_path, tied):
    """Its decoder is hardware's but for the last function; weights that encoder and decoder share have scales along
    another axis in each."""
    encoder_and_decoder(tied).save(tmp_path / "m.onnx", "image", ["N", 1, 8, 8])
    np.savez(tmp_path / "x.npz", x=RNG.random((20, 1, 8, 8)))
    done = hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx")
    assert done.host is not None
    assert [(node.op_type, count) for node, count in done.host.nodes] == [
        ("QuantizeLinear", 0), ("DequantizeLinear", 0), ("Sigmoid", 0)
    ]
    # 16 pixels by 4 channels by 9 taps each: of the convolution's results and of the transposed one's inputs.
    assert done.host.total == 2 * 16 * 4 * 9
    assert list(done.lines())[-2:] == [
        "left to the host: 'x_QuantizeLinear' (QuantizeLinear), 'v2_DequantizeLinear' (DequantizeLinear), 'sigmoid3' "
        "(Sigmoid); none of the 1,152 multiply-accumulates of a frame",
        "hwflow can compile it: see 'hwflow synth'",
    ]
    sizes = sorted(
        numpy_helper.to_array(i).size for i in onnx.load(tmp_path / "q.onnx").graph.initializer
        if i.name.startswith("w") and i.name.endswith("_scale")
    )
    assert sizes == ([1, 4] if tied else [4])
    assert hwflow.compare(tmp_path / "q.onnx", inputs=tmp_path / "x.npz").unexplained == 0


def test_a_unet(tmp_path):
    """Transposed convolution, normalization and Relu in mid-network, a skip around them."""
    network = Network(["N", 1, 8, 8])
    first = network.node("Relu", network.node("Conv", "x", network.constant(weights(4, 1, 3, 3)), pads=[1] * 4))
    down = network.node("MaxPool", first, kernel_shape=[2, 2], strides=[2, 2])
    low = network.node("Relu", network.node("Conv", down, network.constant(weights(8, 4, 3, 3)), pads=[1] * 4))
    up = network.node("ConvTranspose", low, network.constant(weights(8, 4, 2, 2)), strides=[2, 2])
    factors = (network.constant(np.abs(weights(4)) + 0.5) for _ in range(4))
    up = network.node("Relu", network.node("BatchNormalization", up, *factors))
    joined = network.node("Concat", up, first, axis=1)
    y = network.node("Conv", joined, network.constant(weights(2, 8, 1, 1)), network.constant(weights(2)))
    network.save(tmp_path / "m.onnx", y, ["N", 2, 8, 8])
    np.savez(tmp_path / "x.npz", x=RNG.normal(size=(12, 1, 8, 8)))
    done = hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx")
    operators = [n.op_type for n in onnx.load(tmp_path / "q.onnx").graph.node]
    place = operators.index("ConvTranspose")
    pair = ["QuantizeLinear", "DequantizeLinear"]
    # The normalization is in the weights, and no rounding before the Relu.
    assert operators[place - 2 : place + 4] == [*pair, "ConvTranspose", "Relu", *pair]
    assert done.compiles and done.host is not None and done.host.macs == 0
    assert hwflow.compare(tmp_path / "q.onnx", inputs=tmp_path / "x.npz").unexplained == 0


def test_products_of_two_streams(tmp_path):
    """Both operands are integers, and nothing but what is read as integers is rounded."""
    network = Network(["N", 4, 4])
    keys = network.node("MatMul", "x", network.constant(weights(4, 4)))
    shares = network.node("Softmax", network.node("MatMul", "x", keys), axis=-1)
    network.save(tmp_path / "m.onnx", network.node("MatMul", shares, "x"), ["N", 4, 4])
    np.savez(tmp_path / "x.npz", x=RNG.normal(size=(12, 4, 4)))
    done = hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx")
    assert done.quantized == ("x", "v0", "v1", "v2", "y")
    pairs = [n.op_type for n in onnx.load(tmp_path / "q.onnx").graph.node].count("QuantizeLinear")
    assert pairs == 5
    # Shares have 255 steps up to the greatest one met, not up to 1.
    found = {i.name: numpy_helper.to_array(i) for i in onnx.load(tmp_path / "q.onnx").graph.initializer}
    assert 0 < found["v2_scale"] < 1 / 255 and found["v2_zero_point"] == 0


def test_onnxruntime_is_left_as_it_was(tmp_path: Path) -> None:
    from onnxruntime.quantization.registry import QDQRegistry

    before = dict(QDQRegistry)
    case = CASES["Gemm"]()
    case.network.save(tmp_path / "m.onnx", case.output, case.shape)
    np.savez(tmp_path / "x.npz", x=RNG.normal(size=(4, *case.input)))
    hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx")
    assert before == QDQRegistry
