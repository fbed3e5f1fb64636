"""Resolving models in tests, and what the tests look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from hwflow.onnxspec import ResolvedModel, resolve_with_graph


def resolve(proto: onnx.ModelProto, dimensions: Mapping[str, int]) -> ResolvedModel:
    return resolve_with_graph(proto, dimensions)[0]


def run(proto: onnx.ModelProto, **dimensions: int) -> ResolvedModel:
    before = proto.SerializeToString()
    resolved = resolve(proto, dimensions)
    assert proto.SerializeToString() == before, "resolving must not change the model"
    return resolved


def ops(resolved: ResolvedModel) -> list[str]:
    return [n.op_type for n in resolved.nodes]


def shapes(resolved: ResolvedModel) -> dict[str, tuple[int, ...]]:
    return {name: info.shape for name, info in resolved.values.items()}


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, dtype=np.int64)


def floats(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, dtype=np.float32)
