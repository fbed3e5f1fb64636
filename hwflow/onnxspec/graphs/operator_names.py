"""Names of operators that code depends on: those written into graphs, and those that define a graph's structure
(constants, control flow, sequences). Every other operator is named only by its record."""

from __future__ import annotations

from typing import Final

ADD: Final = "Add"
CAST: Final = "Cast"
CAST_LIKE: Final = "CastLike"
CONCAT_FROM_SEQUENCE: Final = "ConcatFromSequence"
CONSTANT: Final = "Constant"
DEQUANTIZE_LINEAR: Final = "DequantizeLinear"
GEMM: Final = "Gemm"
IDENTITY: Final = "Identity"
IF: Final = "If"
LOOP: Final = "Loop"
MAT_MUL: Final = "MatMul"
MAT_MUL_INTEGER: Final = "MatMulInteger"
MUL: Final = "Mul"
QUANTIZE_LINEAR: Final = "QuantizeLinear"
RESHAPE: Final = "Reshape"
SCAN: Final = "Scan"
SEQUENCE_CONSTRUCT: Final = "SequenceConstruct"
SEQUENCE_EMPTY: Final = "SequenceEmpty"
SEQUENCE_INSERT: Final = "SequenceInsert"
SEQUENCE_MAP: Final = "SequenceMap"
SHAPE: Final = "Shape"
SIZE: Final = "Size"
SPLIT_TO_SEQUENCE: Final = "SplitToSequence"
TRANSPOSE: Final = "Transpose"
WHERE: Final = "Where"
