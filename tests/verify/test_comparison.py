"""compare on real networks and on tiny models whose answer is known by hand."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from hwflow.loaded_model import Model, load
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.passes.infer_types import infer_types
from hwflow.verify.comparison import Comparison, compare
from tests.onnxspec.build import FLOAT, model, node, value

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits" / "model.onnx"
BENCH = ROOT.parent / "shared" / "bench"
INT8, UINT8 = TensorProto.INT8, TensorProto.UINT8


def saved(folder: Path, proto: onnx.ModelProto, **arrays: Any) -> Path:
    """The model's path, its inputs beside it."""
    onnx.save(proto, folder / "model.onnx")
    np.savez(folder / "inputs.npz", **arrays)
    return folder / "model.onnx"


def row(comparison: Comparison, name: str) -> dict[str, Any]:
    (found,) = [r for r in comparison.table()["values"] if r["name"] == name]
    return found


def rescale(first: np.float32, second: np.float32, kind: type, zero: int = 0) -> onnx.ModelProto:
    """x (int8) -> y (``kind``): dequantized with ``first``, quantized with ``second``."""
    return model(
        [
            node("DequantizeLinear", ["x", "s", "zx"], ["d"]),
            node("QuantizeLinear", ["d", "t", "zy"], ["y"], name="last"),
        ],
        [value("x", ["N", 4], INT8)],
        [value("y", ["N", 4], UINT8 if kind is np.uint8 else INT8)],
        {"s": first, "zx": np.int8(3), "t": second, "zy": kind(zero)},
        {"": 19},
    )


def dense_model(rng: np.random.Generator, output: str = "y") -> onnx.ModelProto:
    """x (uint8, zero point 3) -> Gemm, int8 weights, float bias -> Relu -> q (int8, zero point -7) -> MatMul -> y.

    All scales are powers of two, so the evaluator's floats are exact and every other sum is a tie.
    """
    return model(
        [
            node("DequantizeLinear", ["x", "sx", "zx"], ["xr"]),
            node("DequantizeLinear", ["w", "sw", "zw"], ["wr"]),
            node("Gemm", ["xr", "wr", "b"], ["z"], transB=1),
            node("Relu", ["z"], ["r"]),
            node("QuantizeLinear", ["r", "sq", "zq"], ["q"]),
            node("DequantizeLinear", ["q", "sq", "zq"], ["qr"]),
            node("DequantizeLinear", ["v", "sw", "zw"], ["vr"]),
            node("MatMul", ["qr", "vr"], ["y"]),
        ],
        [value("x", ["N", 6], UINT8)],
        [value(output, ["N", 5] if output == "y" else ["N", 4], FLOAT if output == "y" else INT8)],
        {
            "sx": np.float32(0.25), "zx": np.uint8(3), "sw": np.float32(0.125), "zw": np.int8(1),
            "w": rng.integers(-8, 8, (4, 6)).astype(np.int8), "v": rng.integers(-128, 128, (4, 5)).astype(np.int8),
            "b": np.array([0.03125, -4, 8, 2.5], np.float32), "sq": np.float32(0.0625), "zq": np.int8(-7),
        },
        {"": 19},
    )


def test_digits() -> None:
    comparison = compare(DIGITS)
    assert comparison.ok and comparison.unexplained == 0
    assert comparison.inputs.frames == comparison.drift.frames == 360
    names = ["relu1_quantized", "pool1_quantized", "relu2_quantized", "pool2_quantized", "flatten_quantized"]
    assert [r.name for r in comparison.rows] == [*names, "dense_quantized", "logits"]
    assert row(comparison, "logits")["elements"] == 3600
    assert comparison.drift.right is not None and comparison.drift.right > 0.97 * 360
    assert comparison.drift.reference_right is not None
    assert abs(comparison.drift.reference_right - comparison.drift.right) <= comparison.drift.differing
    table = comparison.table()
    assert table["accuracy"] == comparison.drift.right / 360
    assert list(table["values"][0]) == ["name", "elements", "mismatches", "unexplained", "max_lsb"]
    assert any("accuracy against the labels" in line for line in comparison.lines())


@pytest.mark.skipif(not BENCH.is_dir(), reason="the benchmark networks are not here")
@pytest.mark.parametrize("name", ["jet_qdq", "jet_ort_qdq", "jet6_qdq", "cnn_qdq", "cnn_ort_qdq", "tfc_qdq"])
def test_bench(name: str) -> None:
    comparison = compare(BENCH / f"{name}.onnx", inputs=BENCH / f"{name.split('_')[0]}_io.npz")
    assert comparison.unexplained == 0
    assert all(r.elements for r in comparison.rows)
    if "ort" not in name:  # powers of two: floats are exact, nothing may differ anywhere
        assert comparison.mismatches == comparison.drift.differing == 0


@pytest.mark.skipif(not BENCH.is_dir(), reason="the benchmark networks are not here")
@pytest.mark.parametrize("name, frames", [("jet_ort_qdq", 20000), ("cnn_ort_qdq", 2000)])
def test_bench_on_random_frames(name: str, frames: int, tmp_path: Path) -> None:
    """Millions of elements with arbitrary scales: a few fall on the other side in float32, and each is explained."""
    shutil.copy(BENCH / f"{name}.onnx", tmp_path / "model.onnx")  # no inputs.npz beside it
    comparison = compare(tmp_path / "model.onnx", frames=frames)
    assert comparison.unexplained == 0
    assert sum(r.elements for r in comparison.rows) > 2e6
    assert comparison.mismatches < 100 and max(r.max_lsb for r in comparison.rows) <= 1


def test_batches_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compare(DIGITS, frames=20)
    monkeypatch.setattr("hwflow.verify.comparison.BATCH_ELEMENTS", 1)  # one frame per batch
    lines: list[str] = []
    single = compare(DIGITS, frames=20, progress=lines.append)
    assert single.table() == whole.table() and single.drift == whole.drift
    assert lines[-1] == "comparing frames 20 to 20 of 20"


@pytest.mark.parametrize("zero", [0, 1, 127])
def test_ties_with_odd_zero_points_are_equal(tmp_path: Path, zero: int) -> None:
    """(q - 3) / 2: every other quotient is a tie, which rounds to even before the odd zero point is added."""
    frames = np.arange(-128, 128, dtype=np.int8).reshape(-1, 4)
    path = saved(tmp_path, rescale(np.float32(0.5), np.float32(1), np.uint8, zero), x=frames)
    comparison = compare(path)
    assert comparison.table() == {
        "values": [{"name": "y", "elements": 256, "mismatches": 0, "unexplained": 0, "max_lsb": 0}],
        "mismatches": 0, "unexplained": 0, "verdict": "equal", "frames": 64, "inputs": comparison.inputs.origin,
        "differing_frames": 0, "accuracy": None, "reference_accuracy": None, "onnxruntime": None,
        "findings": [],
    }


def test_float_rounding_near_a_boundary_is_explained(tmp_path: Path) -> None:
    """By hand. s = m * 2**-23 with m = 8454721, t = 2 s; q - 3 = 127: exactly 127 / 2 = 63.5, which rounds to 64.

    float32: 127 m = 2**30 + 60 * 128 + 63, spacing 128, so s * 127 rounds down by 63; divided by 2 m that is
    63.5 - 63 / 16909442 = 63.5 - 3.7257e-6; the floats there are 63.5 and 63.5 - 3.8147e-6: the latter, and so 63.
    """
    s = np.float32(8454721 * 2.0**-23)
    frames = np.array([[103, 3, 4, 5], [124, 0, 1, 2]], np.int8)
    proto = rescale(s, np.float32(2) * s, np.int8)
    proto.graph.initializer[1].int32_data[:] = []
    proto.graph.initializer[1].raw_data = np.int8(-3).tobytes()
    comparison = compare(saved(tmp_path, proto, x=frames))
    assert row(comparison, "y") == {"name": "y", "elements": 8, "mismatches": 1, "unexplained": 0, "max_lsb": 1}
    assert comparison.ok
    assert (comparison.drift.frames, comparison.drift.differing, comparison.drift.max_lsb) == (2, 1, 1)


def planted_threshold(path: Path) -> Model:
    """The model with one threshold of its last requantizer one too high."""
    loaded = load(path)
    (last,) = [n for n in loaded.quantized.nodes if n.name == "last"]
    (steps,) = set(last.attributes.steps)
    breaks = list(steps.breaks)
    breaks[10] += 1
    changed = StepFunction(steps.lo, steps.hi, breaks, steps.values)
    last.attributes = replace(last.attributes, steps=(changed,) * len(last.attributes.steps))
    return loaded


def test_a_threshold_off_by_one_is_unexplained(tmp_path: Path) -> None:
    """(q - 3) / 3 in int8: level n begins at q = 3 n + 2 (n - 1/3); the lowest is q = -128, n = -44 (-43.67); the 11th
    threshold is level -33, q = -97."""
    frames = np.arange(-128, 128, dtype=np.int8).reshape(-1, 4)
    path = saved(tmp_path, rescale(np.float32(1), np.float32(3), np.int8), x=frames)
    comparison = compare(planted_threshold(path))
    assert row(comparison, "y") == {"name": "y", "elements": 256, "mismatches": 1, "unexplained": 1, "max_lsb": 1}
    assert not comparison.ok
    (finding,) = comparison.findings
    assert str(finding) == (
        "error: value 'y': the golden model must equal the reference evaluator except for its float rounding, not "
        "differ in 1 of 256 elements; the first: frame 7, index [3]: golden -34, reference -33, exact -33.3333333: "
        "the golden model does not round the exact value [golden-equals-reference]\n"
        "  remedy: report this model as a defect of hwflow"
    )


def test_dense_with_ties_is_equal(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    proto = dense_model(rng)
    frames = rng.integers(0, 256, (200, 6)).astype(np.uint8)
    comparison = compare(saved(tmp_path, proto, x=frames))
    assert comparison.mismatches == comparison.drift.differing == 0
    assert [(r.name, r.elements) for r in comparison.rows] == [("q", 800), ("y", 1000)]
    constants = {i.name: onnx.numpy_helper.to_array(i) for i in proto.graph.initializer}
    sums = (frames.astype(np.int64) - 3) @ (constants["w"].astype(np.int64) - 1).T
    quotients = (sums / 32 + constants["b"]) * 16
    assert ((quotients % 1 == 0.5) & (quotients > 0) & (quotients < 134)).sum() > 20  # ties, to get right


def packed(version: int = 19) -> onnx.ModelProto:
    """:func:`dense_model` with its dense layers in functions (of operator set ``version``) and the second one in the
    branch of an If whose condition is constant."""
    proto = dense_model(np.random.default_rng(5))
    nodes = list(proto.graph.node)
    opset = [onnx.helper.make_opsetid("", version)]
    first = onnx.helper.make_function(
        "org.local", "Dense", ["a", "w", "b", "s", "z"], ["c"],
        [
            node("DequantizeLinear", ["w", "s", "z"], ["v"]),
            node("Gemm", ["a", "v", "b"], ["g"], transB=1),
            node("Relu", ["g"], ["c"], name="activation"),
        ],
        opset,
    )
    second = onnx.helper.make_function(
        "org.local", "Quantize", ["a", "s", "z"], ["q", "d"],
        [node("QuantizeLinear", ["a", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"])], opset,
    )
    branch = onnx.helper.make_graph(
        [
            node("Quantize", ["r", "sq", "zq"], ["", "d"], name="quantize", domain="org.local"),
            node("MatMul", ["d", "vr"], ["m"]),
        ],
        "branch", [], [value("m", ["N", 5])],
    )
    other = onnx.helper.make_graph([node("MatMul", ["r", "vr"], ["m"])], "other", [], [value("m", ["N", 5])])
    del proto.graph.node[:]
    proto.graph.node.extend([
        nodes[0],
        node("Dense", ["xr", "w", "b", "sw", "zw"], ["r"], name="dense", domain="org.local"),
        nodes[6],
        node("Constant", [], ["yes"], value=onnx.helper.make_tensor("yes", onnx.TensorProto.BOOL, [], [True])),
        node("If", ["yes"], ["y"], name="choose", then_branch=branch, else_branch=other),
    ])
    proto.functions.extend([first, second])
    proto.opset_import.append(onnx.helper.make_opsetid("org.local", 1))
    return proto


@pytest.mark.parametrize("version", [19, 21])  # those of the quantizers differ
def test_functions_and_branches(tmp_path: Path, version: int) -> None:
    rng = np.random.default_rng(6)
    frames = rng.integers(0, 256, (100, 6)).astype(np.uint8)
    comparison = compare(saved(tmp_path, packed(version), x=frames))
    assert [r.name for r in comparison.rows] == ["choose/quantize/q", "y"]
    assert comparison.ok and comparison.unexplained == 0
    assert row(comparison, "y")["elements"] == 500
    (tmp_path / "plain").mkdir()
    plain = compare(saved(tmp_path / "plain", dense_model(np.random.default_rng(5)), x=frames))
    assert [r.mismatches for r in plain.rows] == [r.mismatches for r in comparison.rows]


def test_wrong_weights_are_unexplained(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    loaded = load(saved(tmp_path, dense_model(rng), x=rng.integers(0, 256, (50, 6)).astype(np.uint8)))
    first, second = [n for n in loaded.quantized.nodes if n.op == "dense"]
    first.attributes = replace(first.attributes, weights=first.attributes.weights + np.eye(4, 6, dtype=np.int64))
    infer_types(loaded.quantized)
    comparison = compare(loaded)
    assert row(comparison, "q")["unexplained"] > 0
    assert row(comparison, "y")["unexplained"] == 0  # local: it is right for the integers it was given
    assert re.search(r"value 'q'.*float error at most", str(comparison.findings[0]))

    loaded = load(tmp_path / "model.onnx")
    first, second = [n for n in loaded.quantized.nodes if n.op == "dense"]
    second.attributes = replace(second.attributes, weights=second.attributes.weights + np.eye(5, 4, dtype=np.int64))
    infer_types(loaded.quantized)
    comparison = compare(loaded)
    assert row(comparison, "q")["unexplained"] == 0
    assert row(comparison, "y")["unexplained"] > 0
    # one more q - zero point, of the accumulator's scale: at most 127 + 7
    assert 0 < row(comparison, "y")["max_lsb"] <= 134
    assert re.search(r"value 'y'.*float error at most", str(comparison.findings[0]))


def test_integer_output_is_one_row(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    path = saved(tmp_path, dense_model(rng, "q"), x=rng.integers(0, 256, (9, 6)).astype(np.uint8))
    assert [(r.name, r.elements, r.mismatches) for r in compare(path).rows] == [("q", 36, 0)]


def image_model(nodes: list[onnx.NodeProto], shape: list[int], **constants: Any) -> onnx.ModelProto:
    """x (uint8 [N, 2, 6, 6]) -> d (dequantized) -> ``nodes`` -> r -> y (uint8, ``shape``)."""
    return model(
        [
            node("DequantizeLinear", ["x", "s", "z"], ["d"]), *nodes, node("QuantizeLinear", ["r", "t", "z"], ["y"]),
        ],
        [value("x", ["N", 2, 6, 6], UINT8)],
        [value("y", ["N", *shape], UINT8)],
        {"s": np.float32(0.1), "t": np.float32(0.3), "z": np.uint8(5), **constants},
        {"": 13},
        8,
    )


def images(frames: int = 5) -> np.ndarray[Any, Any]:
    return np.random.default_rng(4).integers(0, 256, (frames, 2, 6, 6)).astype(np.uint8)


def test_a_defect_of_the_evaluator_is_named_and_gone_around(tmp_path: Path) -> None:
    pool = node("MaxPool", ["d"], ["r"], kernel_shape=[2, 2], pads=[0, 1, 0, 0])
    comparison = compare(saved(tmp_path, image_model([pool], [2, 5, 6]), x=images()))
    assert comparison.ok
    assert comparison.rows[0].defects == {"maxpool-pads-order"}
    assert "known defect of the reference evaluator, worked around: maxpool-pads-order (y)" in list(comparison.lines())


def test_pool_of_integers(tmp_path: Path) -> None:
    proto = model(
        [
            node("MaxPool", ["x"], ["p"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
            node("DequantizeLinear", ["p", "s", "z"], ["y"]),
        ],
        [value("x", ["N", 2, 6, 6], UINT8)], [value("y", ["N", 2, 6, 6])],
        {"s": np.float32(0.1), "z": np.uint8(5)}, {"": 19},
    )
    comparison = compare(saved(tmp_path, proto, x=images()))
    assert [(r.name, r.elements, r.mismatches, r.defects) for r in comparison.rows] == [
        ("p", 360, 0, {"maxpool-integers"}), ("y", 360, 0, set())
    ]


def test_a_batch_size_in_the_graph_is_respected(tmp_path: Path) -> None:
    """A Reshape to [1, 72] and a convolution before it: frame by frame, the same result as with a free batch."""
    rng = np.random.default_rng(5)
    constants = {
        "w": rng.integers(-128, 128, (2, 2, 3, 3)).astype(np.int8), "sw": np.array([0.01, 0.02], np.float32),
        "zw": np.zeros(2, np.int8), "b": np.array([0.3, -0.7], np.float32),
    }
    tables = []
    for target in (1, -1):
        nodes = [
            node("DequantizeLinear", ["w", "sw", "zw"], ["wr"], axis=0),
            node("Conv", ["d", "wr", "b"], ["c"], pads=[1, 1, 1, 1]),
            node("Reshape", ["c", "target"], ["r"]),
        ]
        proto = image_model(nodes, [72], target=np.array([target, 72], np.int64), **constants)
        comparison = compare(saved(tmp_path, proto, x=images()))
        assert comparison.ok and comparison.drift.frames == 5
        tables.append(comparison.table())
    assert tables[0]["values"][0]["elements"] == tables[1]["values"][0]["elements"] == 5 * 72


def test_clip_of_integers_and_four_bits(tmp_path: Path) -> None:
    """A Clip between the quantizer and the dequantizer, and a 4-bit tensor: compared as ONNX types."""
    proto = model(
        [
            node("DequantizeLinear", ["x", "s", "zx"], ["d"]),
            node("QuantizeLinear", ["d", "t", "zq"], ["q"]),
            node("Clip", ["q", "low", "high"], ["c"]),
            node("DequantizeLinear", ["c", "t", "zq"], ["e"]),
            node("QuantizeLinear", ["e", "t4", "z4"], ["f"]),
            node("DequantizeLinear", ["f", "t4", "z4"], ["y"]),
        ],
        [value("x", ["N", 4], INT8)], [value("y", ["N", 4])],
        {
            "s": np.float32(0.1), "zx": np.int8(3), "t": np.float32(0.07), "zq": np.int8(-1), "low": np.int8(-20),
            "high": np.int8(33), "t4": np.float32(0.3),
            "z4": onnx.helper.make_tensor("z4", TensorProto.INT4, [], [1]),
        },
        {"": 21},
    )
    comparison = compare(saved(tmp_path, proto, x=np.arange(-128, 128, dtype=np.int8).reshape(-1, 4)))
    assert comparison.ok
    assert [(r.name, r.elements) for r in comparison.rows] == [("q", 256), ("c", 256), ("f", 256), ("y", 256)]
    assert row(comparison, "c")["mismatches"] == row(comparison, "y")["mismatches"] == 0


def test_weights_quantized_in_the_graph(tmp_path: Path) -> None:
    """Float weights behind a QuantizeLinear that float32 rounds the other way: a level of weight, and the bound knows.

    By hand. m = 2**23 + 1, t = m * 2**-29, w = (125 m + 3) * 2**-30 (a multiple of 64: a float32). Exactly w / t is
    62.5 + 1.5 / m = 62.5 + 1.8e-7: level 63. Floats there are 3.8e-6 apart, so float32 has 62.5, and rounds to 62. With
    x = 1, 2, -1 and steps of t the products are 63, 126, -63 and 62, 124, -62.
    """
    m = (1 << 23) + 1
    step, weight = np.float32(m * 2.0**-29), np.float32((125 * m + 3) * 2.0**-30)
    assert float(weight) == (125 * m + 3) * 2.0**-30
    proto = model(
        [
            node("DequantizeLinear", ["x", "one", "zero"], ["d"]),
            node("QuantizeLinear", ["w", "t", "zero"], ["wq"]),
            node("DequantizeLinear", ["wq", "t", "zero"], ["wr"]),
            node("MatMul", ["d", "wr"], ["m"]),
            node("QuantizeLinear", ["m", "t", "zero"], ["y"]),
        ],
        [value("x", ["N", 2], INT8)], [value("y", ["N", 2], INT8)],
        {"one": np.float32(1), "zero": np.int8(0), "t": step, "w": np.array([[weight, 0], [0, 0]], np.float32)},
        {"": 19},
    )
    frames = np.array([[1, 0], [2, 5], [-1, 9]], np.int8)
    comparison = compare(saved(tmp_path, proto, x=frames))
    assert row(comparison, "y") == {"name": "y", "elements": 6, "mismatches": 3, "unexplained": 0, "max_lsb": 2}


def test_random_frames_and_float_inputs(tmp_path: Path) -> None:
    proto = model(
        [
            node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]),
            node("QuantizeLinear", ["d", "t", "z"], ["r"]), node("DequantizeLinear", ["r", "t", "z"], ["y"]),
        ],
        [value("x", [1, 4])], [value("y", [1, 4])],
        {"s": np.float32(0.1), "t": np.float32(0.3), "z": np.uint8(5)}, {"": 13}, 8,
    )
    onnx.save(proto, tmp_path / "model.onnx")
    comparison = compare(tmp_path / "model.onnx", seed=7)
    assert comparison.inputs.origin == "random" and comparison.inputs.frames == 16
    assert [(r.name, r.elements, r.unexplained) for r in comparison.rows] == [("r", 64, 0), ("y", 64, 0)]
    assert compare(tmp_path / "model.onnx", seed=7, frames=3).rows[0].elements == 12
