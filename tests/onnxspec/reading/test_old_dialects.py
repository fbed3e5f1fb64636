"""Old spellings of the QONNX dialect: what they mean, by an own evaluator that knows no transposes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hwflow.api.checking import check
from hwflow.api.compiler import compile, dataflow
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.loaded_model import load
from hwflow.onnxspec.reading.old_dialects import modernize
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from tests.operators.ml.ensembles import Branch, Leaf, model_of, named_attributes

GENERAL, LAST = "qonnx.custom_op.general", "qonnx.custom_op.channels_last"
RNG = np.random.default_rng(0)
SIGNED = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND"}
STEP = 0.25


def network(*, last: bool, old: bool = False, axes: int = 2) -> onnx.ModelProto:
    """x -> 4 bits -> Conv (of two groups) -> BatchNormalization -> Relu -> 4 bits -> MaxPool -> AveragePool -> 4 bits,
    with channels on the last axis or on axis 1. The same weights whatever is asked for."""
    rng = np.random.default_rng(5)
    w = rng.integers(-7, 8, (4, 1, *[3] * axes)).astype(np.float32) / 4
    constants = {
        "s": np.float32(STEP), "z": np.float32(0), "four": np.float32(4),
        "w": np.moveaxis(w, 1, -1) if last else w,
        "gamma": rng.random(4) + 0.5, "beta": rng.normal(size=4), "mean": rng.normal(size=4),
        "var": rng.random(4) + 0.5,
    }  # fmt: skip
    general, windows = "" if old else GENERAL, LAST if last else ""

    def quant(source: str, target: str) -> onnx.NodeProto:
        return helper.make_node("Quant", [source, "s", "z", "four"], [target], f"to_{target}", domain=general, **SIGNED)

    def window(
        op: str, inputs: list[str], target: str, size: int, stride: int, pad: int, **more: int
    ) -> onnx.NodeProto:
        return helper.make_node(
            op, inputs, [target], f"to_{target}", domain=windows, kernel_shape=[size] * axes, strides=[stride] * axes,
            pads=[pad] * 2 * axes, **more,
        )

    nodes = [
        quant("x", "q"), quant("w", "qw"),
        window("Conv", ["q", "qw"], "a", 3, 1, 1, group=2),
        helper.make_node(
            "BatchNormalization", ["a", "gamma", "beta", "mean", "var"], ["b"], "norm", domain=windows, epsilon=0.5
        ),
        helper.make_node("Relu", ["b"], ["r"], "relu"), quant("r", "p"),
        window("MaxPool", ["p"], "m", 2, 2, 0), window("AveragePool", ["m"], "v", 2, 1, 0), quant("v", "y"),
    ]
    spatial, done = [8] * axes, [3] * axes
    shapes = {"x": ["N", 2, *spatial], "y": ["N", 4, *done]}
    if last:
        shapes = {"x": ["N", *spatial, 2], "y": ["N", *done, 4]}
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    tensors = [numpy_helper.from_array(np.asarray(v, np.float32), n) for n, v in constants.items()]
    domains = {"": 19} | ({} if old else {GENERAL: 1}) | ({LAST: 1} if last else {})
    graph = helper.make_graph(nodes, "net", infos[:1], infos[1:], tensors)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid(*entry) for entry in domains.items()], ir_version=9
    )


def levels(x: np.ndarray) -> np.ndarray:
    return STEP * np.clip(np.rint(x / STEP), -8, 7)


def by_hand(x: np.ndarray, proto: onnx.ModelProto) -> np.ndarray:
    """The network of two axes on x [frames, rows, columns, channels], place by place."""
    c = {t.name: numpy_helper.to_array(t).astype(np.float64) for t in proto.graph.initializer}
    w = levels(c["w"])  # [outputs, rows, columns, channels of a group]
    padded = np.pad(levels(x), ((0, 0), (1, 1), (1, 1), (0, 0)))
    a = np.zeros((len(x), 8, 8, 4))
    for output in range(4):
        channels = [0] if output < 2 else [1]
        for i in range(8):
            for j in range(8):
                a[:, i, j, output] = (padded[:, i : i + 3, j : j + 3][..., channels] * w[output]).sum(axis=(1, 2, 3))
    b = c["gamma"] * (a - c["mean"]) / np.sqrt(c["var"] + 0.5) + c["beta"]
    p = levels(np.maximum(b, 0))
    m = p.reshape(len(x), 4, 2, 4, 2, 4).max(axis=(2, 4))
    return levels((m[:, :-1, :-1] + m[:, :-1, 1:] + m[:, 1:, :-1] + m[:, 1:, 1:]) / 4)


def save(proto: onnx.ModelProto, folder: Path) -> Path:
    onnx.save(proto, folder / "model.onnx")
    return folder / "model.onnx"


def hardware(path: Path, x: np.ndarray) -> np.ndarray:
    loaded = load(path)
    return model_outputs(loaded, golden.evaluate(loaded.quantized, port_inputs(loaded, {"x": x})))["y"]


@pytest.mark.parametrize("old", [False, True])
def test_channels_last_by_hand(tmp_path, old):
    proto = network(last=True, old=old)
    x = RNG.normal(size=(20, 8, 8, 2)).astype(np.float32)
    found, expected = hardware(save(proto, tmp_path), x), by_hand(x, proto)
    assert found.shape == expected.shape and len(np.unique(expected)) > 5
    np.testing.assert_array_equal(found, expected)
    assert compare(tmp_path / "model.onnx", frames=20).ok


@pytest.mark.parametrize("axes", [1, 3])
def test_other_axes_as_channels_first(tmp_path, axes):
    x = RNG.normal(size=(6, *[8] * axes, 2)).astype(np.float32)
    found = hardware(save(network(last=True, axes=axes), tmp_path), x)
    expected = hardware(save(network(last=False, axes=axes), tmp_path), np.moveaxis(x, -1, 1))
    np.testing.assert_array_equal(found, np.moveaxis(expected, 1, -1))


def test_transposes_cost_nothing(tmp_path):
    """The same hardware as of channels first."""
    of = [dataflow(load(save(network(last=last), tmp_path)).quantized) for last in (True, False)]
    assert [n.op for n in of[0].nodes] == [n.op for n in of[1].nodes]


def test_the_warnings(tmp_path):
    found = [f for f in check(save(network(last=True, old=True), tmp_path)) if f.rule == "old-dialect"]
    assert {f.severity for f in found} == {"warning"}
    assert [(f.where, f.message) for f in found][:2] == [
        (
            "node 'to_q' (Quant)",
            f"the node and 3 more of its kind must be in domain '{GENERAL}', not in the default one: taken as if it "
            "were",
        ),
        (
            "node 'to_a' (Conv)",
            f"the node must be an operator of ai.onnx, with channels on axis 1, not of '{LAST}': taken for that "
            "operator between transposes",
        ),
    ]
    assert [f.where for f in found][2:] == [
        "node 'norm' (BatchNormalization)", "node 'to_m' (MaxPool)", "node 'to_v' (AveragePool)"
    ]
    assert not any(f.severity != "warning" for f in check(tmp_path / "model.onnx"))
    assert [f for f in check(save(network(last=False), tmp_path)) if f.rule == "old-dialect"] == []


@pytest.mark.parametrize("declared", [1, 3])
def test_targets_that_are_declared_as_one(tmp_path, declared):
    """As skl2onnx declares the result of a forest of three targets."""
    trees = [Branch("LEQ", 0, 0.5, False, Leaf([(0, 1.0), (2, 4.0)]), Leaf([(1, 2.0)]))]
    attributes = named_attributes(trees, "target") | {"n_targets": 3}
    proto = model_of("TreeEnsembleRegressor", attributes, 1, [("y", TensorProto.FLOAT, [declared])])
    path = save(proto, tmp_path)
    found = [finding for finding in check(path) if finding.rule == "declared-targets"]
    assert [(f.where, f.severity) for f in found] == ([] if declared == 3 else [("value 'y'", "warning")])
    model = load(path)
    assert model.resolved.values["y"].shape == (1, 3)
    arrays = {"x": np.array([[0.0], [1.0]], np.float32)}
    outputs = model_outputs(model, golden.evaluate(model.quantized, port_inputs(model, arrays)), arrays)
    assert outputs["y"].tolist() == [[1, 0, 4], [0, 2, 0]]


def test_what_is_not_old_stays():
    proto = network(last=False)
    before = proto.SerializeToString()
    assert modernize(proto) == [] and proto.SerializeToString() == before


def test_a_function_of_that_name_is_no_quantizer():
    proto = network(last=False, old=True)
    body = [helper.make_node("Identity", ["a"], ["b"])]
    names = ["a", "s", "z", "four"]
    version = helper.make_opsetid("", 19)
    proto.functions.append(helper.make_function("", "Quant", names, ["b"], body, [version], ["signed", "narrow"]))
    assert modernize(proto) == [] and {node.domain for node in proto.graph.node} == {""}


def test_functions_and_branches():
    """Wherever the nodes stand; a function imports what its nodes need."""
    inner = helper.make_graph(
        [helper.make_node("MaxPool", ["x"], ["t"], "pool", domain=LAST, kernel_shape=[2, 2])], "then", [],
        [helper.make_tensor_value_info("t", TensorProto.FLOAT, None)],
    )
    nodes = [
        helper.make_node("MaxPool", ["x"], ["m"], "first", domain=LAST, kernel_shape=[2, 2]),
        helper.make_node("If", ["c"], ["y"], "branch", then_branch=inner, else_branch=inner),
    ]
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4, 4, 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array(True), "c")],
    )
    version = helper.make_opsetid("", 19)
    quant = helper.make_node("Quant", ["a", "s", "z", "n"], ["b"], **SIGNED)
    function = helper.make_function("local", "F", ["a", "s", "z", "n"], ["b"], [quant], [version])
    proto = helper.make_model(graph, opset_imports=[version, helper.make_opsetid(LAST, 1)], functions=[function])
    assert len(modernize(proto)) == 2
    kinds = ["Transpose", "MaxPool", "Transpose"]
    assert [n.op_type for n in proto.graph.node] == [*kinds, "If"]
    branches = [a.g for a in proto.graph.node[3].attribute]
    assert [[n.op_type for n in g.node] for g in branches] == [kinds, kinds]
    assert {n.domain for g in (proto.graph, *branches) for n in g.node} == {""}
    everywhere = [n for g in (proto.graph, *branches) for n in g.node if n.op_type == "Transpose"]
    assert len({n.name for n in everywhere}) == len(everywhere)
    assert proto.functions[0].node[0].domain == GENERAL
    assert {o.domain for o in proto.functions[0].opset_import} == {"", GENERAL}


def test_a_rank_that_nothing_tells(tmp_path):
    proto = network(last=True)
    proto.graph.initializer.append(numpy_helper.from_array(np.array([0, 8, 8, 4]), "same"))
    proto.graph.node.insert(3, helper.make_node("Reshape", ["a", "same"], ["shaped"], "reshape"))
    proto.graph.node[4].input[0] = "shaped"
    (left,) = [f for f in modernize(proto) if "declared" in f.message]
    assert left.where == "node 'norm' (BatchNormalization)"
    proto = network(last=True)
    proto.graph.initializer.append(numpy_helper.from_array(np.array([0, 8, 8, 4]), "same"))
    proto.graph.node.insert(3, helper.make_node("Reshape", ["a", "same"], ["shaped"], "reshape"))
    proto.graph.node[4].input[0] = "shaped"
    proto.graph.value_info.append(helper.make_tensor_value_info("shaped", TensorProto.FLOAT, ["N", 8, 8, 4]))
    x = RNG.normal(size=(4, 8, 8, 2)).astype(np.float32)
    np.testing.assert_array_equal(hardware(save(proto, tmp_path), x), by_hand(x, proto))


def test_an_output_folder(tmp_path):
    """The model stays as it is in the file; whoever reads it again understands it again."""
    path = save(network(last=True, old=True), tmp_path)
    out = tmp_path / "out"
    compile(path, "ulx3s_85f").write(out, "verilog")
    assert (out / "model.onnx").read_bytes() == path.read_bytes()
    x = RNG.normal(size=(4, 8, 8, 2)).astype(np.float32)
    np.testing.assert_array_equal(hardware(out / "model.onnx", x), hardware(path, x))
