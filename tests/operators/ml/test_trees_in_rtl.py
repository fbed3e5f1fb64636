"""Whole models of trees in simulated hardware: labels and scores are those of the golden model, at any rate."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from hwflow.api.compiler import compile
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.host.random_inputs import random_inputs
from hwflow.verify import golden
from tests.onnx_node_tests.top_simulation import SimulatedTop
from tests.operators.ml.ensembles import MODES, Leaf, grown, model_of, named_attributes, totals
from tests.operators.ml.test_tree_classifiers import forest, saved


@pytest.mark.parametrize(("dtype", "fps", "ids"), [
    ("float32", None, [0, 1, 2]), ("float64", 1e5, [0]), ("float16", 1e5, [0, 1, 2]), ("int64", 1e5, [0, 1]),
])
def test_a_classifier(dtype: str, fps: float | None, ids: list[int], tmp_path: Any) -> None:
    trees = forest(random.Random(dtype), ids, 1.0, MODES)
    labels = [7, 1, -2][: max(2, len(ids))]
    attributes = named_attributes(trees, "class") | {"classlabels_int64s": labels, "base_values": [0.5] * len(ids)}
    outputs = [("label", TensorProto.INT64, []), ("scores", TensorProto.FLOAT, [len(labels)])]
    proto = model_of("TreeEnsembleClassifier", attributes, 4, outputs, dtype=dtype)
    if dtype == "float16":  # which classifiers do not take: a cast in front
        (tree,) = proto.graph.node
        tree.input[0] = "single"
        proto.graph.node.insert(0, helper.make_node("Cast", ["x"], ["single"], to=TensorProto.FLOAT))
    model = saved(proto, tmp_path)
    arrays = random_inputs(model, 12, np.random.default_rng(4))
    if dtype.startswith("float"):
        arrays["x"][3, 2] = np.nan
    ports = port_inputs(model, arrays)
    wanted = model_outputs(model, golden.evaluate(model.quantized, ports), arrays)
    top = SimulatedTop(compile(model, "ulx3s_85f", fps=fps).schedule.plan)
    for gap, stall in ((0.0, 0.0), (0.5, 0.5)):
        for name, array in model_outputs(model, top.run(ports, gap=gap, stall=stall), arrays).items():
            np.testing.assert_array_equal(array, wanted[name])


@pytest.mark.parametrize("fps", [None, 1e5])
@pytest.mark.parametrize("aggregate", ["MIN", "MAX"])
def test_extremes(aggregate: str, fps: float | None, tmp_path: Any) -> None:
    """Leaves far beyond what the result can be, and trees that are one leaf."""
    rng = random.Random(aggregate)
    values = [[float(np.float32(rng.gauss(0, 1))) for _ in range(4)] for _ in range(3)]

    def leaf() -> list[tuple[int, float]]:
        return [(k, float(rng.choice([-64, -3, 0, 0.5, 2, 64]))) for k in range(2)]

    trees = [grown(rng, 2, values, leaf, MODES) for _ in range(4)] + [Leaf([(0, 1.0), (1, -1.0)])]
    attributes = {**named_attributes(trees, "target"), "n_targets": 2, "aggregate_function": aggregate}
    model = saved(model_of("TreeEnsembleRegressor", attributes, 3, [("y", TensorProto.FLOAT, [2])]), tmp_path)
    arrays = random_inputs(model, 30, np.random.default_rng(5))
    exact = [[float(v) for v in totals(trees, row, 2, aggregate, [])] for row in arrays["x"].tolist()]
    top = SimulatedTop(compile(model, "ulx3s_85f", fps=fps).schedule.plan)
    for gap, stall in ((0.0, 0.0), (0.5, 0.5)):
        found = model_outputs(model, top.run(port_inputs(model, arrays), gap=gap, stall=stall), arrays)
        assert found["y"].tolist() == exact
