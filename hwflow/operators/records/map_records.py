"""Operators of maps, at the ends of a model: see :mod:`hwflow.onnxspec.reading.map_ends`."""

from __future__ import annotations

from hwflow.onnxspec.clauses.ml import category_maps
from hwflow.onnxspec.graphs.operator_names import CAST_MAP, DICT_VECTORIZER, ZIP_MAP
from hwflow.operators.record import ML, Operator, Reason

_AT_FIRST = Reason("reads a map, which must be a graph input", "read the graph input, or give the map's tensor as one")

RECORDS = (
    Operator(CAST_MAP, domains=ML, refused=_AT_FIRST, clauses=category_maps.CAST_MAP),
    Operator(DICT_VECTORIZER, domains=ML, refused=_AT_FIRST, clauses=category_maps.DICT_VECTORIZER),
    Operator(
        ZIP_MAP, domains=ML, clauses=category_maps.ZIP_MAP,
        refused=Reason("makes maps, which must be a graph output", "leave it out, or make its result a graph output"),
    ),
)
