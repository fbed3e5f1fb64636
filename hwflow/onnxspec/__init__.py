"""The ONNX IR specification: reading a model file, its clauses as checks, shape and type resolution, training."""

from onnx import ModelProto

from hwflow.onnxspec.model import Attribute, OnnxNode, ResolvedModel, ValueInfo
from hwflow.onnxspec.reader import read_model
from hwflow.onnxspec.resolve import resolve, resolve_with_graph
from hwflow.onnxspec.training import TrainingModel
from hwflow.onnxspec.validate import is_clause, validate
from hwflow.onnxspec.writer import write_model

__all__ = [
    "Attribute",
    "ModelProto",
    "OnnxNode",
    "ResolvedModel",
    "TrainingModel",
    "ValueInfo",
    "is_clause",
    "read_model",
    "resolve",
    "resolve_with_graph",
    "validate",
    "write_model",
]
