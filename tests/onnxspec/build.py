"""Hand-made models for the tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hwflow.errors import Finding, ModelRefused

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
FLOAT = TensorProto.FLOAT

node = helper.make_node


def value(name: str, shape: Sequence[int | str | None] | None, kind: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto] | None = None,
    outputs: Sequence[onnx.ValueInfoProto] | None = None,
    constants: Mapping[str, Any] | None = None,
    opsets: Mapping[str, int] | None = None,
    ir_version: int = 10,
    **more: Any,
) -> onnx.ModelProto:
    """A model; by default input x [1, 4] and output y [1, 4], both float, opset 21. Validation has nothing to say
    about it but what the arguments give reason for."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [value("x", [1, 4])] if inputs is None else inputs,
        [value("y", [1, 4])] if outputs is None else outputs,
        [
            array if isinstance(array, TensorProto) else numpy_helper.from_array(np.asarray(array), name)
            for name, array in (constants or {}).items()
        ],
        value_info=more.pop("value_info", []),
        sparse_initializer=more.pop("sparse_initializer", []),
        doc_string="Made by a test.",
    )
    imports = [helper.make_opsetid(d, v) for d, v in ({"": 21} if opsets is None else opsets).items()]
    more.setdefault("domain", "org.example")
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version, **more)


def refused(call: Callable[[], object]) -> list[str]:
    """The texts of the findings with which ``call`` refuses."""
    with pytest.raises(ModelRefused) as caught:
        call()
    return texts(caught.value.findings)


def texts(findings: Sequence[Finding]) -> list[str]:
    return [str(finding) for finding in findings]
