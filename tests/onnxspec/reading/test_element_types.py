"""The table of element types against onnx: its enum, its helper functions, and the tensors those make."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hwflow.onnxspec.reading import element_types
from hwflow.onnxspec.reading.element_types import ElementType

# The IR version that the Version enum of onnx.proto gives each type that came after the first.
LATER = {
    "BFLOAT16": 4, "FLOAT8E4M3FN": 9, "FLOAT8E4M3FNUZ": 9, "FLOAT8E5M2": 9, "FLOAT8E5M2FNUZ": 9, "UINT4": 10,
    "INT4": 10, "FLOAT4E2M1": 11, "FLOAT8E8M0": 12, "UINT2": 13, "INT2": 13, "FLOAT6E2M3": 14, "FLOAT6E3M2": 14,
}  # fmt: skip
every = pytest.mark.parametrize("element", element_types.ALL, ids=lambda element: element.name)


def values(element: ElementType, count: int) -> list[object]:
    """Ones, which every type has."""
    return ["one"] * count if element.name == "string" else [1] * count


def test_every_code_of_onnx_is_in_the_table() -> None:
    codes = {name: code for name, code in TensorProto.DataType.items() if name != "UNDEFINED"}
    assert {element.onnx_name: element.code for element in element_types.ALL} == codes
    assert [element.code for element in element_types.ALL] == list(range(1, 29))


def test_names_and_versions() -> None:
    assert len(element_types.BY_CODE) == len({element.name for element in element_types.ALL}) == 28
    assert {e.onnx_name: e.since_ir for e in element_types.ALL if e.since_ir > 1} == LATER
    assert max(LATER.values()) == onnx.IR_VERSION


@every
def test_as_onnx_has_it(element: ElementType) -> None:
    assert helper.tensor_dtype_to_field(element.code) == element.field
    dtype = helper.tensor_dtype_to_np_dtype(element.code)
    if element.name == "string":
        assert element.bits == 0
    elif element.bits >= 8:
        assert dtype.itemsize * 8 == element.bits
    else:  # ml_dtypes holds each of them in a byte; the name says the width
        assert f"{element.bits}" in dtype.name.rstrip("fn")
    assert element.name == dtype.name.replace("_", "").removesuffix("fn").removesuffix("fnu") or element.name in (
        "string", "float8e4m3fn",
    )  # fmt: skip


@every
def test_storage_sizes(element: ElementType) -> None:
    for count in range(10):
        typed = helper.make_tensor("t", element.code, [count], values(element, count))
        stored = getattr(typed, element.field)
        assert len(stored) == element.stored_entries(count)
        if element.name != "string":
            raw = numpy_helper.from_array(numpy_helper.to_array(typed)).raw_data
            assert len(raw) == element.raw_bytes(count)


@every
def test_range_of_stored_integers(element: ElementType) -> None:
    """One entry has as many values as its elements' bits allow, and onnx reads both ends as what raw data holds."""
    if element.low is None or element.high is None:
        assert element.field in ("float_data", "double_data", "string_data")
        return
    bits = element.bits * element.packed
    values = 2 if element.name == "bool" else 2**bits
    assert (element.high - element.low + 1, element.low) in {(values, 0), (values, -values // 2)}
    for end in (element.low, element.high):
        typed = TensorProto(data_type=element.code, dims=[element.packed])
        getattr(typed, element.field).append(end)
        data = (end % 2**bits).to_bytes(element.raw_bytes(element.packed), "little")
        raw = TensorProto(data_type=element.code, dims=[element.packed], raw_data=data)
        assert numpy_helper.to_array(typed).tobytes() == numpy_helper.to_array(raw).tobytes()


def test_descriptions() -> None:
    assert [element_types.describe(code) for code in (1, 28, 0, 29, -1)] == [
        "float32", "float6e3m2", "UNDEFINED (0)", "unknown (29)", "unknown (-1)",
    ]  # fmt: skip
