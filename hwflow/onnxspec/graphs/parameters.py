"""What counts as a parameter of a model.

A parameter is an element of a constant that live nodes read as data: weights, biases, normalisation statistics, tables.
Not counted: scales and zero points, scalars, and int64 tensors (shapes, axes, indices).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hwflow.onnxspec.resolving.resolved_model import Array, OnnxNode, ValueInfo

# Inputs that are data; the rest of these operators' inputs are scales, zero points and bit widths.
_DATA_INPUTS: dict[str, tuple[int, ...]] = {
    "QuantizeLinear": (0,),
    "DequantizeLinear": (0,),
    "QLinearConv": (0, 3, 8),
    "QLinearMatMul": (0, 3),
    "ConvInteger": (0, 1),
    "MatMulInteger": (0, 1),
    "MatMulIntegerToFloat": (0, 1, 6),
    "QGemm": (0, 3, 6),
    "QLinearAdd": (0, 3),
    "QLinearMul": (0, 3),
    "Quant": (0,),
    "IntQuant": (0,),
    "FloatQuant": (0,),
    "BipolarQuant": (0,),
    "Trunc": (0,),
}


def count_parameters(nodes: Iterable[OnnxNode], constants: Mapping[str, Array], values: Mapping[str, ValueInfo]) -> int:
    """Elements of the constants that the nodes read as data; a constant read twice counts once."""
    names: set[str] = set()
    for node in nodes:
        positions = _DATA_INPUTS.get(node.op_type, range(len(node.inputs)))
        names.update(node.inputs[i] for i in positions if i < len(node.inputs) and node.inputs[i] in constants)
    return sum(constants[n].size for n in names if constants[n].ndim and values[n].dtype not in ("int64", "string"))
