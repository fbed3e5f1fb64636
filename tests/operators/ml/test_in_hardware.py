"""Operators of ai.onnx.ml on quantized numbers and integers: compared with the reference evaluator, and in RTL."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from hwflow.api.compiler import compile
from hwflow.errors import ModelRefused
from hwflow.host.boundary_models import port_inputs
from hwflow.host.random_inputs import random_inputs
from hwflow.loaded_model import load
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.onnx_node_tests.top_simulation import SimulatedTop

ML = "ai.onnx.ml"


class Classical(Builder):
    """Models of the newest version of ai.onnx.ml, or an older one."""

    ml_version = 5

    def build(self) -> onnx.ModelProto:
        model = super().build()
        for opset in model.opset_import:
            opset.version = self.ml_version if opset.domain == ML else opset.version
        return model

    def ml(self, op: str, *inputs: str, **attributes: Any) -> str:
        return self.node(op, *inputs, domain=ML, **attributes)

    def reals(self, scale: float = 0.25, zero_point: int = 3) -> str:
        return self.dequantize(self.input("x", ["N", 4], "int8"), scale, zero_point, "int8")

    def quantized(self, name: str, shape: list[int | str], scale: float = 0.05) -> None:
        self.output(self.quantize(self.declare(name, shape), scale, 2, "int8"))


def scaler(b: Classical) -> None:
    b.quantized(b.ml("Scaler", b.reals(), offset=[0.5, -1.0, 0.1, 3.0], scale=[0.3, -1.5, 2.0, 1e-3]), ["N", 4])


def binarizer(b: Classical) -> None:
    b.quantized(b.ml("Binarizer", b.reals(), threshold=1.5), ["N", 4])


def imputer(b: Classical) -> None:
    missing = {"imputed_value_floats": [1.0, 2.0, -3.0, 0.5], "replaced_value_float": -0.75}
    b.quantized(b.ml("Imputer", b.reals(), **missing), ["N", 4])


def normalizer(b: Classical) -> None:
    b.quantized(b.ml("Normalizer", b.reals(), norm="L2"), ["N", 4], 0.01)


def normalizer_by_greatest(b: Classical) -> None:
    b.quantized(b.ml("Normalizer", b.reals(0.0173, -128), norm="MAX"), ["N", 4], 0.01)


def normalizer_of_any_sign(b: Classical) -> None:
    b.quantized(b.ml("Normalizer", b.reals(0.0173), norm="MAX"), ["N", 4], 0.25)


def vectorizer(b: Classical) -> None:
    x = b.reals()
    picked = b.ml("ArrayFeatureExtractor", x, b.constant([3, 1], "int64"))
    joined = b.ml("FeatureVectorizer", b.declare(picked, ["N", 2]), x, inputdimensions=[3, 2])
    b.quantized(joined, ["N", 5], 0.25)


def labels(b: Classical) -> None:
    lists = ([1, 5, -9, 100], [7, 8, 9, 2], [-1])
    keys, values, default = (numpy_helper.from_array(np.array(each, np.int16)) for each in lists)
    y = b.ml("LabelEncoder", b.input("x", ["N", 4], "int16"), keys_tensor=keys, values_tensor=values,
             default_tensor=default)  # fmt: skip
    b.output(b.declare(y, ["N", 4], "int16"))


def table(b: Classical) -> None:
    names = ("keys_tensor", "values_tensor", "default_tensor")
    lists = (range(-20, 30), [k * k % 17 for k in range(50)], [-1])
    tensors = [numpy_helper.from_array(np.array(each, np.int16)) for each in lists]
    y = b.ml("LabelEncoder", b.input("x", ["N", 4], "int16"), **dict(zip(names, tensors, strict=True)))
    b.output(b.declare(y, ["N", 4], "int16"))


def one_hot(b: Classical) -> None:
    y = b.ml("OneHotEncoder", b.input("x", ["N", 2], "int32"), cats_int64s=[1, 5, -9])
    b.quantized(y, ["N", 2, 3], 1.0)


def one_hot_of_reals(b: Classical) -> None:
    b.quantized(b.ml("OneHotEncoder", b.reals(), cats_int64s=[1, 5, -9, 0]), ["N", 4, 4], 1.0)


def of_integers(b: Classical) -> None:
    y = b.ml("Binarizer", b.input("x", ["N", 4], "int32"), threshold=-2.5)
    missing = b.ml("Imputer", b.declare(y, ["N", 4], "int32"), imputed_value_int64s=[7], replaced_value_int64=1)
    b.output(b.declare(missing, ["N", 4], "int32"))


def classifier(b: Classical, least: float = 0.015625) -> None:
    """Coefficients of 24 bits and several exponents, as they are."""
    coefficients = [float(np.float32(v)) for v in (1 / 3, -0.7, 1.9, least, 0.1, 0.2, -0.3, 0.4, -1.1, 0.9, 0.05, 0.6)]
    label = b.ml("LinearClassifier", b.reals(), outputs=["scores"], coefficients=coefficients,
                 intercepts=[0.1, -0.2, 0.3], classlabels_ints=[4, -7, 9])  # fmt: skip
    b.output(b.declare(label, ["N"], "int64"))
    b.output(b.declare("scores", ["N", 3]))


def trees(b: Classical, transform: str = "SOFTMAX", scale: float = 1.0, base: float = 0.0) -> None:
    """Two trees of one test, and no class that every leaf names."""
    b.ml_version = 3
    b.quantized(b.ml(
        "TreeEnsembleRegressor", b.reals(), n_targets=3, post_transform=transform, nodes_treeids=[0] * 3 + [1] * 3,
        nodes_nodeids=[0, 1, 2] * 2, nodes_featureids=[0, 0, 0, 3, 0, 0], nodes_values=[0.5, 0.0, 0.0] * 2,
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"] * 2, nodes_truenodeids=[1, 0, 0] * 2,
        nodes_falsenodeids=[2, 0, 0] * 2, target_treeids=[0, 0, 0, 1, 1], target_nodeids=[1, 1, 2, 1, 2],
        target_ids=[0, 1, 2, 1, 0], target_weights=[scale * v for v in (0.25, 0.5, 0.75, -1.0, 2.0)],
        base_values=[base] * 3,
    ), ["N", 3], 0.01)  # fmt: skip


def probits(b: Classical) -> None:
    trees(b, "PROBIT", 0.25, 0.375)


def linear_probits(b: Classical) -> None:
    """Scores 0.5 - 0.5 to 0.5 + 0.496, but for 0 itself."""
    x = b.dequantize(b.input("x", ["N", 2], "int8"), 2.0**-8, 0, "int8")
    made = b.ml("LinearRegressor", x, targets=2, coefficients=[0.5, 0.25, -0.75, 0.125], intercepts=[0.5, 0.51],
                post_transform="PROBIT")  # fmt: skip
    b.quantized(made, ["N", 2], 0.02)


def test_probits_of_no_share_have_no_value(tmp_path: Path) -> None:
    b = Classical(15, 8)
    trees(b, "PROBIT")  # of -1 to 2.25
    with pytest.raises(ModelRefused, match="must have a value everywhere, but it takes the logarithm of"):
        compile(b.save(tmp_path), "ulx3s_85f")


def test_a_transform_that_no_hardware_makes_says_what_may_be(tmp_path: Path) -> None:
    b = Classical(15, 8)
    trees(b, "SOFTMAX_ZERO")
    with pytest.raises(ModelRefused, match=r"SOFTMAX before a quantizer, and PROBIT of scores .* the host runs"):
        compile(b.save(tmp_path), "ulx3s_85f")


MODELS = [
    classifier, scaler, binarizer, imputer, normalizer, normalizer_by_greatest, normalizer_of_any_sign, vectorizer,
    labels, table, one_hot, one_hot_of_reals, of_integers, trees, probits, linear_probits,
]


def test_coefficients_too_far_apart(tmp_path: Path) -> None:
    b = Classical(15, 8)
    classifier(b, 1e-12)
    with pytest.raises(ModelRefused, match="by integers of at most 40 bits, not of more"):
        compile(b.save(tmp_path), "ulx3s_85f")


@pytest.mark.parametrize("make", [classifier, scaler, normalizer, vectorizer, one_hot_of_reals])
def test_a_fixed_batch_before_operator_set_13(make: Any, tmp_path: Path) -> None:
    """Definitions are in newer operators than the model's, each wrapped in a function: a batch is frames there too."""
    paths = [tmp_path / "batch.onnx", tmp_path / "frames.onnx"]
    for path, frames in zip(paths, (6, "N"), strict=True):
        b = Classical(11, 8)
        make(b)
        proto = b.build()
        for value in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info):
            value.type.tensor_type.shape.dim[0].CopyFrom(dimension(frames))
        onnx.save(proto, path)
    batch, single = map(load, paths)
    inputs = random_inputs(single, 6, np.random.default_rng(2))
    found, expected = (golden.evaluate(model.quantized, port_inputs(model, inputs)) for model in (batch, single))
    assert list(found) == list(expected)
    for name, array in found.items():
        np.testing.assert_array_equal(array, expected[name])
    assert compare(batch, frames=12).ok


def dimension(size: int | str) -> onnx.TensorShapeProto.Dimension:
    kind = onnx.TensorShapeProto.Dimension
    return kind(dim_param=size) if isinstance(size, str) else kind(dim_value=size)


PROBABILITIES = [[0.4375, 0.25, 0.375], [0.9375, 0.5, 0.375]]


@pytest.mark.parametrize("make", MODELS)
def test_golden_model_and_hardware(make: Any, tmp_path: Path) -> None:
    b = Classical(15, 8)
    make(b)
    model = load(b.save(tmp_path))
    assert not model.host_work.linear
    compared = compare(model, frames=100)
    assert compared.ok, [row.first for row in compared.rows]
    integers = port_inputs(model, random_inputs(model, 6, np.random.default_rng(1)))
    if make is labels:
        integers["x"][:2] = [[1, 5, -9, 100], [0, 5, 1, 5]]
    if make is table:
        integers["x"][:2] = [[-20, -21, 29, 30], [0, 5, -7, 12]]
    if make is one_hot:
        integers["x"][:2] = [[1, 5], [-9, 1]]
    if make is normalizer_by_greatest:
        integers["x"][:2] = [[-128] * 4, [-128, -127, -128, -128]]
    if make is normalizer_of_any_sign:  # less 3 the greatest is -4, 0, 0 and 2
        integers["x"][:4] = [[-1, -9, -33, -7], [3, -97, 3, -57], [3] * 4, [5, -11, 3, 4]]
    if make in (trees, probits):  # -0.25 and -0.25; -0.25 and 1; scores (0.25, -0.5, 0) and (2.25, 0.5, 0)
        integers["x"][:2] = [[2, 0, 0, 2], [2, 0, 0, 7]]
    expected = golden.evaluate(model.quantized, integers)
    if make is probits:  # scores 0.4375, 0.25, 0.375 and 0.9375, 0.5, 0.375 of the inverse normal distribution
        (found,) = expected.values()
        quantiles = [[min(statistics.NormalDist().inv_cdf(p), 1.25) for p in row] for row in PROBABILITIES]
        np.testing.assert_allclose(0.01 * (found[:2] - 2), quantiles, atol=0.012)  # Winitzki's is an approximation
    if make is trees:  # shares 0.444, 0.210, 0.346 and 0.782, 0.136, 0.082, in levels of 0.01, 2 being 0
        (found,) = expected.values()
        assert found[:2].tolist() == [[46, 23, 37], [80, 16, 10]]
    if make is normalizer_of_any_sign:  # 2 is 0, a level is 0.25; beside 0 the number itself: -1.73 and -1.038
        (found,) = expected.values()
        assert found[:4].tolist() == [[6, 14, 38, 12], [2, -5, 2, -2], [2] * 4, [6, -26, 2, 4]]
    if make is normalizer_by_greatest:  # zeros stay zeros; 0 is level 2, 1 is 102
        (found,) = expected.values()
        assert found[:2].tolist() == [[2] * 4, [2, 102, 2, 2]]
    top = SimulatedTop(compile(model, "ulx3s_85f", fps=1).schedule.plan)
    for gap in (0.0, 0.3):
        for name, array in top.run(integers, gap=gap, stall=gap).items():
            np.testing.assert_array_equal(array, expected[name])
