"""Preprocessing that trees absorb: scalings and casts of features before them, and choices among features.

A scaling or cast is monotone in its feature, with float rounding as well (IEEE 754 operations round to nearest, which
keeps order). So a threshold on the result is one on the feature itself: the first key that passes it, found by
bisection with the reference evaluator, whose floats the result then equals for every number. Trees that see other
columns of the same features, each by a node of its own, ask for these features themselves, which come in once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from hwflow.frontend.context import Lowering
from hwflow.frontend.stream_types import REAL_TYPES
from hwflow.frontend.views import Constant, HostInput
from hwflow.numerics.float_keys import KEY_BITS, floats_of, key_range
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.reading.numpy_tensors import ELEMENT_TYPES
from hwflow.onnxspec.reference.evaluation import RegionEvaluator
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.ml.ensembles import IntArray
from hwflow.operators.ml.ranked_nodes import CutNodes

AnyArray = npt.NDArray[Any]


def absorbed(state: Lowering, name: str) -> Absorbed | None:
    """Return what the thresholds of features ``name``, which the host holds, may absorb; None for nothing."""
    producers = {result: node for node in state.model.nodes for result in node.outputs if result}
    chain: list[OnnxNode] = []
    source = name
    while (node := producers.get(source)) is not None and (before := _stream_of(state, node)):
        chain.insert(0, node)
        source = before
    dtype = state.model.values[source].dtype
    if not chain or dtype not in KEY_BITS or dtype not in REAL_TYPES:
        return None
    found = Absorbed(source, dtype, name, RegionEvaluator(_model(state, chain, source, name)))
    return found if found.keeps_infinities(state.frame_shape(source)[0]) else None


def picked(state: Lowering, name: str) -> tuple[str, IntArray] | None:
    """Return the features that those of ``name``, which the host holds, are picked from, and the place of each there;
    None if they are not picked, or so few that all of their nodes together read less than what they are picked from."""
    producers = {result: node for node in state.model.nodes for result in node.outputs if result}
    chain: list[OnnxNode] = []
    source = name
    while (node := producers.get(source)) is not None and (before := _picks_of(state, node)):
        chain.insert(0, node)
        source = before
    if not chain:
        return None
    features, dtype = state.frame_shape(source)[0], state.model.values[source].dtype
    readers = [node for node in state.model.nodes if source in node.inputs]
    taken = [state.frame_shape(node.result)[0] if _picks_of(state, node) else features for node in readers]
    if dtype not in KEY_BITS or sum(taken) < features:
        return None
    # Numbers of the features tell where each comes from; two numberings, whether they are numbers of features at all.
    numbers = np.stack([np.arange(features), np.arange(features)[::-1]]).astype(dtype)
    made = RegionEvaluator(_model(state, chain, source, name)).run([name], {source: numbers})[name]
    places, reversed_places = np.asarray(made).astype(np.int64)
    if not ((places >= 0) & (places < features) & (places + reversed_places == features - 1)).all():
        return None
    return source, places


def _picks_of(state: Lowering, node: OnnxNode) -> str:
    """Return the features that a node picks from, by constant places; "" for any other node."""
    streams = [each for each in node.inputs if each and _view(state, each) is None]
    if len(streams) != 1 or len(node.outputs) != 1 or not facts_of(node.domain, node.op_type).moves:
        return ""
    (name,), values = streams, state.model.values
    vectors = name in values and len(values[name].shape) == len(values[node.result].shape) == 2
    return name if vectors and isinstance(state.views.get(name), HostInput) else ""


def _stream_of(state: Lowering, node: OnnxNode) -> str:
    """Return the features that a node scales, shifts, limits or casts one by one; "" for any other node."""
    streams = [(place, each) for place, each in enumerate(node.inputs) if each and _view(state, each) is None]
    facts = facts_of(node.domain, node.op_type)
    if len(streams) != 1 or len(node.outputs) != 1 or streams[0][0] in facts.divisors:
        return ""
    name = streams[0][1]
    values = state.model.values
    same = name in values and values[name].shape == values[node.result].shape and len(values[name].shape) == 2
    real = same and {values[name].dtype, values[node.result].dtype} <= {*KEY_BITS} & REAL_TYPES
    alike = facts.elementwise and (facts.affine or facts.keeps_elements)
    if not real or not alike or not isinstance(state.views[name], HostInput):
        return ""
    constants = [view.array for each in node.inputs if each and (view := _view(state, each)) is not None]
    return name if all(np.isfinite(array).all() for array in constants) else ""


def _view(state: Lowering, name: str) -> Constant | None:
    view = state.views.get(name)
    return view if isinstance(view, Constant) else None


def _model(state: Lowering, chain: list[OnnxNode], source: str, result: str) -> onnx.ModelProto:
    """Return the model of a chain of nodes."""
    nodes = []
    for node in chain:
        attributes: dict[str, Any] = {**node.attributes}
        nodes.append(helper.make_node(node.op_type, node.inputs, node.outputs, domain=node.domain, **attributes))
    names = dict.fromkeys(each for node in chain for each in node.inputs if each and _view(state, each) is not None)
    tensors = []
    for name in names:
        view = _view(state, name)
        assert view is not None, "of a constant"
        kind = helper.tensor_dtype_to_np_dtype(ELEMENT_TYPES[state.model.values[name].dtype])
        tensors.append(numpy_helper.from_array(view.array.astype(kind), name))
    graph = helper.make_graph(
        nodes, "absorbed", [helper.make_value_info(source, onnx.TypeProto())],
        [helper.make_value_info(result, onnx.TypeProto())], tensors,
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in state.model.opsets.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=state.model.ir_version)


@dataclass(frozen=True, eq=False)
class Absorbed:
    """``evaluator`` gives the features ``result`` of those of ``source``, of element type ``dtype``, one by one."""

    source: str
    dtype: str
    result: str
    evaluator: RegionEvaluator

    def of(self, x: AnyArray) -> npt.NDArray[np.float64]:
        """Return the results of rows of features."""
        made = self.evaluator.run([self.result], {self.source: x})[self.result]
        return np.asarray(made).astype(np.float64)

    def keeps_infinities(self, features: int) -> bool:
        """Tell whether NaN stays NaN, and no infinity becomes it."""
        rows = np.repeat(np.array([[-np.inf], [np.inf], [np.nan]], self.dtype), features, axis=1)
        nan = np.isnan(self.of(rows))
        return bool(nan[2].all() and not nan[:2].any())

    def pulled(self, nodes: CutNodes, features: int) -> tuple[CutNodes, IntArray]:
        """Return nodes that compare ``source``, and their cuts as keys."""
        order = np.argsort(nodes.feature, kind="stable")
        row = np.zeros(len(order), np.int64)
        row[order] = np.arange(len(order)) - np.searchsorted(nodes.feature[order], nodes.feature[order])
        shape = (int(row.max(initial=0)) + 1, features)
        bounds, strict = np.zeros(shape), np.zeros(shape, bool)
        bounds[row, nodes.feature] = np.nan_to_num(nodes.bound, posinf=np.inf, neginf=-np.inf)
        strict[row, nodes.feature] = nodes.strict
        least, most = key_range(self.dtype)
        ends = self.of(floats_of(np.array([[least], [most - 1]]).repeat(features, axis=1), self.dtype))
        falls = ends[0] > ends[1]
        low, high = np.full(shape, least), np.full(shape, most)  # the first key that passes lies from low to high
        while (low < high).any():
            middle = (low >> 1) + (high >> 1) + (low & high & 1)  # their difference may have 65 bits
            y = self.of(floats_of(np.minimum(middle, most - 1), self.dtype))
            passed = np.where(strict, y > bounds, y >= bounds) ^ falls
            low, high = np.where((low < high) & ~passed, middle + 1, low), np.where((low < high) & passed, middle, high)
        turned = falls[nodes.feature] & ~np.isnan(nodes.bound)
        true, false = np.where(turned, (nodes.false, nodes.true), (nodes.true, nodes.false))
        return replace(nodes, true=true, false=false, missing=nodes.missing ^ turned), low[row, nodes.feature]
