"""Clauses about tensor values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hwflow.onnxspec import validate
from hwflow.onnxspec.reading import element_types
from hwflow.onnxspec.reading.element_types import ElementType
from tests.onnxspec.build import model, node, value
from tests.onnxspec.clauses.twins import Twin, check

AGAIN = "\n  remedy: export the model again"
TYPES = "\n  remedy: choose an element type that ONNX defines"
TEXT = "\n  remedy: store the strings as UTF-8, without byte order mark and final NUL"
SPARSE = "\n  remedy: export the model again, or store the tensor as a dense one"
PADDING = "\n  remedy: nothing reads them; export the model again"


def tensor(code: int, dims: list[int], **data: Any) -> TensorProto:
    return TensorProto(name="w", data_type=code, dims=dims, **data)


def having(weights: TensorProto, **more: Any) -> onnx.ModelProto:
    """A model with an initializer w that nothing reads."""
    return model([node("Relu", ["x"], ["y"])], constants={"w": weights}, ir_version=13, opsets={"": 23}, **more)


def sparse(dims: list[int], values: TensorProto | None, indices: TensorProto | None) -> onnx.ModelProto:
    """A model with a sparse initializer w that nothing reads."""
    whole = onnx.SparseTensorProto(dims=dims)
    if values is not None:
        whole.values.CopyFrom(values)
    if indices is not None:
        whole.indices.CopyFrom(indices)
    return model([node("Relu", ["x"], ["y"])], sparse_initializer=[whole])


def floats(count: int) -> TensorProto:
    return numpy_helper.from_array(np.ones(count, np.float32), "w")


def places(array: Any) -> TensorProto:
    return numpy_helper.from_array(np.array(array, np.int64), "")


def constant(attribute: TensorProto) -> onnx.NodeProto:
    return node("Constant", [], ["c"], value=attribute)


def branches(inner: TensorProto) -> onnx.ModelProto:
    """A model whose initializer w is in a branch of an If."""

    def branch(name: str) -> onnx.GraphProto:
        nodes = [node("Identity", ["w"], [name])]
        return helper.make_graph(nodes, name, [], [value(name, [4])], [inner])

    choice = node("If", ["which"], ["z"], name="choice", then_branch=branch("a"), else_branch=branch("b"))
    return model([choice, node("Add", ["x", "z"], ["y"])], constants={"which": np.array(True)})


def function(inner: TensorProto) -> onnx.ModelProto:
    """A model whose tensor is the default of a function's attribute."""
    body = helper.make_function(
        "org.example", "f", ["a"], ["b"], [node("Relu", ["a"], ["b"])], [helper.make_opsetid("", 21)],
        attribute_protos=[helper.make_attribute("w", inner)],
    )  # fmt: skip
    call = node("f", ["x"], ["y"], domain="org.example")
    return model([call], functions=[body], opsets={"": 21, "org.example": 1})


def training(inner: TensorProto) -> onnx.ModelProto:
    """A model whose initializer w is in an initialization graph."""
    start = helper.make_graph([node("Identity", ["w"], ["s"])], "start", [], [value("s", [4])], [inner])
    proto = model([node("Add", ["x", "c"], ["y"])], constants={"c": np.ones(4, np.float32)})
    step = proto.training_info.add(initialization=start)
    step.initialization_binding.add(key="c", value="s")
    return proto


F, I8, U8, I32, U32, I64, BOOL, STRING = (
    TensorProto.FLOAT, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32, TensorProto.UINT32, TensorProto.INT64,
    TensorProto.BOOL, TensorProto.STRING,
)  # fmt: skip
RIGHT = having(tensor(F, [2], float_data=[1, 2]))
BOM = b"\xef\xbb\xbf"

TWINS = [
    # TYP-03
    *(
        Twin(
            "TYP-03",
            name=f"tensor-{code}",
            bad=having(tensor(code, [2], raw_data=bytes(8))),
            good=having(tensor(28, [2], raw_data=bytes(2)), domain="org.example"),
            findings=[
                f"error: initializer 'w': the tensor's data_type must be an element type of ONNX (1 to 28), not {what} "
                f"[TYP-03]{TYPES}"
            ],
        )
        for code, what in ((0, "UNDEFINED (0)"), (29, "unknown (29)"), (-1, "unknown (-1)"))
    ),
    Twin(
        "TYP-03",
        name="attribute",
        bad=model([constant(tensor(99, [1])), node("Relu", ["x"], ["y"])]),
        good=model([constant(tensor(F, [1], float_data=[1])), node("Relu", ["x"], ["y"])]),
        findings=[
            "error: attribute 'value' of node 'Constant_c' (Constant): the tensor's data_type must be an element type "
            f"of ONNX (1 to 28), not unknown (99) [TYP-03]{TYPES}"
        ],
    ),
    Twin(
        "TYP-03",
        name="types",
        bad=model(
            [node("Relu", ["x"], ["y"]), node("Any", ["x"], ["z"], domain="org.example")],
            opsets={"": 21, "org.example": 1},
            outputs=[value("y", [1, 4]), value("z", [1], 99)],
        ),
        good=model(
            [node("Relu", ["x"], ["y"]), node("Any", ["x"], ["z"], domain="org.example")],
            opsets={"": 21, "org.example": 1},
            outputs=[value("y", [1, 4]), value("z", [1], F)],
        ),
        findings=[
            "error: output 'z': the type's elem_type must be an element type of ONNX (1 to 28), not unknown (99) "
            f"[TYP-03]{TYPES}"
        ],
    ),
    Twin(
        "TYP-03",
        name="nested-type",
        bad=model(
            [node("Relu", ["x"], ["y"])],
            inputs=[
                value("x", [1, 4]),
                helper.make_value_info("s", helper.make_sequence_type_proto(helper.make_tensor_type_proto(0, [1]))),
            ],
        ),
        good=model(
            [node("Relu", ["x"], ["y"])],
            inputs=[
                value("x", [1, 4]),
                helper.make_value_info("s", helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [1]))),
            ],
        ),
        findings=[
            "error: input 's': the type's elem_type must be an element type of ONNX (1 to 28), not UNDEFINED (0) "
            f"[TYP-03]{TYPES}"
        ],
    ),
    # PRO-09
    Twin(
        "PRO-09",
        name="two",
        bad=having(tensor(F, [2], float_data=[1, 2], raw_data=bytes(8))),
        good=RIGHT,
        findings=[
            f"error: initializer 'w': the tensor must use one data field, not float_data and raw_data [PRO-09]{AGAIN}"
        ],
    ),
    Twin(
        "PRO-09",
        name="wrong",
        bad=having(tensor(I64, [2], int32_data=[1, 2])),
        good=having(tensor(I64, [2], int64_data=[1, 2])),
        findings=[
            "error: initializer 'w': elements of int64 must be stored in int64_data or raw_data, not in int32_data "
            f"[PRO-09]{AGAIN}"
        ],
    ),
    Twin(
        "PRO-09",
        name="string",
        bad=having(tensor(STRING, [1], int32_data=[65])),
        good=having(tensor(STRING, [1], string_data=[b"A"])),
        findings=[
            "error: initializer 'w': elements of string must be stored in string_data, not in int32_data "
            f"[PRO-09]{AGAIN}"
        ],
    ),
    # PRO-10
    Twin(
        "PRO-10",
        name="raw-short",
        bad=having(tensor(F, [2, 3], raw_data=bytes(20))),
        good=having(tensor(F, [2, 3], raw_data=bytes(24))),
        findings=[
            "error: initializer 'w': raw_data must have 24 bytes for 6 elements of float32 (dims [2, 3]), not 20 "
            f"[PRO-10]{AGAIN}"
        ],
    ),
    Twin(
        "PRO-10",
        name="raw-long",
        bad=having(tensor(F, [1], raw_data=bytes(8))),
        good=having(tensor(F, [1], raw_data=bytes(4))),
        findings=[
            "error: initializer 'w': raw_data must have 4 bytes for 1 element of float32 (dims [1]), not 8 "
            f"[PRO-10]{AGAIN}"
        ],
    ),
    Twin(
        "PRO-10",
        name="typed",
        bad=having(tensor(F, [2], float_data=[1, 2, 3])),
        good=RIGHT,
        findings=[
            "error: initializer 'w': float_data must have 2 entries for 2 elements of float32 (dims [2]), not 3 "
            f"[PRO-10]{AGAIN}"
        ],
    ),
    Twin(
        "PRO-10",
        name="packed",  # onnx.checker is content with one entry for 8 elements
        bad=having(tensor(TensorProto.INT4, [5], int32_data=[0x21])),
        good=having(tensor(TensorProto.INT4, [5], int32_data=[0x21, 0x43, 0x05])),
        findings=[
            "error: initializer 'w': int32_data must have 3 entries for 5 elements of int4 (dims [5]), not 1 "
            f"[PRO-10]{AGAIN}"
        ],
    ),
    Twin(
        "PRO-10",
        name="packed-raw",
        bad=having(tensor(TensorProto.UINT2, [5], raw_data=bytes(5))),
        good=having(tensor(TensorProto.UINT2, [5], raw_data=bytes(2))),
        findings=[
            "error: initializer 'w': raw_data must have 2 bytes for 5 elements of uint2 (dims [5]), not 5 "
            f"[PRO-10]{AGAIN}"
        ],
    ),
    Twin(
        "PRO-10",
        name="complex",
        bad=having(tensor(TensorProto.COMPLEX64, [2], float_data=[1, 2])),
        good=having(tensor(TensorProto.COMPLEX64, [2], float_data=[1, 2, 3, 4])),
        findings=[
            "error: initializer 'w': float_data must have 4 entries for 2 elements of complex64 (dims [2]), not 2 "
            f"[PRO-10]{AGAIN}"
        ],
    ),
    Twin(
        "PRO-10",
        name="no-data",
        bad=having(tensor(F, [3])),
        good=having(tensor(F, [3, 0])),
        findings=[
            "error: initializer 'w': the tensor must hold 3 elements of float32 (dims [3]), but it holds no data "
            f"[PRO-10]{AGAIN}"
        ],
    ),
    Twin(
        "PRO-10",
        name="scalar",
        bad=having(tensor(F, [])),
        good=having(tensor(F, [], raw_data=bytes(4))),
        findings=[
            "error: initializer 'w': the tensor must hold 1 element of float32 (dims []), but it holds no data "
            f"[PRO-10]{AGAIN}"
        ],
    ),
    Twin(
        "PRO-10",
        name="negative",  # the product fits
        bad=having(tensor(F, [-1, -2], float_data=[1, 2])),
        good=having(tensor(F, [1, 2], float_data=[1, 2])),
        findings=[f"error: initializer 'w': dims must not be negative, but they are [-1, -2] [PRO-10]{AGAIN}"],
    ),
    Twin(
        "PRO-10",
        name="overflow",  # the product is 0 modulo 2**64
        bad=having(tensor(F, [2**60, 2**60])),
        good=having(tensor(F, [2**60, 0])),
        findings=[
            "error: initializer 'w': the tensor must hold 18446744073709551616 or more elements of float32 (dims "
            f"[1152921504606846976, 1152921504606846976]), but it holds no data [PRO-10]{AGAIN}"
        ],
    ),
    Twin(
        "PRO-10",
        name="subgraph",
        bad=branches(tensor(F, [4], float_data=[1, 2, 3])),
        good=branches(tensor(F, [4], float_data=[1, 2, 3, 4])),
        findings=[
            f"error: initializer 'w' in '{branch}' of node 'choice' (If): float_data must have 4 entries for 4 "
            f"elements of float32 (dims [4]), not 3 [PRO-10]{AGAIN}"
            for branch in ("else_branch", "then_branch")
        ],
    ),
    Twin(
        "PRO-10",
        name="function",
        bad=function(tensor(F, [4], float_data=[1, 2, 3])),
        good=function(tensor(F, [4], float_data=[1, 2, 3, 4])),
        findings=[
            "error: attribute 'w' of function 'org.example.f': float_data must have 4 entries for 4 elements of "
            f"float32 (dims [4]), not 3 [PRO-10]{AGAIN}"
        ],
    ),
    Twin(
        "PRO-10",
        name="training",
        bad=training(tensor(F, [4], float_data=[1, 2, 3])),
        good=training(tensor(F, [4], float_data=[1, 2, 3, 4])),
        findings=[
            "error: initializer 'w' in initialization graph of training_info[0]: float_data must have 4 entries for 4 "
            f"elements of float32 (dims [4]), not 3 [PRO-10]{AGAIN}"
        ],
    ),
    Twin(
        "PRO-10",
        name="sparse",
        bad=sparse([4], floats(2), tensor(I64, [2], int64_data=[0])),
        good=sparse([4], floats(2), tensor(I64, [2], int64_data=[0, 1])),
        findings=[
            "error: indices of sparse initializer 'w': int64_data must have 2 entries for 2 elements of int64 "
            f"(dims [2]), not 1 [PRO-10]{AGAIN}"
        ],
    ),
    # PRO-11
    Twin(
        "PRO-11",
        bad=having(tensor(STRING, [2], raw_data=b"ab")),
        good=having(tensor(STRING, [2], string_data=[b"a", b"b"])),
        findings=[
            "error: initializer 'w': strings must be stored in string_data, but this tensor has raw_data [PRO-11]\n"
            "  remedy: store the strings in string_data"
        ],
    ),
    # PRO-12
    *(
        Twin(
            "PRO-12",
            name=element_types.BY_CODE[code].name,
            bad=having(tensor(code, [2], **{element_types.BY_CODE[code].field: bad})),
            good=having(tensor(code, [2], **{element_types.BY_CODE[code].field: good})),
            findings=[
                f"error: initializer 'w': {element_types.BY_CODE[code].field} of {element_types.BY_CODE[code].name} "
                f"must hold integers from {limits}, but {found} [PRO-12]{AGAIN}"
            ],
        )
        for code, bad, good, limits, found in (
            (I8, [-128, 300], [-128, 127], "-128 to 127", "entry 1 is 300"),
            (U8, [-1, 256], [0, 255], "0 to 255", "entry 0 is -1 (1 more are wrong)"),
            (BOOL, [1, 5], [1, 0], "0 to 1", "entry 1 is 5"),
            (U32, [0, 2**40], [0, 2**32 - 1], "0 to 4294967295", "entry 1 is 1099511627776"),
            (TensorProto.FLOAT16, [0, 65536], [0, 65535], "0 to 65535", "entry 1 is 65536"),
            (TensorProto.FLOAT6E2M3, [0, 64], [0, 63], "0 to 63", "entry 1 is 64"),
            (TensorProto.INT4, [256], [255], "0 to 255", "entry 0 is 256"),
        )
    ),
    Twin(
        "PRO-12",
        name="padding",
        bad=having(tensor(TensorProto.INT4, [3], raw_data=b"\x21\x43")),
        good=having(tensor(TensorProto.INT4, [3], raw_data=b"\x21\x03")),
        findings=[
            "warning: initializer 'w': bits behind the last element of int4 must be 0, but the last byte is 0x43 "
            f"[PRO-12]{PADDING}"
        ],
    ),
    Twin(
        "PRO-12",
        name="padding-typed",
        bad=having(tensor(TensorProto.UINT2, [1], int32_data=[0x05])),
        good=having(tensor(TensorProto.UINT2, [1], int32_data=[0x01])),
        findings=[
            "warning: initializer 'w': bits behind the last element of uint2 must be 0, but the last byte is 0x05 "
            f"[PRO-12]{PADDING}"
        ],
    ),
    # TYP-08
    Twin(
        "TYP-08",
        bad=having(tensor(STRING, [3], string_data=[b"a", b"\xff", b"\xc3"])),
        good=having(tensor(STRING, [3], string_data=[b"a", b"\xc3\xa9\n", b""])),
        findings=[
            "error: initializer 'w': strings must be UTF-8, but element 1 breaks that (and 1 more): b'\\xff' "
            f"[TYP-08]{TEXT}"
        ],
    ),
    Twin(
        "TYP-08",
        name="split",  # two halves of a character, which joined would be one
        bad=having(tensor(STRING, [2], string_data=[b"\xc3", b"\xa9"])),
        good=having(tensor(STRING, [2], string_data=[b"\xc3\xa9", b""])),
        findings=[
            "error: initializer 'w': strings must be UTF-8, but element 0 breaks that (and 1 more): b'\\xc3' "
            f"[TYP-08]{TEXT}"
        ],
    ),
    Twin(
        "TYP-08",
        name="odd",
        bad=having(tensor(STRING, [2], string_data=[BOM + b"a", b"b\0"])),
        good=having(tensor(STRING, [2], string_data=[b"a" + BOM + b"\n" + BOM, b"\0\nb"])),
        findings=[
            "warning: initializer 'w': strings must not begin with a byte order mark, but element 0 breaks that: "
            f"b'\\xef\\xbb\\xbfa' [TYP-08]{TEXT}",
            "warning: initializer 'w': strings must not end with a NUL character, but element 1 breaks that: "
            f"b'b\\x00' [TYP-08]{TEXT}",
        ],
    ),
    # TYP-09
    Twin(
        "TYP-09",
        bad=having(tensor(BOOL, [3], raw_data=b"\0\1\7")),
        good=having(tensor(BOOL, [3], raw_data=b"\0\1\1")),
        findings=[
            f"error: initializer 'w': elements of bool must be the bytes 0 or 1, but element 2 is 7 [TYP-09]{AGAIN}"
        ],
    ),
    Twin(
        "TYP-09",
        name="typed",
        bad=having(tensor(BOOL, [2], int32_data=[1, 5])),
        good=having(tensor(BOOL, [2], int32_data=[1, 1])),
        findings=[
            "error: initializer 'w': int32_data of bool must hold integers from 0 to 1, but entry 1 is 5 "
            f"[TYP-09]{AGAIN}"
        ],
    ),
    # PRO-15
    *(
        Twin(
            "PRO-15",
            name=name,
            bad=sparse(dims, values, indices),
            good=sparse(*right),
            findings=[f"error: sparse initializer 'w': {message} [PRO-15]{SPARSE}" for message in messages],
        )
        for name, dims, values, indices, right, messages in (
            (
                "unsorted", [8], floats(3), places([0, 5, 2]), ([8], floats(3), places([0, 2, 5])),
                ["indices must be in ascending order, but 2 comes after 5"],
            ),
            (
                "repeated", [8], floats(3), places([0, 2, 2]), ([8], floats(3), places([0, 2, 3])),
                ["indices must be distinct, but indices 1 and 2 are both 2"],
            ),
            (
                "too-large", [2, 3], floats(2), places([0, 6]), ([2, 3], floats(2), places([0, 5])),
                ["indices must be from 0 to 5, but index 1 is 6"],
            ),
            (
                "negative", [8], floats(2), places([-1, 6]), ([8], floats(2), places([0, 6])),
                ["indices must be from 0 to 7, but index 0 is -1"],
            ),
            (
                "rows-unsorted", [3, 3], floats(3), places([[0, 2], [1, 2], [1, 0]]),
                ([3, 3], floats(3), places([[0, 2], [1, 0], [1, 2]])),
                ["indices must be in ascending order, but [1, 0] comes after [1, 2]"],
            ),
            (
                "row-outside", [2, 3], floats(2), places([[0, 0], [0, 3]]),
                ([2, 3], floats(2), places([[0, 0], [0, 2]])),
                ["indices must be inside dims [2, 3], but index 1 is [0, 3]"],
            ),
            (
                "count", [2, 3], floats(2), places([1]), ([2, 3], floats(2), places([1, 2])),
                ["indices must have dims [2] or [2, 2] (2 values of 2 dimensions), not [1]"],
            ),
            (
                "indices-type", [8], floats(2), numpy_helper.from_array(np.array([0, 1], np.int32)),
                ([8], floats(2), places([0, 1])), ["indices must be int64, not int32"],
            ),
            (
                "values-matrix", [8], tensor(F, [2, 1], raw_data=bytes(8)), places([0, 1]),
                ([8], tensor(F, [2], raw_data=bytes(8)), places([0, 1])),
                ["values must have one dimension (their number), not dims [2, 1]"],
            ),
            (
                "no-indices", [8], floats(2), None, ([8], floats(2), places([1, 2])),
                ["a sparse tensor with 2 values must have indices, but it has none"],
            ),
            (
                "dims", [-8, -1], floats(1), places([1]), ([8, 1], floats(1), places([1])),
                ["dims of a sparse tensor must not be negative, but they are [-8, -1]"],
            ),
            (
                "empty", [0], floats(1), places([0]), ([1], floats(1), places([0])),
                ["indices must be none (the tensor has no elements), but index 0 is 0"],
            ),
        )
    ),
    Twin(
        "PRO-15",
        name="huge-dims",
        bad=sparse([2**60, 4], floats(2), places([[2**59, 4], [2**60, 0]])),
        good=sparse([2**60, 4], floats(2), places([[2**59, 3], [2**60 - 1, 0]])),
        findings=[
            "error: sparse initializer 'w': indices must be inside dims [1152921504606846976, 4], "
            f"but index 0 is [576460752303423488, 4] [PRO-15]{SPARSE}"
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)


@pytest.mark.parametrize("element", element_types.ALL, ids=lambda element: element.name)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 8, 9])
def test_what_onnx_itself_makes_is_right(element: ElementType, count: int) -> None:
    one = "one" if element.name == "string" else 1
    typed = helper.make_tensor("w", element.code, [count], [one] * count)
    raw = numpy_helper.from_array(numpy_helper.to_array(typed), "w")
    for proto in (typed, raw):
        weights = having(proto)
        weights.ir_version = 14  # the first that has all types
        weights.opset_import[0].version = 27
        assert [str(f) for f in validate(weights) if f.severity == "error"] == []


def test_a_sparse_tensor_without_values_needs_no_indices() -> None:
    proto = sparse([8], tensor(F, [0]), None)
    assert [f.rule for f in validate(proto) if f.rule in ("PRO-15", "TYP-03", "PRO-10")] == []


def test_below_ir_version_6_there_are_no_sparse_tensors() -> None:
    proto = sparse([8], floats(3), places([0, 5, 2]))
    proto.ir_version = 5
    assert "PRO-15" not in {f.rule for f in validate(proto)}


def test_many_dims_are_not_multiplied_out() -> None:
    (text,) = {str(f) for f in validate(having(tensor(F, [2**60] * 100_000))) if f.rule == "PRO-10"}
    assert "... (100000 dimensions)]), but it holds no data" in text
