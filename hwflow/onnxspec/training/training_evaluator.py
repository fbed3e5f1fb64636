"""Evaluate one graph of a training model with ONNX's reference evaluator; the caller holds the state."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.reference
from onnx import helper

from hwflow.display import show
from hwflow.errors import Finding, ModelRefused
from hwflow.onnxspec.graphs.inline import inline_functions
from hwflow.onnxspec.graphs.scopes import model_opsets, plain_domain, read_nodes, subgraphs
from hwflow.onnxspec.reading.numpy_tensors import from_sparse, to_tensor
from hwflow.onnxspec.reference.evaluator_defects import substitutes
from hwflow.onnxspec.resolving.resolved_model import Array
from hwflow.onnxspec.training.training_operators import TRAINING_DOMAIN, optimizers


class GraphEvaluator:
    """Evaluates ``graph`` with the operator sets and functions of ``model``.

    ``state``: initializers of the graph whose values are passed to :meth:`run`. ``inputs``: the graph's inputs by name;
    ``defaults``: the optional ones. ``where``: the graph's name in findings. Raises :class:`ModelRefused` if
    the evaluator cannot compute the graph.
    """

    def __init__(self, model: onnx.ModelProto, graph: onnx.GraphProto, state: frozenset[str], where: str) -> None:
        self.where = where
        self.inputs = {info.name: info for info in graph.input}
        self.state = state
        initializers = {tensor.name for tensor in graph.initializer}
        initializers.update(sparse.values.name for sparse in graph.sparse_initializer)
        self.defaults = frozenset(initializers.intersection(self.inputs))
        versions = model_opsets(model)
        try:
            whole = _evaluable(model, graph, state, versions)
        except Exception as error:  # any error of onnx: a malformed tensor, a function that cannot be inlined
            raise self._failed(error) from error
        gradients = list(_gradients(whole.graph))
        if gradients:
            raise ModelRefused([_no_gradient(label, where) for label in gradients])
        operators = substitutes(versions, lambda name: None)
        if TRAINING_DOMAIN in versions:
            operators += optimizers(versions[TRAINING_DOMAIN])
        try:
            self._evaluator = onnx.reference.ReferenceEvaluator(whole, new_ops=operators)
        except Exception as error:  # a missing operator, an unreadable attribute, ...
            raise self._failed(error) from error

    def run(
        self, inputs: Mapping[str, Any], wanted: Sequence[str], state: Mapping[str, Array] | None = None
    ) -> dict[str, Any]:
        """Return the values ``wanted`` (of any name in the graph). ``inputs`` may hold more than the graph reads."""
        feeds: dict[str, Any] = {name: state[name] for name in self.state} if state is not None else {}
        feeds.update({name: inputs[name] for name in self.inputs if name in inputs})
        # Copies: some of the evaluator's operators modify their inputs.
        feeds = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in feeds.items()}
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                values: Any = self._evaluator.run(None, feeds, intermediate=True)
                return {name: values[name] for name in wanted}
        except Exception as error:  # whatever numpy and the operators raise
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> ModelRefused:
        reason = " ".join(str(error).split()) or type(error).__name__
        return ModelRefused.of(
            "reference-evaluator", self.where,
            f"the graph must be what ONNX's reference evaluator can compute, but it failed: {reason[:500]}",
            "use operators that the evaluator has; to compile the model as it is, give its path to hwflow",
        )


def _evaluable(
    model: onnx.ModelProto, graph: onnx.GraphProto, state: frozenset[str], versions: Mapping[str, int]
) -> onnx.ModelProto:
    """Return the graph in the evaluator's form: state variables are inputs, sparse initializers dense, local functions
    inlined, ai.onnx written as ""."""
    whole = onnx.ModelProto(ir_version=model.ir_version)
    whole.functions.extend(model.functions)
    whole.graph.CopyFrom(graph)
    kept = [tensor for tensor in graph.initializer if tensor.name not in state]
    kept += [to_tensor(s.values.name, *from_sparse(s)) for s in graph.sparse_initializer]
    del whole.graph.initializer[:]
    del whole.graph.sparse_initializer[:]
    whole.graph.initializer.extend(kept)
    inputs = {info.name for info in graph.input}
    for tensor in graph.initializer:
        if tensor.name in state and tensor.name not in inputs:
            whole.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    whole.opset_import.extend(helper.make_opsetid(domain, version) for domain, version in versions.items())
    if whole.functions:
        whole = inline_functions(whole)
    for _, node in _nodes(whole.graph):
        node.domain = plain_domain(node.domain)
    return whole


def _nodes(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.NodeProto]]:
    """Yield every node of the graph and its nested graphs, with its ``where``."""
    pending = [graph]
    while pending:
        for node in read_nodes(pending.pop().node):
            name = node.name or next((output for output in node.outputs if output), "")
            yield f"node {show(name)} ({node.op_type})", node.proto
            pending.extend(inner for _, inner in subgraphs(node))


def _gradients(graph: onnx.GraphProto) -> Iterator[str]:
    for where, node in _nodes(graph):
        if node.op_type == "Gradient" and node.domain == TRAINING_DOMAIN:
            yield where


def _no_gradient(node: str, graph: str) -> Finding:
    return Finding(
        "reference-evaluator",
        f"{node} in {graph}",
        "the node must be what ONNX's reference evaluator can compute, but the evaluator has no operator "
        f"{TRAINING_DOMAIN}.Gradient",
        "write the derivatives as ordinary nodes; to compile the model as it is, give its path to hwflow",
    )
