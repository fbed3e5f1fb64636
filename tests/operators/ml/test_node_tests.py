"""ONNX's own node tests of ai.onnx.ml, by the operators' definitions, or the node itself where it is the host's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from hwflow.onnxspec import resolve_with_graph
from hwflow.onnxspec.reference.evaluation import RegionEvaluator
from hwflow.operators.onnx_operators import KEPT
from tests.onnx_node_tests.cases import node_cases

ML = "ai.onnx.ml"
NAMES = [
    "test_ai_onnx_ml_array_feature_extractor", "test_ai_onnx_ml_binarizer",
    "test_ai_onnx_ml_label_encoder_string_int", "test_ai_onnx_ml_label_encoder_string_int_no_default",
    "test_ai_onnx_ml_label_encoder_tensor_mapping", "test_ai_onnx_ml_label_encoder_tensor_value_only_mapping",
]  # fmt: skip


def cases() -> dict[str, Any]:
    own = [case for case in node_cases() if case.name.startswith("test_ai_onnx_ml") and "tree" not in case.name]
    return {case.name: case for case in own}


def test_all_are_here() -> None:
    assert sorted(cases()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_node(name: str) -> None:
    case = cases()[name]
    flat = resolve_with_graph(case.model, {}, KEPT, whole=True)[1]
    for inputs, outputs in case.data_sets:
        given, expected = ([numpy_helper.to_array(v) if hasattr(v, "dims") else np.asarray(v) for v in values]
                           for values in (inputs, outputs))  # fmt: skip
        feeds = dict(zip((info.name for info in case.model.graph.input), given, strict=True))
        names = [info.name for info in case.model.graph.output]
        found = RegionEvaluator(flat).region(names, frozenset(feeds)).values(feeds)
        for output, wanted in zip(names, expected, strict=True):
            assert np.asarray(found[output]).tolist() == wanted.tolist()
