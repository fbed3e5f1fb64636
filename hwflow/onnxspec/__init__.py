"""The ONNX IR specification: reading a model file, its clauses as checks, shape and type resolution, training."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from onnx import ModelProto

from hwflow.onnxspec.reading.reader import read_model
from hwflow.onnxspec.resolving.resolved_model import Attribute, OnnxNode, ResolvedModel, ValueInfo
from hwflow.onnxspec.validate import validate

if TYPE_CHECKING:
    from hwflow.onnxspec.reading.writer import write_model
    from hwflow.onnxspec.resolving.resolver import resolve_with_graph
    from hwflow.onnxspec.training.training_model import TrainingModel

# Imported on first use: checking a model needs none of them, and must start fast.
_LATER = {
    "TrainingModel": "hwflow.onnxspec.training.training_model",
    "resolve_with_graph": "hwflow.onnxspec.resolving.resolver",
    "write_model": "hwflow.onnxspec.reading.writer",
}

__all__ = [
    "Attribute",
    "ModelProto",
    "OnnxNode",
    "ResolvedModel",
    "TrainingModel",
    "ValueInfo",
    "read_model",
    "resolve_with_graph",
    "validate",
    "write_model",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'hwflow.onnxspec' has no attribute {name!r}")
