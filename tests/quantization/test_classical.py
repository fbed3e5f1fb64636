"""Classical models, as scikit-learn's exporters write them: quantizers inside their definitions, maps at their ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hwflow
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.loaded_model import load
from hwflow.verify import golden
from tests.operators.ml.nodes import floats

pytest.importorskip("onnxruntime")

ML, FLOAT, INT64, STRING = "ai.onnx.ml", TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
FRAMES = 60
SCALER = {"offset": [0.1, 0.2, 0.3, -0.4], "scale": [1.5, 0.5, 2.0, 1.0]}


def ml(op: str, source: str | Sequence[str], *results: str, **attributes: Any) -> onnx.NodeProto:
    sources = [source] if isinstance(source, str) else source
    return helper.make_node(op, sources, results, name=f"{op}_{results[0]}", domain=ML, **attributes)


def shares(name: str, key: int) -> onnx.ValueInfoProto:
    each = helper.make_map_type_proto(key, helper.make_tensor_type_proto(FLOAT, None))
    return helper.make_value_info(name, helper.make_sequence_type_proto(each))


def quantized(
    nodes: Sequence[onnx.NodeProto], outputs: Sequence[onnx.ValueInfoProto], folder: Path, *,
    constants: Sequence[TensorProto] = (), lost: bool = False, kind: int = FLOAT, **options: Any,
) -> tuple[onnx.ModelProto, float]:
    """Quantize a model of four features; return what came out, and the share of labels that stay."""
    rng = np.random.default_rng(3)
    x: Any = rng.normal(size=(FRAMES, 4)).astype(np.float32)
    if kind != FLOAT:
        x = rng.integers(-20, 20, x.shape)
    if lost:
        x[rng.random(x.shape) < 0.2] = math.nan
    graph = helper.make_graph(
        nodes, "classical", [helper.make_tensor_value_info("x", kind, [None, 4])], outputs, constants
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15), helper.make_opsetid(ML, 3)],
                              ir_version=8)  # fmt: skip
    onnx.save(model, folder / "float.onnx")
    np.savez(folder / "data.npz", x=x)
    done = hwflow.quantize(folder / "float.onnx", folder / "data.npz", folder / "q.onnx", **options)
    assert done.compiles and done.host is not None and not done.host.linear
    assert hwflow.compare(folder / "q.onnx", inputs=folder / "data.npz").ok
    results = []
    for name in ("float.onnx", "q.onnx"):
        loaded = load(folder / name)
        if name == "float.onnx":
            from hwflow.onnxspec.reference.evaluation import RegionEvaluator

            results.append(RegionEvaluator(loaded.flat).run([outputs[0].name], {"x": x})[outputs[0].name])
        else:
            made = golden.evaluate(loaded.quantized, port_inputs(loaded, {"x": x}))
            results.append(model_outputs(loaded, made, {"x": x})[outputs[0].name])
    before, after = results
    close = before == after if before.dtype.kind in "iO" else np.abs(before - after) < 0.1 * np.abs(before).max()
    return onnx.load(folder / "q.onnx"), float(np.mean(close))


def label(kind: int = INT64) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info("label", kind, [None])


def test_scaler_and_logistic_regression(tmp_path: Path) -> None:
    rng, names = np.random.default_rng(0), ["a", "b", "c"]
    model, right = quantized(
        [
            ml("Scaler", "x", "s", **SCALER),
            ml("LinearClassifier", "s", "label", "raw", coefficients=floats(rng, 12), intercepts=[0.1, -0.2, 0.05],
               classlabels_strings=names, post_transform="SOFTMAX", multi_class=1),
            ml("Normalizer", "raw", "share", norm="L1"), ml("ZipMap", "share", "shares", classlabels_strings=names),
        ],
        [label(STRING), shares("shares", STRING)], tmp_path,
    )  # fmt: skip
    assert right > 0.9
    (last,) = (node for node in model.graph.node if node.domain == ML)
    assert last.op_type == "ZipMap" and [*last.output] == ["shares"]
    assert model.graph.output[1] == shares("shares", STRING)


def test_two_classes_and_missing_values(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    _, right = quantized(
        [
            ml("Imputer", "x", "i", imputed_value_floats=[0.5], replaced_value_float=math.nan),
            ml("LinearClassifier", "i", "label", "raw", coefficients=floats(rng, 4), intercepts=[0.1],
               classlabels_ints=[0, 1], post_transform="LOGISTIC"),
            ml("ZipMap", "raw", "shares", classlabels_int64s=[0, 1]),
        ],
        [label(), shares("shares", INT64)], tmp_path, lost=True,
    )  # fmt: skip
    assert right > 0.9


@pytest.mark.parametrize("kind", [FLOAT, INT64])  # onnxruntime itself has it for floats alone
def test_regression(kind: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    y = helper.make_tensor_value_info("y", FLOAT, [None, 1])
    node = ml("LinearRegressor", "x", "y", coefficients=floats(rng, 4), intercepts=[0.5])
    _, right = quantized([node], [y], tmp_path, kind=kind)
    assert right > 0.95


def test_multilayer_perceptron(tmp_path: Path) -> None:
    """What an exporter makes of an MLPClassifier."""
    rng = np.random.default_rng(5)
    constants = {
        "w1": rng.normal(size=(4, 8)).astype(np.float32), "b1": rng.normal(size=8).astype(np.float32),
        "w2": rng.normal(size=(8, 3)).astype(np.float32), "b2": rng.normal(size=3).astype(np.float32),
        "classes": np.array([10, 20, 30], np.int32), "flat": np.array([-1]),
    }
    chain: list[tuple[str, list[str], str, dict[str, Any]]] = [
        ("Cast", ["x"], "c", {"to": FLOAT}), ("MatMul", ["c", "w1"], "m1", {}), ("Add", ["m1", "b1"], "a1", {}),
        ("Relu", ["a1"], "r", {}), ("MatMul", ["r", "w2"], "m2", {}), ("Add", ["m2", "b2"], "a2", {}),
        ("Softmax", ["a2"], "p", {"axis": 1}), ("ArgMax", ["p"], "place", {"axis": 1}),
    ]
    nodes = [helper.make_node(op, sources, [name], name=name, **more) for op, sources, name, more in chain]
    nodes.append(ml("ArrayFeatureExtractor", ["classes", "place"], "picked"))
    nodes.append(helper.make_node("Reshape", ["picked", "flat"], ["row"], name="row"))
    nodes.append(helper.make_node("Cast", ["row"], ["label"], name="label", to=INT64))
    nodes.append(ml("ZipMap", "p", "shares", classlabels_int64s=[10, 20, 30]))
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    _, right = quantized(nodes, [label(), shares("shares", INT64)], tmp_path, constants=tensors)
    assert right > 0.9


PROBABILITIES = {"prob_a": [-1.0, -2.0, -0.5], "prob_b": [0.0, 0.1, 0.2]}


@pytest.mark.parametrize(("kernel", "more"), [("RBF", {}), ("SIGMOID", {}), ("RBF", PROBABILITIES)])
def test_support_vectors(kernel: str, more: dict[str, Any], tmp_path: Path) -> None:
    """Kernels are functions of the squared distances, or products, that hardware computes; probabilities come of the
    decisions on the host."""
    rng = np.random.default_rng(6)
    machine: dict[str, Any] = {
        "kernel_type": kernel, "kernel_params": [0.3, 0.2, 2.0], "support_vectors": floats(rng, 20),
        "coefficients": floats(rng, 10), "vectors_per_class": [2, 1, 2], "rho": [0.1, 0.2, -0.1], **more,
    }
    scores = helper.make_tensor_value_info("scores", FLOAT, [None, 3])
    nodes = [
        ml("Scaler", "x", "s", **SCALER),
        ml("SVMClassifier", "s", "label", "scores", classlabels_ints=[4, 5, 6], **machine),
    ]
    _, right = quantized(nodes, [label(), scores], tmp_path)
    assert right > 0.8


def test_support_vector_regression(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    y = helper.make_tensor_value_info("y", FLOAT, [None, 1])
    node = ml("SVMRegressor", "x", "y", kernel_type="POLY", kernel_params=[0.3, 0.2, 2.0], n_supports=3,
              support_vectors=floats(rng, 12), coefficients=floats(rng, 3), rho=[0.1])  # fmt: skip
    _, right = quantized([node], [y], tmp_path)
    assert right > 0.9


def test_texts(tmp_path: Path) -> None:
    """Categories become features on the host."""
    rng = np.random.default_rng(8)
    names = ["red", "green", "blue"]
    nodes = [
        ml("OneHotEncoder", "c", "one", cats_strings=names),
        helper.make_node("Reshape", ["one", "shape"], ["flat"], name="flat"),
        helper.make_node("Concat", ["flat", "x"], ["f"], name="f", axis=1),
        ml("LinearClassifier", "f", "label", "raw", coefficients=floats(rng, 15), intercepts=floats(rng, 3),
           classlabels_strings=names, post_transform="SOFTMAX"),
    ]  # fmt: skip
    shapes = (("c", STRING, 1), ("x", FLOAT, 2))
    infos = [helper.make_tensor_value_info(name, kind, [None, size]) for name, kind, size in shapes]
    raw = helper.make_tensor_value_info("raw", FLOAT, [None, 3])
    graph = helper.make_graph(
        nodes, "texts", infos, [label(STRING), raw], [numpy_helper.from_array(np.array([0, -1]), "shape")]
    )
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid(ML, 3)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "float.onnx")
    np.savez(tmp_path / "data.npz", c=rng.choice([*names, "?"], (40, 1)), x=rng.normal(size=(40, 2)).astype(np.float32))
    done = hwflow.quantize(tmp_path / "float.onnx", tmp_path / "data.npz", tmp_path / "q.onnx")
    assert done.compiles and done.host is not None and not done.host.linear
    assert hwflow.compare(tmp_path / "q.onnx", inputs=tmp_path / "data.npz").ok


def test_a_divisor_that_a_definition_keeps_from_zero_gets_no_quantizer(tmp_path: Path) -> None:
    nodes = [
        ml("Normalizer", "x", "parts", norm="MAX"),
        ml("LinearClassifier", "parts", "label", "scores", classlabels_ints=[0, 1, 2], multi_class=1,
           coefficients=[0.5, -0.25, 1.0, 0.75, -1.0, 0.5, 0.25, -0.5, 0.5, 0.5, -0.75, 1.0],
           intercepts=[0.1, -0.2, 0.3]),
    ]  # fmt: skip
    model, same = quantized(nodes, [label()], tmp_path)
    (divisor,) = (node.input[1] for node in model.graph.node if node.op_type == "Div")
    assert [node.op_type for node in model.graph.node if divisor in node.output] == ["Where"]
    assert same > 0.9
