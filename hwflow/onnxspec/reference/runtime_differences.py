"""Deviations of onnxruntime (seen in 1.31.1) from the operators' definitions, which a comparison with its results must
expect. Operators' records name them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Difference:
    """A deviation of onnxruntime's CPU kernel from an operator's definition, where ``applies`` says so of a node's
    attributes."""

    name: str
    text: str
    applies: Callable[[Mapping[str, Any]], bool] = lambda attributes: True


ROUNDING = Difference(
    "runtime-rounding",
    "the zero point is added before rounding: ties differ where it is odd (of the pool, in the vector kernel only)",
)
SOFTMAX = Difference("runtime-softmax", "levels may be off by one where no tie is near")
SATURATION = Difference(
    "runtime-saturation",
    "on x86 processors without VNNI, sums of two products of uint8 and int8 saturate at 16 bits",
)
RESIZE = Difference("runtime-resize", "means of integers are cut off, not rounded")
FLOAT32 = Difference(
    "runtime-float32",
    "quotients are float32: a level may be off by one where a tie is within a few units in the last place",
)


def _transform(attributes: Mapping[str, Any]) -> str:
    return str(attributes.get("post_transform", "NONE"))


def _numbers(attributes: Mapping[str, Any], name: str) -> np.ndarray[Any, np.dtype[Any]]:
    return np.asarray(attributes.get(f"{name}_as_tensor", attributes.get(name, ()))).reshape(-1)


def _labels(attributes: Mapping[str, Any], *names: str) -> int:
    return sum(len(attributes.get(name, ())) for name in (*names, "classlabels_strings"))


def _two_of_trees(attributes: Mapping[str, Any]) -> bool:
    if _labels(attributes, "classlabels_int64s") != 2:
        return False
    one = len(set(attributes.get("class_ids", ()))) <= 1 and len(_numbers(attributes, "base_values")) <= 1
    negative = bool((_numbers(attributes, "class_weights") < 0).any())
    return not one or _transform(attributes) != ("LOGISTIC" if negative else "NONE")


def _two_of_a_row(attributes: Mapping[str, Any]) -> bool:
    one = len(attributes.get("intercepts", ())) == 1 and _labels(attributes, "classlabels_ints") == 2
    return one and _transform(attributes) != "LOGISTIC"


TWO_CLASSES = Difference(
    "runtime-two-classes",
    "two classes are another choice than onnx's reference has of scores of both, of two base values, and of one score "
    "unless post_transform is NONE and no weight is negative, or LOGISTIC and one is; the specification says neither",
    _two_of_trees,
)
ONE_ROW = Difference(
    "runtime-one-row",
    "of two classes with one row of coefficients the first has 1 less the score, unless post_transform is LOGISTIC",
    _two_of_a_row,
)
CHOICE = Difference(
    "runtime-choice", "the class is chosen by the scores before post_transform",
    lambda attributes: _transform(attributes) in ("PROBIT", "SOFTMAX_ZERO"),
)
ONE_TARGET = Difference(
    "runtime-one-target", "one target has no post_transform but PROBIT",
    lambda attributes: attributes.get("targets", attributes.get("n_targets", 1)) == 1
    and _transform(attributes) not in ("NONE", "PROBIT", "0", "4"),
)


def _unnamed(attributes: Mapping[str, Any], kind: str, targets: int) -> bool:
    """Tell whether a target may be one that no leaf names: no tree does in each of its leaves."""
    leaves = Counter(
        tree for tree, mode in zip(attributes["nodes_treeids"], attributes["nodes_modes"], strict=True)
        if mode == "LEAF"
    )
    keys = set(zip(*(attributes[f"{kind}_{name}"] for name in ("treeids", "nodeids", "ids")), strict=True))
    named = Counter((tree, target) for tree, _, target in keys)
    return len({target for (tree, target), count in named.items() if count == leaves[tree]}) < targets


def _unequal_nan(attributes: Mapping[str, Any]) -> bool:
    modes = np.asarray(attributes.get("nodes_modes", ()))
    unequal = modes == ("BRANCH_NEQ" if modes.dtype.kind == "U" else 5)
    tracks = np.asarray(attributes.get("nodes_missing_value_tracks_true") or np.zeros(len(modes)))
    return bool((unequal & (tracks == 0)).any())


def _unnamed_base(attributes: Mapping[str, Any]) -> bool:
    targets = attributes.get("n_targets", 1)
    return targets > 1 and len(_numbers(attributes, "base_values")) > 0 and _unnamed(attributes, "target", targets)


def _unnamed_class(attributes: Mapping[str, Any]) -> bool:
    classes = _labels(attributes, "classlabels_int64s")
    negative = bool((_numbers(attributes, "class_weights") < 0).any())
    least = negative and not len(_numbers(attributes, "base_values"))
    return classes > 2 and least and _unnamed(attributes, "class", classes)


BASE = Difference("runtime-base", "a target that no leaf names is 0, without its base value", _unnamed_base)
UNNAMED = Difference("runtime-unnamed", "a class that no leaf names is not chosen before one below 0", _unnamed_class)
UNEQUAL = Difference("runtime-unequal", "NaN is unequal, whatever nodes_missing_value_tracks_true is", _unequal_nan)
NUMBERS = Difference(
    "runtime-numbers", "post_transform 1 is LOGISTIC and 2 is SOFTMAX",
    lambda attributes: attributes.get("post_transform", 0) in (1, 2),
)
SIGNS = Difference(
    "runtime-signs", "norm L2 loses signs where the result takes the memory of what is divided",
    lambda attributes: attributes.get("norm", "MAX") == "L2",
)
