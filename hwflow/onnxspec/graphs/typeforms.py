"""Types in plain Python: repeatedly reading the fields of a protobuf type costs more than the rules themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import onnx

from hwflow.display import show
from hwflow.onnxspec.reading import element_types


class LevelKind(StrEnum):
    """The kind of one level of a type. The values are the words of messages."""

    TENSOR = "tensor"
    SPARSE = "sparse tensor"
    SEQUENCE = "sequence"
    MAP = "map"
    OPTIONAL = "optional"
    OPAQUE = "opaque"


TENSORS = (LevelKind.TENSOR, LevelKind.SPARSE)

# A size, a variable ("" if set but empty), or None: unknown.
Dim: TypeAlias = int | str | None

_SHOWN = 8  # dims that a message shows


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a type. ``code``: of a tensor's elements or a map's keys; ``dims`` only of tensors, None: none."""

    kind: LevelKind
    code: int = 0
    dims: tuple[Dim, ...] | None = None


# A type from the outside in: a sequence of tensors has two levels, an empty type has none. Flat, so that nothing
# recurses however deeply a file nests.
TypeForm: TypeAlias = tuple[Level, ...]


def _dims(kind: onnx.TypeProto.Tensor | onnx.TypeProto.SparseTensor) -> tuple[Dim, ...] | None:
    if not kind.HasField("shape"):
        return None
    dims: list[Dim] = []
    for dim in kind.shape.dim:
        which = dim.WhichOneof("value")
        dims.append(None if which is None else dim.dim_value if which == "dim_value" else dim.dim_param)
    return tuple(dims)


def read_type(proto: onnx.TypeProto) -> TypeForm:
    """Return the levels of a type, down to the first without an inner type."""
    levels: list[Level] = []
    inside: onnx.TypeProto | None = proto
    while inside is not None:
        which = inside.WhichOneof("value")
        holder: onnx.TypeProto.Sequence | onnx.TypeProto.Optional | None = None
        kind, inside = inside, None
        if which == "tensor_type":
            levels.append(Level(LevelKind.TENSOR, kind.tensor_type.elem_type, _dims(kind.tensor_type)))
        elif which == "sparse_tensor_type":
            sparse = kind.sparse_tensor_type
            levels.append(Level(LevelKind.SPARSE, sparse.elem_type, _dims(sparse)))
        elif which == "map_type":
            levels.append(Level(LevelKind.MAP, kind.map_type.key_type))
            inside = kind.map_type.value_type if kind.map_type.HasField("value_type") else None
        elif which == "sequence_type":
            levels.append(Level(LevelKind.SEQUENCE))
            holder = kind.sequence_type
        elif which == "optional_type":
            levels.append(Level(LevelKind.OPTIONAL))
            holder = kind.optional_type
        elif which is not None:
            levels.append(Level(LevelKind.OPAQUE))
        if holder is not None and holder.HasField("elem_type"):
            inside = holder.elem_type
    return tuple(levels)


class TypeReader:
    """Reads types, repeated ones only once."""

    def __init__(self) -> None:
        self._forms: dict[bytes, TypeForm] = {}

    def read(self, proto: onnx.TypeProto) -> TypeForm:
        """Return the same object for equal types, see :func:`read_type`."""
        try:
            key = proto.SerializeToString()
        except Exception:  # nested more deeply than protobuf can write: created in memory, not read from a file
            return read_type(proto)
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = read_type(proto)
        return form


def write_type(form: TypeForm) -> onnx.TypeProto:
    """Return the type that :func:`read_type` reads as ``form``."""
    proto = onnx.TypeProto()
    inside = proto
    for level in form:
        if level.kind in TENSORS:
            tensor = inside.tensor_type if level.kind is LevelKind.TENSOR else inside.sparse_tensor_type
            tensor.elem_type = level.code
            if level.dims is not None:
                tensor.shape.SetInParent()
                for dim in level.dims:
                    added = tensor.shape.dim.add()
                    if isinstance(dim, str):
                        added.dim_param = dim
                    elif dim is not None:
                        added.dim_value = dim
            break
        if level.kind is LevelKind.MAP:
            inside.map_type.key_type = level.code
            inside = inside.map_type.value_type
        elif level.kind is LevelKind.OPAQUE:
            inside.opaque_type.SetInParent()
            break
        else:
            holder = inside.sequence_type if level.kind is LevelKind.SEQUENCE else inside.optional_type
            inside = holder.elem_type
        inside.SetInParent()
    return proto


def dims_text(dims: Iterable[Dim]) -> str:
    """Format a shape for a message, [N, 3, ?]; "?" is an unknown size."""
    every = tuple(dims)
    shown = [
        "?" if dim is None else str(dim) if isinstance(dim, int) else show(dim)[1:-1] or "''" for dim in every[:_SHOWN]
    ]
    if len(every) > _SHOWN:
        shown.append(f"... ({len(every)} dimensions)")
    return f"[{', '.join(shown)}]"


def type_text(form: TypeForm) -> str:
    """Format a type without its shape for a message: "float32", "sequence of float32"."""
    if not form:
        return "no type"
    words = []
    for level in form[:_SHOWN]:
        if level.kind is LevelKind.TENSOR:
            words.append(element_types.describe(level.code))
        elif level.kind is LevelKind.SPARSE:
            words.append(f"sparse {element_types.describe(level.code)}")
        elif level.kind is LevelKind.MAP:
            words.append(f"map from {element_types.describe(level.code)}")
        else:
            words.append(level.kind)
    if len(form) > _SHOWN:
        words.append(f"... ({len(form)} levels)")
    text = words[0]
    for outer, word in zip(form, words[1:], strict=False):
        text += f" to {word}" if outer.kind is LevelKind.MAP else f" of {word}"
    return text
