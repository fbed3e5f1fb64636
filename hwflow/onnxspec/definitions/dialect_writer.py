"""Write the functions that define dialects' operators, in ONNX's text form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import onnx
from onnx import parser

from hwflow.onnxspec.definitions.function_writer import Use, Writer

MODERN = 13
"""The oldest version of ai.onnx that they are written in: quantizers have an axis, axes are inputs."""


class Call(Use):
    """A use whose operands and attributes are those of the operator's form."""

    @classmethod
    def of(cls, use: Use) -> Call:
        """Return the call of a use."""
        return cls(use.node, use.version, use.inputs, use.constants)

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return len(self.node.output)

    def shape(self, place: int) -> tuple[int, ...] | None:
        """Return the shape of an input; None where it is absent."""
        info = self.input(place)
        return None if info is None else info.shape

    def kind(self, place: int) -> str:
        """Return the element type of an input that is there."""
        info = self.inputs[place]
        assert info is not None
        return info.dtype

    def constant(self, place: int) -> bool:
        """Tell whether an input is a constant."""
        return place < len(self.constants) and self.constants[place] is not None

    def integer(self, name: str, default: int = 0) -> int:
        """Return an attribute."""
        return int(self.attribute(name, default))

    def real(self, name: str, default: float) -> float:
        """Return an attribute as the float32 number that it is."""
        return float(np.float32(self.attribute(name, default)))


class DialectWriter(Writer):
    """Collects the nodes of a definition; values are named by strings. ``version``: of ai.onnx, at least."""

    def __init__(self, call: Call, version: int = MODERN) -> None:
        super().__init__(max(version, call.version))
        self.call = call

    def argument(self, place: int) -> str:
        """Return the name of an input; empty where it is absent."""
        return f"input_{place}" if self.call.shape(place) is not None else ""

    def let(self, node: str) -> str:
        """Add a node, ``Operator <attributes> (inputs)``; return its result."""
        (name,) = self.several(node, 1)
        return name

    def several(self, node: str, count: int) -> list[str]:
        """Add a node with ``count`` results."""
        names = [f"value_{len(self.nodes)}{'_' * k}" for k in range(count)]
        (parsed,) = parser.parse_graph(f"f () => () {{ {', '.join(names)} = {node} }}").node
        self.nodes.append(parsed)
        return names

    def integers(self, values: Iterable[int], kind: str = "int64") -> str:
        """Add a constant vector."""
        return self.constant([*values], kind)

    def number(self, value: npt.ArrayLike, kind: str = "float32") -> str:
        """Add a constant, of no axes where it is one number."""
        return self.constant(value, kind)

    def part(self, value: str, start: int, end: int, axis: int) -> str:
        """Add a slice along one axis."""
        places = ", ".join(self.integers([number]) for number in (start, end, axis))
        return self.let(f"Slice ({value}, {places})")

    def transposed(self, value: str, *axes: int) -> str:
        """Add a transpose."""
        return self.let(f"Transpose <perm = [{', '.join(map(str, axes))}]> ({value})")

    def returned(self, *results: str) -> onnx.FunctionProto:
        """Return the function of the call's inputs whose outputs are ``results``, those that it may have."""
        assert self.call.outputs <= len(results), "forms limit the number of outputs"
        inputs: Sequence[str] = [f"input_{place}" for place in range(len(self.call.inputs))]
        return self.function(self.call, inputs, [*results[: self.call.outputs]])
