"""The resolved model: plain Python and numpy, without protobuf objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hwflow.display import show

Array: TypeAlias = NDArray[np.generic]
Attribute: TypeAlias = (
    int | float | str | Array | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | tuple[Array, ...]
)


@dataclass(frozen=True)
class ValueInfo:
    """Shape and element type of one value.

    ``shape`` is for one frame (the leading dimension variable is 1); ``dtype`` is a numpy-style name: "float32",
    "uint8", "int4", "bfloat16", "bool", "string", ...
    """

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, eq=False)
class OnnxNode:
    """One node. ``domain`` is "" for ai.onnx; ``version`` is the imported version of its operator set.

    ``name`` is nonempty and unique in the model. An absent optional input or output is ""; trailing ones are omitted.
    ``attributes`` includes the schema's defaults. ``context``: the origin of a node from a function, a branch or the
    definition of another operator (" in function 'local.F'"); its name then begins with that of the replaced node.
    """

    name: str
    op_type: str
    domain: str
    version: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    context: str = ""

    @property
    def result(self) -> str:
        """The first output that is not absent: a live node has one."""
        return next(name for name in self.outputs if name)

    @property
    def where(self) -> str:
        """The ``where`` of findings about the node."""
        return f"node {show(self.name)} ({self.op_type}){self.context}"

    def integer(self, name: str, default: int = 0) -> int:
        """Return integer attribute ``name``."""
        value = self.attributes.get(name, default)
        assert isinstance(value, int)
        return value

    def integers(self, name: str) -> tuple[int, ...]:
        """Return list attribute ``name``, of integers; empty if absent."""
        values = self.attributes.get(name, ())
        assert isinstance(values, tuple)
        return tuple(int(value) for value in values)


@dataclass(frozen=True, eq=False)
class Tie:
    """State: what ``source`` is in one frame, ``target`` is ``frames`` later. ``initial``, of the shape of a frame:
    what it is at first."""

    source: str
    target: str
    initial: Array
    frames: int


@dataclass(frozen=True, eq=False)
class ResolvedModel:
    """A model with every shape known, constants folded, dead nodes dropped.

    ``nodes`` are in topological order (the file's order if that is one). ``constants`` holds the read-only arrays
    that a node reads or that are graph outputs; integers below 8 bits are stored as int8 or uint8, small floats (8 bits
    and less, bfloat16) as float32, both without loss; the element type in the model is in ``values``. ``values`` has
    every graph input, node output and constant. ``inputs`` excludes initializers; ``inputs`` and ``outputs`` keep the
    graph's order. ``parameters`` counts elements of weights and biases (see :mod:`hwflow.onnxspec.graphs.parameters`).
    ``ties``: state, whose ends are neither in ``inputs`` nor in ``outputs``.
    """

    name: str
    ir_version: int
    opsets: Mapping[str, int]
    nodes: tuple[OnnxNode, ...]
    constants: Mapping[str, Array]
    values: Mapping[str, ValueInfo]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: int
    ties: tuple[Tie, ...] = ()

    @cached_property
    def fixed(self) -> frozenset[str]:
        """Names of the constants and of values computed from constants alone (a dequantized constant, say)."""
        fixed = set(self.constants)
        for node in self.nodes:
            inputs = [name for name in node.inputs if name]
            if inputs and all(name in fixed for name in inputs):
                fixed.update(name for name in node.outputs if name)
        return frozenset(fixed)

    def frame_shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of one frame of a value. A constant without a frame axis is one frame."""
        shape = self.values[name].shape
        return shape if name in self.fixed and shape[:1] != (1,) else shape[1:]
