"""Resize and Upsample: each defect of the reference evaluator shown, and what stands in for it against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from hwflow.onnxspec.reference import resize_defects
from hwflow.onnxspec.reference.resize_matrices import resize
from tests.onnxspec.build import model, node, value
from tests.onnxspec.reference.test_evaluator_defects import Array, around, reference, runtime

X = np.array([3, -8, 5, 21, -13, 2, 40, 1], np.float32)
CROP = {"coordinate_transformation_mode": "tf_crop_and_resize"}
SINGLE = {"coordinate_transformation_mode": "pytorch_half_pixel", "mode": "cubic"}


def resize_model(
    x: Array, opset: int = 19, *, roi: Any = None, scales: Any = None, sizes: Any = None, **attributes: Any
) -> onnx.ModelProto:
    arrays = {"roi": roi, "scales": scales, "sizes": sizes}
    if opset < 11:
        arrays = {"scales": scales}
    kinds = {"roi": np.float32, "scales": np.float32, "sizes": np.int64}
    constants = {name: np.array(array, kinds[name]) for name, array in arrays.items() if array is not None}
    nodes = [node("Resize", ["x", *(name if name in constants else "" for name in arrays)], ["y"], **attributes)]
    kind = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
    ends = [value("x", list(x.shape), kind)], [value("y", [None] * x.ndim, kind)]
    return model(nodes, *ends, constants, {"": opset}, 8)


def upsample_model(x: Array, opset: int, scales: list[float], **attributes: Any) -> onnx.ModelProto:
    constants = {"scales": np.array(scales, np.float32)} if opset >= 9 else {}
    more = {} if opset >= 9 else {"scales": scales}
    nodes = [node("Upsample", ["x", *constants], ["y"], **attributes, **more)]
    return model(nodes, [value("x", list(x.shape))], [value("y", [None] * x.ndim)], constants, {"": opset}, 8)


# By the defect's name: a model, and its input if it is not X.
FAILING: dict[str, tuple[onnx.ModelProto, Array]] = {
    "resize-opset": (resize_model(X, 10, scales=[1.5]), X),
    "resize-axes": (resize_model(X[None], axes=[-1], scales=[2]), X[None]),
    "resize-half-pixel": (
        resize_model(X, 11, roi=[], scales=[2], coordinate_transformation_mode="tf_half_pixel_for_nn"), X
    ),
    "upsample-attribute": (upsample_model(X, 7, [2.0]), X),
    "upsample-modes": (upsample_model(X[None], 9, [1.0, 2.0], mode="linear"), X[None]),
}
BY_HAND: dict[str, tuple[onnx.ModelProto, Array, list[float]]] = {
    # at 0.5 * (k + 0.5) - 0.5: halves of pairs
    "resize-antialias": (resize_model(X[:4], scales=[0.5], antialias=1), X[:4], [3, 5]),
    "resize-bool": (resize_model(X[:3] > 0, scales=[2]), X[:3] > 0, [1, 1, 0, 0, 1, 1]),
    # element 8 of 17 lies at (7 * 8 - 5) / 17 = 3
    "resize-rounding": (
        resize_model(X[:7], sizes=[17], nearest_mode="floor"), X[:7],
        [float(X[max(0, (7 * k - 5) // 17)]) for k in range(17)],
    ),
}


def test_every_defect_is_shown_here() -> None:
    names = {d.name for each in (resize_defects.RESIZE, resize_defects.UPSAMPLE) for d in each.defects}
    assert names == {*FAILING, *BY_HAND, "resize-single", "resize-region"}


@pytest.mark.parametrize("name", FAILING)
def test_where_the_evaluator_fails(name: str) -> None:
    proto, x = FAILING[name]
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        reference(proto, {"x": x})
    found, names = around(proto, {"x": x})
    np.testing.assert_array_equal(found, runtime(proto, {"x": x}))
    assert names == {name}


@pytest.mark.parametrize("name", BY_HAND)
def test_where_it_is_wrong(name: str) -> None:
    proto, x, expected = BY_HAND[name]
    try:
        assert reference(proto, {"x": x}).tolist() != expected
    except (ValueError, RuntimeError) as failure:
        assert "not inexact" in str(failure) or "not supported" in str(failure)
    found, names = around(proto, {"x": x})
    assert found.dtype == x.dtype and found.tolist() == expected and names == {name}


def test_a_single_element_is_sampled_at_0() -> None:
    """X[0] itself; at -0.5 it were a mean of neighbours."""
    x = X.reshape(1, 1, 1, 8)
    proto = resize_model(x, sizes=[1, 1, 1, 1], **SINGLE)
    found, names = around(proto, {"x": x})
    assert names == {"resize-single"}
    assert found.item() == runtime(proto, {"x": x}).item() == X[0] != reference(proto, {"x": x}).item()


def test_a_length_below_1_is_a_single_element() -> None:
    """Axis 1 gets a length of 8 / 12, rounded to 1: the middle of the region of interest, 3.5, or 0."""
    x = np.stack([X] * 12)
    for attributes, expected in ((CROP, (X[3] + X[4]) / 2), ({**SINGLE, "mode": "linear"}, X[0])):
        proto = resize_model(
            x, sizes=[1, 8], keep_aspect_ratio_policy="not_larger", roi=[0, 0, 1, 1], **{"mode": "linear", **attributes}
        )
        found, names = around(proto, {"x": x})
        assert names == {"resize-single"}
        assert found.tolist() == [[expected]] != reference(proto, {"x": x}).tolist()


def test_a_region_of_interest_in_float32() -> None:
    """0.1 and 0.8 are a little more: element 2 of 7 lies a little beyond 1."""
    proto = resize_model(X[:4], roi=[0.1, 0.8], sizes=[7], nearest_mode="ceil", **CROP)
    ends = [float(np.float32(v)) for v in (0.1, 0.8)]
    assert 3 * ends[0] + 2 * 3 * (ends[1] - ends[0]) / 6 > 1
    found, names = around(proto, {"x": X[:4]})
    assert (found[2], reference(proto, {"x": X[:4]})[2]) == (X[2], X[1])
    assert names == {"resize-region"}


GOOD: list[dict[str, Any]] = [
    {"scales": [1, 2]},
    {"scales": [0.6, 1.5], "mode": "linear"},
    {"scales": [2, 0.5], "mode": "cubic", "cubic_coeff_a": -0.5},
    {"scales": [0.4, 0.5], "mode": "cubic", "antialias": 1},
    {"scales": [0.5, 2], "mode": "linear", "antialias": 1, "exclude_outside": 1},
    {"scales": [0.8, 2], "mode": "cubic", "exclude_outside": 1},
    {"sizes": [3, 5], "mode": "linear", "coordinate_transformation_mode": "align_corners"},
    {"sizes": [3, 5], "coordinate_transformation_mode": "asymmetric", "nearest_mode": "ceil"},
    {"scales": [0.8, 0.7], "mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"},
    {"sizes": [3, 5], "axes": [1, 0], "keep_aspect_ratio_policy": "not_smaller", "nearest_mode": "round_prefer_ceil"},
    {"sizes": [3, 5], "roi": [-0.25, 0.25, 0.75, 1.5], "extrapolation_value": 9.0, "mode": "linear", **CROP},
    {"sizes": [1, 1], "mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"},
]


@pytest.mark.parametrize("case", GOOD, ids=str)
def test_where_the_evaluator_is_right(case: dict[str, Any]) -> None:
    """What stands in for it gives the same."""
    x = np.stack([X * k - k for k in range(1, 6)]).astype(np.float32)
    proto = resize_model(x, **case)
    found, names = around(proto, {"x": x})
    expected = reference(proto, {"x": x})
    assert not names
    np.testing.assert_array_equal(found, expected)
    inputs = {name: np.array(case[name]) if name in case else None for name in ("roi", "scales", "sizes")}
    inputs["scales"] = None if inputs["scales"] is None else inputs["scales"].astype(np.float32)
    attributes = {"mode": "nearest", **{name: v for name, v in case.items() if name not in inputs}}
    np.testing.assert_allclose(resize(x, attributes, 19, **inputs), expected, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("scales", [[1.0, 1.0, 2.0, 1.5], [1.0, 1.0, 0.5, 0.6]], ids=str)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_operator_set_10(mode: str, scales: list[float]) -> None:
    x = np.stack([X, X[::-1], X * 2])[None, None]
    proto = resize_model(x, 10, scales=scales, mode=mode)
    np.testing.assert_allclose(around(proto, {"x": x})[0], runtime(proto, {"x": x}), rtol=1e-6, atol=1e-5)
