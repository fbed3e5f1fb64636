"""Whether a model is quantized at all. Imports little: `check` says so of large float models in no time."""

from __future__ import annotations

from collections.abc import Sequence

from hwflow.errors import Finding, ModelRefused
from hwflow.frontend.element_types import KNOWN_TYPES, REAL_TYPES, STREAM_TYPES
from hwflow.onnxspec import ModelProto
from hwflow.onnxspec.graph import Scope
from hwflow.onnxspec.tensors import DTYPE_NAMES, ELEMENT_TYPES

STANDARD_QUANTIZERS = frozenset({
    "ConvInteger", "DynamicQuantizeLinear", "MatMulInteger", "QLinearConv", "QLinearMatMul", "QuantizeLinear",
})  # fmt: skip
"""Operators of ai.onnx that make integers of reals, or work on integers."""

_QUANTIZE = "quantize the model first, for example with 'hwflow quantize' and calibration data"


def is_dialect(operator: tuple[str, str]) -> bool:
    """Whether an operator belongs to a dialect of quantized models (or is a function, whose body may)."""
    return operator[0] != "" or operator[1] in STANDARD_QUANTIZERS or operator[1] == "DequantizeLinear"


def refuse_unquantized(model: ModelProto, scopes: Sequence[Scope]) -> None:
    """Raise :class:`ModelRefused` for a float model, with what :func:`hwflow.frontend.lower.lower` says about it.

    ``scopes`` are those of the model (:func:`hwflow.onnxspec.graph.scopes`). Resolving a large float model takes much
    longer than seeing that it is one.
    """
    main = scopes[0]
    operators = {(node.op_type, node.domain) for scope in scopes for node in scope.nodes}
    if any(is_dialect((domain, op_type)) for op_type, domain in operators):
        return
    integer_types = {ELEMENT_TYPES[name] for name in STREAM_TYPES}
    initializers = {*main.initializers}
    inputs = [info.type.tensor_type.elem_type for info in model.graph.input if info.name not in initializers]
    if all(number in integer_types for number in inputs):
        return
    types = [
        input_type(info.name, DTYPE_NAMES[number])
        for info in model.graph.input
        if info.name not in initializers
        and (number := info.type.tensor_type.elem_type) in DTYPE_NAMES
        and DTYPE_NAMES[number] not in (*STREAM_TYPES, *REAL_TYPES)
    ]
    raise ModelRefused([unquantized(model.graph.name), *types])


def unquantized(name: str) -> Finding:
    return Finding(
        "quantized-model", f"model '{name}'",
        "the model must be quantized (QDQ, QOperator or QONNX), not hold float operators only", _QUANTIZE,
    )


def input_type(name: str, dtype: str) -> Finding:
    return Finding(
        "input-type", f"input '{name}'", f"element type must be one of {KNOWN_TYPES}, not {dtype}",
        "convert the input on the host",
    )
