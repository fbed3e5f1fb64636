"""The ONNX IR specification: reading a model file, its clauses as checks, shape and type resolution."""

from onnx import ModelProto

from hwflow.onnxspec.model import Attribute, OnnxNode, ResolvedModel, ValueInfo
from hwflow.onnxspec.reader import read_model
from hwflow.onnxspec.resolve import resolve, resolve_with_graph
from hwflow.onnxspec.validate import is_clause, validate

__all__ = [
    "Attribute",
    "ModelProto",
    "OnnxNode",
    "ResolvedModel",
    "ValueInfo",
    "is_clause",
    "read_model",
    "resolve",
    "resolve_with_graph",
    "validate",
]
