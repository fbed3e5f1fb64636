"""Ensembles of trees: golden integers against a walk in exact rationals, the evaluator's substitute against onnx's."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import hwflow
from hwflow.api.checking import check
from hwflow.errors import ModelRefused
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.host.random_inputs import random_inputs
from hwflow.onnxspec.reference.evaluator_defects import substitutes
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from tests.onnxspec.reading import hostile_ensembles
from tests.operators.ml import ensembles
from tests.operators.ml.ensembles import MODES, ONNX_TYPES, Branch, Leaf, grown, model_of, named_attributes, totals

Array = np.ndarray[Any, Any]
ODD = {
    "float16": [0.0, -0.0, np.inf, -np.inf, 65504.0], "float32": [0.0, -0.0, np.inf, -np.inf, 1e-45, 3.4e38],
    "float64": [0.0, -0.0, np.inf, -np.inf, 5e-324, 1.7e308], "int64": [0.0, -1.5, 2.0**53],
    "int32": [0.5, -7.0, 2.0**31], "uint8": [0.0, 127.5, 255.0, -1.0],
}


def numbers(rng: random.Random, dtype: str, count: int, single: Any = np.float32) -> list[float]:
    """Thresholds of type ``single``: any, and odd ones."""
    spread = {"int64": 1e6, "int32": 1e5, "uint8": 128.0}.get(dtype, 1.0)
    drawn = [rng.gauss(0, spread) for _ in range(count)]
    with np.errstate(over="ignore"):
        return [float(single(v)) for v in (*drawn, *rng.sample(ODD[dtype], 2))]


def leaf_of(rng: random.Random, targets: int, *, every: bool) -> Any:
    def leaf() -> list[tuple[int, float]]:
        chosen = range(targets) if every else [k for k in range(targets) if rng.random() < 0.6]
        return [(k, float(np.float32(rng.gauss(0, 1)))) for k in chosen]

    return leaf


def frames_of(model: Any, dtype: str, count: int, seed: int) -> Array:
    """Frames next to thresholds, with NaN where there is one."""
    (x,) = random_inputs(model, count, np.random.default_rng(seed)).values()
    if dtype.startswith("float"):
        x[0, :], x[1, 0] = np.nan, -np.inf
    return np.asarray(x)


def require_exact(model: Any, x: Array, trees: list[Any], targets: int, aggregate: str, base: list[float]) -> None:
    """Every golden integer, with its scale, is the exact sum."""
    graph = model.quantized
    (port,) = graph.outputs
    found = golden.evaluate(graph, port_inputs(model, {"x": x}))[port.name]
    scales = np.broadcast_to(np.array(port.scale, object), (targets,))
    zeros = np.broadcast_to(np.array(port.zero_point, object), (targets,))
    for row, integers in zip(x.tolist(), found.tolist(), strict=True):
        exact = totals(trees, row, targets, aggregate, base)
        assert [s * (Fraction(q) - z) for q, s, z in zip(integers, scales, zeros, strict=True)] == exact


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_regressor(dtype: str, aggregate: str, tmp_path: Any) -> None:
    """Every mode, NaN and infinities, leaves of several targets, base values."""
    rng = random.Random(f"{dtype} {aggregate}")
    values = [numbers(rng, dtype, 4) for _ in range(4)]
    add = aggregate in ("SUM", "AVERAGE")
    trees = [grown(rng, 4, values, leaf_of(rng, 3, every=not add), MODES) for _ in range(4)]
    trees.append(Leaf([(0, 0.5), (1, 2.0), (2, 1.0)]))
    base = [0.375, -1.0, 0.0] if aggregate != "MAX" else []
    attributes = {**named_attributes(trees, "target"), "n_targets": 3, "aggregate_function": aggregate}
    attributes |= {"base_values": base} if base else {}
    proto = model_of("TreeEnsembleRegressor", attributes, 4, [("y", TensorProto.FLOAT, [3])], dtype=dtype)
    onnx.save(proto, tmp_path / "m.onnx")
    model = hwflow.load(tmp_path / "m.onnx")
    x = frames_of(model, dtype, 200, 1)
    require_exact(model, x, trees, 3, aggregate, base)
    assert compare(model, frames=200).unexplained == 0


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_ensemble(dtype: str, tmp_path: Any) -> None:
    """Version 5, with sets of members and trees of one leaf."""
    rng = random.Random(dtype)
    values = [numbers(rng, dtype, 4, np.dtype(dtype).type) for _ in range(3)]
    single = np.float16 if dtype == "float16" else np.float32

    def leaf() -> list[tuple[int, float]]:
        return [(rng.randrange(2), float(single(rng.gauss(0, 1))))]

    trees = [grown(rng, 4, values, leaf, (*MODES, "MEMBER")) for _ in range(5)] + [Leaf([(1, 0.25)])]
    attributes = {**ensembles.placed_attributes(trees, dtype), "n_targets": 2}
    proto = model_of(
        "TreeEnsemble", attributes, 3, [("y", ONNX_TYPES[dtype], [2])], dtype=dtype, version=5
    )
    onnx.save(proto, tmp_path / "m.onnx")
    model = hwflow.load(tmp_path / "m.onnx")
    x = frames_of(model, dtype, 200, 2)
    require_exact(model, x, trees, 2, "SUM", [])
    assert compare(model, frames=200).unexplained == 0


def test_of_quantized_features(tmp_path: Any) -> None:
    """Features that a quantizer made, through a function, become ranks just as well."""
    rng = random.Random(5)
    values = [numbers(rng, "float32", 5) for _ in range(3)]
    trees = [grown(rng, 3, values, leaf_of(rng, 1, every=True), MODES) for _ in range(4)]
    attributes = {**named_attributes(trees, "target"), "n_targets": 1}
    proto = model_of("TreeEnsembleRegressor", attributes, 3, [("y", TensorProto.FLOAT, [1])])
    (tree,) = proto.graph.node
    tree.input[0] = "t"
    proto.graph.node.insert(0, onnx.helper.make_node("DequantizeLinear", ["x", "s", "z"], ["d"]))
    proto.graph.node.insert(1, onnx.helper.make_node("Tanh", ["d"], ["t"]))
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.INT8
    for name, value in (("s", np.array(0.02, np.float32)), ("z", np.array(3, np.int8))):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    onnx.save(proto, tmp_path / "m.onnx")
    model = hwflow.load(tmp_path / "m.onnx")
    assert compare(model, frames=200).unexplained == 0


def test_substitute_agrees_with_onnx() -> None:
    """Where onnx's own operator has no defect, the substitute gives the same."""
    rng = random.Random(9)
    values = [[float(np.float32(rng.gauss(0, 1))) for _ in range(5)] for _ in range(3)]
    for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
        trees = [grown(rng, 4, values, leaf_of(rng, 2, every=True), MODES) for _ in range(5)]
        attributes = {**named_attributes(trees, "target"), "n_targets": 2, "aggregate_function": aggregate}
        proto = model_of("TreeEnsembleRegressor", attributes, 3, [("y", TensorProto.FLOAT, [2])])
        x = np.random.default_rng(1).choice(np.array(values).reshape(-1), (60, 3)).astype(np.float32)
        x[::7, 1] = np.nan
        named: set[str] = set()
        mended = ReferenceEvaluator(proto, new_ops=substitutes({"": 17, "ai.onnx.ml": 3}, named.add))
        (found,), (expected,) = mended.run(None, {"x": x}), ReferenceEvaluator(proto).run(None, {"x": x})
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
        assert not named


DEFECTS = {
    "treeregressor-tensors": ("TreeEnsembleRegressor", "values"),
    "treeregressor-base": ("TreeEnsembleRegressor", "base"),
    "treeregressor-integers": ("TreeEnsembleRegressor", "integers"), "treeensemble-nan": ("TreeEnsemble", "NEQ"),
    "treeensemble-members": ("TreeEnsemble", "MEMBER"), "treeensemble-leaf": ("TreeEnsemble", "leaf"),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_defects(name: str) -> None:
    """Each defect, shown in the installed onnx: it fails, or gives another result than the walk."""
    op_type, case = DEFECTS[name]
    tree: Any = Branch("LEQ", 0, 1.0, False, Leaf([(0, 0.5)]), Leaf([(0, 2.25)]), [])
    if case in ("NEQ", "MEMBER"):
        tree = Branch(case, 0, 1.0, False, Leaf([(0, 0.5)]), Leaf([(0, 2.25)]), [0.0, 1.0])
    trees = [tree, Leaf([(0, 0.5)])] if case == "leaf" else [tree]
    dtype = "int64" if case == "integers" else "float32"
    if op_type == "TreeEnsemble":
        attributes = {**ensembles.placed_attributes(trees, dtype), "n_targets": 1}
    else:
        attributes = {**named_attributes(trees, "target"), "n_targets": 1}
    base = [0.125] if case == "base" else []
    if case == "values":
        numbers = attributes.pop("nodes_values")
        attributes["nodes_values_as_tensor"] = onnx.helper.make_tensor("v", TensorProto.DOUBLE, [len(numbers)], numbers)
    if base:
        attributes["base_values_as_tensor"] = onnx.helper.make_tensor("b", TensorProto.FLOAT, [1], base)
    version = 5 if op_type == "TreeEnsemble" else 3
    proto = model_of(op_type, attributes, 1, [("y", TensorProto.FLOAT, [1])], dtype=dtype, version=version)
    x = np.array([[1], [2], [0]], dtype)
    if case == "NEQ":
        x[2] = np.nan
    exact = [[float(v) for v in totals(trees, row, 1, "SUM", base)] for row in x.tolist()]
    named: set[str] = set()
    mended = ReferenceEvaluator(proto, new_ops=substitutes({"": 17, "ai.onnx.ml": version}, named.add))
    assert mended.run(None, {"x": x})[0].tolist() == exact
    assert named == {name}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wrong = ReferenceEvaluator(proto).run(None, {"x": x})[0].tolist()
        except Exception:
            return
    assert wrong != exact


@pytest.mark.parametrize(("aggregate", "said"), [
    ("SUM", "sums of the leaves' values must have at most 103 bits, not 122"),
    ("MIN", "values of leaves under aggregate_function MIN must have at most 62 bits, not 121"),
])  # fmt: skip
def test_leaves_of_very_different_size(aggregate: str, said: str, tmp_path: Any) -> None:
    """Sums that no two float64 hold are refused, with their length."""
    tree = Branch("LEQ", 0, 1.0, False, Leaf([(0, 1.0)]), Leaf([(0, 2.0**-120)]))
    attributes = {**named_attributes([tree], "target"), "n_targets": 1, "aggregate_function": aggregate}
    proto = model_of("TreeEnsembleRegressor", attributes, 1, [("y", TensorProto.FLOAT, [1])])
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(ModelRefused, match=said):
        hwflow.load(tmp_path / "m.onnx").quantized  # noqa: B018


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scalings_become_thresholds(dtype: str, tmp_path: Any) -> None:
    """A scaler, negative scales among them, and a cast before the trees: their floats decide, bit by bit, and the host
    has nothing to run."""
    rng = random.Random(dtype)
    values = [numbers(rng, "float32", 5) for _ in range(4)]
    trees = [grown(rng, 4, values, leaf_of(rng, 1, every=True), MODES) for _ in range(4)]
    attributes = {**named_attributes(trees, "target"), "n_targets": 1}
    proto = model_of("TreeEnsembleRegressor", attributes, 4, [("y", TensorProto.FLOAT, [1])], dtype=dtype)
    (tree,) = proto.graph.node
    tree.input[0] = "cast"
    offset, scale = (np.array([rng.gauss(0, 1) for _ in range(4)], dtype) for _ in range(2))
    for place, node in enumerate((("Sub", "x", "offset", "c"), ("Mul", "c", "scale", "s"), ("Cast", "s", "cast"))):
        made = onnx.helper.make_node(node[0], node[1:-1], node[-1:])
        if node[0] == "Cast":
            made.attribute.append(onnx.helper.make_attribute("to", TensorProto.FLOAT))
        proto.graph.node.insert(place, made)
    for name, array in (("offset", offset), ("scale", scale)):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.save(proto, tmp_path / "m.onnx")
    model = hwflow.load(tmp_path / "m.onnx")
    assert (scale < 0).any() and (scale > 0).any()
    assert model.quantized.prefix == ()
    x = frames_of(model, dtype, 400, 4)
    (port,) = model.quantized.outputs
    found = golden.evaluate(model.quantized, port_inputs(model, {"x": x}))[port.name]
    with np.errstate(all="ignore"):
        scaled = ((x - offset) * scale).astype(np.float32)
    for row, (integer,) in zip(scaled.tolist(), found.tolist(), strict=True):
        assert port.scale[0] * integer == totals(trees, row, 1, "SUM", [])[0]


PICKS = [[3, 0], [1, 2, 1], [0, 2]]  # columns that each of some trees sees


@pytest.mark.parametrize("scaled", ["no", "before", "after"])
def test_trees_of_other_columns_share_the_features(scaled: str, tmp_path: Any) -> None:
    """As bagging and isolation forests have them: the features come in once, and the host has nothing to run."""
    rng = random.Random(scaled)
    forests = [
        [grown(rng, 3, [numbers(rng, "float32", 4) for _ in picks], leaf_of(rng, 1, every=True), MODES) for _ in "ab"]
        for picks in PICKS
    ]
    nodes, constants = [], [numpy_helper.from_array(np.float32(-0.75), "factor")]
    source = "x"
    if scaled == "before":
        nodes.append(helper.make_node("Mul", ["x", "factor"], [source := "s"]))
    for number, (trees, picks) in enumerate(zip(forests, PICKS, strict=True)):
        constants.append(numpy_helper.from_array(np.array(picks), f"columns{number}"))
        chosen, name = f"chosen{number}", f"y{number}"
        nodes.append(helper.make_node("Gather", [source, f"columns{number}"], [chosen], axis=1))
        if scaled == "after":
            nodes.append(helper.make_node("Mul", [chosen, "factor"], [chosen := f"scaled{number}"]))
        given = {**named_attributes(trees, "target"), "n_targets": 1}
        nodes.append(helper.make_node("TreeEnsembleRegressor", [chosen], [name], domain="ai.onnx.ml", **given))
    results = [helper.make_tensor_value_info(f"y{k}", TensorProto.FLOAT, ["N", 1]) for k in range(len(PICKS))]
    features = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])
    graph = helper.make_graph(nodes, "picks", [features], results, constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), tmp_path / "m.onnx")
    model = hwflow.load(tmp_path / "m.onnx")
    assert model.quantized.prefix == () and [port.name for port in model.quantized.inputs] == ["x"]
    x = frames_of(model, "float32", 100, 6)
    found = golden.evaluate(model.quantized, port_inputs(model, {"x": x}))
    with np.errstate(all="ignore"):
        seen = x if scaled == "no" else x * np.float32(-0.75)
    for port, trees, picks in zip(model.quantized.outputs, forests, PICKS, strict=True):
        for row, (integer,) in zip(seen[:, picks].tolist(), found[port.name].tolist(), strict=True):
            assert port.scale[0] * (integer - port.zero_point[0]) == totals(trees, row, 1, "SUM", [])[0]
    assert compare(model, frames=50).ok


@pytest.mark.parametrize(("columns", "inputs"), [([2, 0], ["chosen"]), ([2, 0, 3, 1], ["x"])])
def test_few_columns_of_many_come_in_alone(columns: list[int], inputs: list[str], tmp_path: Any) -> None:
    """What nothing reads does not come to the hardware; columns in another order are those of the input."""
    trees = grown(random.Random(1), 3, [[0.0]] * len(columns), leaf_of(random.Random(2), 1, every=True), ("LEQ",))
    given = {**named_attributes([trees], "target"), "n_targets": 1}
    proto = model_of("TreeEnsembleRegressor", given, 4, [("y", TensorProto.FLOAT, [1])])
    proto.graph.node[0].input[0] = "chosen"
    proto.graph.node.insert(0, helper.make_node("Gather", ["x", "columns"], ["chosen"], axis=1))
    proto.graph.initializer.append(numpy_helper.from_array(np.array(columns), "columns"))
    onnx.save(proto, tmp_path / "m.onnx")
    model = hwflow.load(tmp_path / "m.onnx")
    assert [port.name for port in model.quantized.inputs] == inputs
    assert compare(model, frames=50).ok


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE"])
@pytest.mark.parametrize("version", [3, 5])
def test_wide_sums(version: int, aggregate: str, tmp_path: Any) -> None:
    """Leaves of float64 of any size: two ensembles, whose sum on the host is the exact one rounded once."""
    rng = random.Random(f"{version} {aggregate}")
    values = [numbers(rng, "float64", 4, np.float64)[:4] for _ in range(3)]

    def leaf() -> list[tuple[int, float]]:
        named = [rng.randrange(2)] if version == 5 else [0, 1]
        return [(k, rng.gauss(0, 1) * 10.0 ** rng.choice([-6, 0, 2])) for k in named]

    trees = [grown(rng, 3, values, leaf, MODES) for _ in range(5)] + [Leaf([(1, 0.1)])]
    if version == 5:
        attributes = {**ensembles.placed_attributes(trees, "float64"), "n_targets": 2}
        attributes["aggregate_function"] = 1 if aggregate == "SUM" else 0
        proto = model_of("TreeEnsemble", attributes, 3, [("y", TensorProto.DOUBLE, [2])], dtype="float64", version=5)
    else:
        attributes = {**named_attributes(trees, "target"), "n_targets": 2, "aggregate_function": aggregate}
        for name in ("nodes_values", "target_weights"):
            given = attributes.pop(name)
            attributes[f"{name}_as_tensor"] = onnx.helper.make_tensor(name, TensorProto.DOUBLE, [len(given)], given)
        proto = model_of("TreeEnsembleRegressor", attributes, 3, [("y", TensorProto.FLOAT, [2])], dtype="float64")
    onnx.save(proto, tmp_path / "m.onnx")
    model = hwflow.load(tmp_path / "m.onnx")
    assert len(model.quantized.outputs) == 2
    x = frames_of(model, "float64", 100, 6)
    arrays = {"x": x}
    found = model_outputs(model, golden.evaluate(model.quantized, port_inputs(model, arrays)), arrays)["y"]
    for row, reals in zip(x.tolist(), found.tolist(), strict=True):
        exact = totals(trees, row, 2, aggregate, [])
        if version == 3:
            assert reals == [float(np.float32(float(v))) for v in exact]
        elif aggregate == "SUM":
            assert reals == [float(v) for v in exact]
        else:  # the quotient is rounded once more
            assert reals == pytest.approx([float(v) for v in exact], rel=2.0**-51, abs=0)
    assert compare(model, frames=100).unexplained == 0


@pytest.mark.parametrize("make", [hostile_ensembles.ladder, hostile_ensembles.one_tree_many_times])
def test_trees_that_grow_without_bound_are_refused(make: Callable[[], onnx.ModelProto], tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(make().SerializeToString())
    (message,) = [finding.message for finding in check(path) if finding.severity == "unsupported"]
    assert message == (
        "trees must have at most 1024 levels and 1048576 nodes in all, with a copy for each of what several share"
    )


def test_nodes_that_leaves_name_count_for_nothing(tmp_path: Any) -> None:
    tree = Branch("LEQ", 0, 1.0, False, Leaf([(0, 1.0)]), Leaf([(0, 2.0)]))
    attributes = {**named_attributes([tree], "target"), "n_targets": 1}
    attributes["nodes_truenodeids"][1] = 1 << 62
    proto = model_of("TreeEnsembleRegressor", attributes, 1, [("y", TensorProto.FLOAT, [1])])
    onnx.save(proto, tmp_path / "m.onnx")
    require_exact(hwflow.load(tmp_path / "m.onnx"), np.array([[0], [2]], np.float32), [tree], 1, "SUM", [])


def _of_one_node(rank: int, *, placed: bool) -> dict[str, Any]:
    tree = Branch("LEQ", 0, 1.0, False, Leaf([(0, 1.0)]), Leaf([(0, 2.0)]))
    written = ensembles.placed_attributes([tree], "float32") if placed else named_attributes([tree], "target")
    return {**written, "n_targets": 4}


NODES = (
    ("TreeEnsemble", lambda size, rank: [], lambda rank: _of_one_node(rank, placed=True)),
    ("TreeEnsembleRegressor", lambda size, rank: [], lambda rank: _of_one_node(rank, placed=False)),
)
