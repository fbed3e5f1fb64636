"""The clauses of the operators of ai.onnx.ml that have no record yet."""

from __future__ import annotations

from collections.abc import Mapping

from hwflow.onnxspec.clauses.ml import category_maps
from hwflow.onnxspec.clauses.ml.node_reading import OperatorClauses
from hwflow.onnxspec.graphs.operator_facts import Key

_ML = "ai.onnx.ml"

UNRECORDED: Mapping[Key, OperatorClauses] = {
    (_ML, "CastMap"): category_maps.CAST_MAP,
    (_ML, "DictVectorizer"): category_maps.DICT_VECTORIZER,
    (_ML, "ZipMap"): category_maps.ZIP_MAP,
}
