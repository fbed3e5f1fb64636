"""Write the function that defines an operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from hwflow.onnxspec.graphs import operator_names as names
from hwflow.onnxspec.resolving.resolved_model import Array, ValueInfo

LEAST_VERSION = 11
"""The least operator set that definitions are written in."""

_PARTS_AS_INPUT = 13  # version of Split, Squeeze and Unsqueeze


class Undefined(ValueError):
    """Raised where a node's form has no definition: a sentence "X must be Y, not Z", and what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


@dataclass
class Use:
    """One use of an operator: its node, the version of its operator set (of a dialect's: of ai.onnx), what is known of
    its inputs (None: absent), and the values of those that are constants. ``to_quantize``: quantizers are to be put
    into the definition."""

    node: onnx.NodeProto
    version: int
    inputs: Sequence[ValueInfo | None]
    constants: Sequence[Array | None]
    to_quantize: bool = False

    def attribute(self, name: str, default: Any) -> Any:
        """Return an attribute, texts as str."""
        for attribute in self.node.attribute:
            if attribute.name == name:
                value = helper.get_attribute_value(attribute)
                if isinstance(value, bytes):
                    return value.decode()
                if isinstance(value, list):
                    return [each.decode() if isinstance(each, bytes) else each for each in value]
                return value
        return default

    def input(self, place: int) -> ValueInfo | None:
        """Return what is known of an input, None if it is absent."""
        return self.inputs[place] if place < len(self.inputs) else None

    def reads(self, place: int) -> bool:
        """Tell whether an output is asked for."""
        return place < len(self.node.output) and bool(self.node.output[place])


Definition: TypeAlias = Callable[[Use], "onnx.FunctionProto | None"]
"""Returns the function for one use of an operator, None where there is none."""


@dataclass
class Writer:
    """Collects the nodes of a function or of a graph in it; values are named by numbers behind ``prefix``."""

    version: int
    prefix: str = ""
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    _count: int = 0

    def node(self, op_type: str, *inputs: str, count: int = 1, **attributes: Any) -> Any:
        """Add a node and return the name of its output, or the names of all if ``count`` is above 1."""
        self._count += 1
        stem = f"{self.prefix}{op_type}_{self._count}"
        outputs = [stem] if count == 1 else [f"{stem}_{place}" for place in range(count)]
        self.nodes.append(helper.make_node(op_type, inputs, outputs, name=stem, **attributes))
        return outputs[0] if count == 1 else outputs

    def constant(self, value: npt.ArrayLike, dtype: npt.DTypeLike) -> str:
        """Add a Constant."""
        return str(self.node(names.CONSTANT, value=numpy_helper.from_array(np.array(value, dtype))))

    def gather(self, name: str, place: int, axis: int) -> str:
        """Take one entry of an axis, which goes."""
        return str(self.node(names.GATHER, name, self.constant(place, np.int64), axis=axis))

    def unsqueeze(self, name: str, axis: int) -> str:
        """Add an axis."""
        if self.version < _PARTS_AS_INPUT:
            return str(self.node(names.UNSQUEEZE, name, axes=[axis]))
        return str(self.node(names.UNSQUEEZE, name, self.constant([axis], np.int64)))

    def split(self, name: str, axis: int, sizes: Sequence[int]) -> list[str]:
        """Split an axis."""
        if len(sizes) == 1:
            return [name]
        if self.version < _PARTS_AS_INPUT:
            return list(self.node(names.SPLIT, name, count=len(sizes), axis=axis, split=sizes))
        return list(self.node(names.SPLIT, name, self.constant(sizes, np.int64), count=len(sizes), axis=axis))

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        """Reshape."""
        return str(self.node(names.RESHAPE, name, self.constant(shape, np.int64)))

    def stacked(self, parts: Sequence[str], axis: int, result: str) -> None:
        """Name ``result`` what has the parts along a new axis."""
        added = [self.unsqueeze(part, axis) for part in parts]
        self.named(self.node(names.CONCAT, *added, axis=axis) if len(added) > 1 else added[0], result)

    def named(self, name: str, result: str) -> None:
        """Give a value the name of an output."""
        self.nodes.append(helper.make_node(names.IDENTITY, [name], [result], name=f"{self.prefix}{result}"))

    def function(self, use: Use, inputs: Sequence[str], outputs: Sequence[str]) -> onnx.FunctionProto:
        """Return the function of all nodes."""
        others = sorted({node.domain for node in self.nodes if node.domain})
        imports = [helper.make_opsetid("", self.version), *(helper.make_opsetid(domain, 1) for domain in others)]
        return helper.make_function("hwflow.definitions", use.node.op_type, inputs, outputs, self.nodes, imports)


def writer_for(use: Use) -> Writer:
    """Return an empty writer in the use's own version, or the least one."""
    return Writer(max(use.version, LEAST_VERSION))
