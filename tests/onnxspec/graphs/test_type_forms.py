"""Types as plain Python, there and back, and as messages name them."""

from __future__ import annotations

import pytest
from onnx import TensorProto, TypeProto, helper

from hwflow.onnxspec.graphs.typeforms import Level, LevelKind, TypeForm, dims_text, read_type, type_text, write_type
from hwflow.onnxspec.shapes.node_inference import onnx_text

FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, [1, "N", None])
SPARSE = helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [2])
OPAQUE = TypeProto()
OPAQUE.opaque_type.SetInParent()

TYPES: dict[str, tuple[TypeProto, TypeForm, str, str]] = {
    # the type, its levels, in messages, in operator schemas
    "tensor": (FLOATS, (Level(LevelKind.TENSOR, 1, (1, "N", None)),), "float32", "tensor(float)"),
    "sparse": (SPARSE, (Level(LevelKind.SPARSE, 1, (2,)),), "sparse float32", "sparse_tensor(float)"),
    "opaque": (OPAQUE, (Level(LevelKind.OPAQUE),), "opaque", ""),
    "sequence": (
        helper.make_sequence_type_proto(SPARSE), (Level(LevelKind.SEQUENCE), Level(LevelKind.SPARSE, 1, (2,))),
        "sequence of sparse float32", "seq(sparse_tensor(float))",
    ),
    "map": (
        helper.make_map_type_proto(TensorProto.INT64, helper.make_optional_type_proto(FLOATS)),
        (Level(LevelKind.MAP, 7), Level(LevelKind.OPTIONAL), Level(LevelKind.TENSOR, 1, (1, "N", None))),
        "map from int64 to optional of float32", "map(int64,optional(tensor(float)))",
    ),
    "none": (TypeProto(), (), "no type", ""),
}


@pytest.mark.parametrize("name", TYPES)
def test_types(name: str) -> None:
    proto, form, text, schema = TYPES[name]
    assert read_type(proto) == form
    assert write_type(form) == proto
    assert (type_text(form), onnx_text(form)) == (text, schema)


def test_what_is_long_is_cut() -> None:
    deep = (Level(LevelKind.SEQUENCE),) * 99 + (Level(LevelKind.TENSOR, 1),)
    assert type_text(deep).endswith("... (100 levels)") and len(type_text(deep)) < 400
    assert dims_text(range(100)).endswith(", ... (100 dimensions)]")
    assert dims_text(["N", 3, None, ""]) == "[N, 3, ?, '']"
