"""Parts of a model evaluated by ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx.reference
import onnx.utils

from hwflow.errors import Finding, ModelRefused

# The evaluator has no DequantizeLinear before operator set 19 (onnx 1.23); nothing that version 13 models may hold changed
# its meaning on the way there.
_EVALUATED_OPSET = 19


class RegionEvaluator:
    """Evaluates any region of ``model`` between values: feeds cut it off from what lies before."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = _raised(model)
        self._producers = {name: node for node in self._model.graph.node for name in node.output if name}
        self._initializers = {i.name: i for i in self._model.graph.initializer}

    def run(self, outputs: Sequence[str], feeds: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """``outputs`` computed from ``feeds`` (any values of the graph), each with its frame axis."""
        nodes: list[onnx.NodeProto] = []
        needed, seen = list(outputs), set(feeds)
        chosen: set[int] = set()
        initializers: dict[str, onnx.TensorProto] = {}
        while needed:
            name = needed.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in self._initializers:
                initializers[name] = self._initializers[name]
                continue
            node = self._producers.get(name)
            if node is None:
                raise ModelRefused(Finding("region-closed", f"value '{name}'", "must be fed, not missing", "give it as an input"))
            if id(node) not in chosen:
                chosen.add(id(node))
                needed.extend(n for n in node.input if n)
        nodes = [n for n in self._model.graph.node if id(n) in chosen]
        graph = onnx.helper.make_graph(
            nodes, "region",
            [onnx.helper.make_value_info(n, onnx.TypeProto()) for n in feeds],
            [onnx.helper.make_value_info(n, onnx.TypeProto()) for n in outputs],
            list(initializers.values()),
        )
        region = onnx.helper.make_model(graph, opset_imports=self._model.opset_import, ir_version=self._model.ir_version)
        results = onnx.reference.ReferenceEvaluator(region).run(list(outputs), dict(feeds))
        return {name: np.asarray(array) for name, array in zip(outputs, results, strict=True)}


def _raised(model: onnx.ModelProto) -> onnx.ModelProto:
    version = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), None)
    if version is None or version >= _EVALUATED_OPSET:
        return model
    if version < 13:
        return onnx.version_converter.convert_version(model, _EVALUATED_OPSET)
    raised = onnx.ModelProto()
    raised.CopyFrom(model)
    for opset in raised.opset_import:
        if opset.domain in ("", "ai.onnx"):
            opset.version = _EVALUATED_OPSET
    raised.ir_version = max(raised.ir_version, 9)
    return raised
