"""The element types of tensors: names, widths, and their encoding in typed storage.

Sources: onnx.proto (TensorProto, and the Version enum for ``since_ir``) of onnx 1.23.2; IR.md, "Standard data types".
"""

from __future__ import annotations

from dataclasses import dataclass

_UINT8 = (0, 2**8 - 1)
_UINT16 = (0, 2**16 - 1)


@dataclass(frozen=True, slots=True)
class ElementType:
    """One element type.

    ``code`` is its number in TensorProto.DataType, ``name`` the numpy-style name that hwflow uses ("float32", "int4"),
    ``onnx_name`` the name in TensorProto.DataType. ``bits`` is the width of one element in raw data (0 for strings,
    which raw data cannot hold). ``since_ir`` is the first IR version that has it.

    ``field`` is the field of TensorProto for its elements; one entry holds ``packed`` elements, or one element takes
    ``entries`` entries, and every entry is from ``low`` to ``high`` (None: entries that are not integers).
    """

    code: int
    name: str
    onnx_name: str
    bits: int
    since_ir: int
    field: str
    packed: int = 1
    entries: int = 1
    low: int | None = None
    high: int | None = None

    def raw_bytes(self, count: int) -> int:
        """Return the bytes of ``count`` elements in raw data; elements below 8 bits are packed, and the last byte is
        padded."""
        return -(-self.bits * count // 8)

    def stored_entries(self, count: int) -> int:
        """Return the entries of ``field`` for ``count`` elements."""
        return -(-count // self.packed) * self.entries


def _int32(
    code: int, name: str, bits: int, since_ir: int, limits: tuple[int, int], packed: int = 1
) -> ElementType:
    return ElementType(
        code, name, name.upper(), bits, since_ir, "int32_data", packed=packed, low=limits[0], high=limits[1]
    )


# Floats of 16 bits and less are stored as their bit patterns, packed types as bytes.
ALL: tuple[ElementType, ...] = (
    ElementType(1, "float32", "FLOAT", 32, 1, "float_data"),
    _int32(2, "uint8", 8, 1, _UINT8),
    _int32(3, "int8", 8, 1, (-(2**7), 2**7 - 1)),
    _int32(4, "uint16", 16, 1, _UINT16),
    _int32(5, "int16", 16, 1, (-(2**15), 2**15 - 1)),
    _int32(6, "int32", 32, 1, (-(2**31), 2**31 - 1)),
    ElementType(7, "int64", "INT64", 64, 1, "int64_data", low=-(2**63), high=2**63 - 1),
    ElementType(8, "string", "STRING", 0, 1, "string_data"),
    _int32(9, "bool", 8, 1, (0, 1)),
    _int32(10, "float16", 16, 1, _UINT16),
    ElementType(11, "float64", "DOUBLE", 64, 1, "double_data"),
    ElementType(12, "uint32", "UINT32", 32, 1, "uint64_data", low=0, high=2**32 - 1),
    ElementType(13, "uint64", "UINT64", 64, 1, "uint64_data", low=0, high=2**64 - 1),
    ElementType(14, "complex64", "COMPLEX64", 64, 1, "float_data", entries=2),
    ElementType(15, "complex128", "COMPLEX128", 128, 1, "double_data", entries=2),
    _int32(16, "bfloat16", 16, 4, _UINT16),
    _int32(17, "float8e4m3fn", 8, 9, _UINT8),
    _int32(18, "float8e4m3fnuz", 8, 9, _UINT8),
    _int32(19, "float8e5m2", 8, 9, _UINT8),
    _int32(20, "float8e5m2fnuz", 8, 9, _UINT8),
    _int32(21, "uint4", 4, 10, _UINT8, packed=2),
    _int32(22, "int4", 4, 10, _UINT8, packed=2),
    _int32(23, "float4e2m1", 4, 11, _UINT8, packed=2),
    _int32(24, "float8e8m0", 8, 12, _UINT8),
    _int32(25, "uint2", 2, 13, _UINT8, packed=4),
    _int32(26, "int2", 2, 13, _UINT8, packed=4),
    _int32(27, "float6e2m3", 6, 14, (0, 2**6 - 1)),
    _int32(28, "float6e3m2", 6, 14, (0, 2**6 - 1)),
)
BY_CODE: dict[int, ElementType] = {element.code: element for element in ALL}


def describe(code: int) -> str:
    """Describe an element type for a message: its name, or what is wrong with its number."""
    element = BY_CODE.get(code)
    if element is not None:
        return element.name
    return "UNDEFINED (0)" if code == 0 else f"unknown ({code})"
