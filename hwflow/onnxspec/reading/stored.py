"""Stored tensors that need a closer look, read once.

Most tensors of most models are raw data of the right length, which is checked at once. All others (typed storage,
strings, Booleans, external data, parts of sparse tensors, anything odd) become plain Python records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray

from hwflow.onnxspec.graphs.scopes import Position
from hwflow.onnxspec.graphs.sites import TensorRole, TensorSite
from hwflow.onnxspec.reading import element_types
from hwflow.onnxspec.reading.element_types import ElementType
from hwflow.onnxspec.reading.external_files import (
    ExternalFiles,
    Need,
    Problem,
    Reference,
    fetch,
    read_reference,
    verify,
)

TYPED_FIELDS = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
FIELDS = (*TYPED_FIELDS, "raw_data")

# No file holds so many elements; products saturate here, however many dims there are.
MOST = 2**64
_SMALL = 1 << 12  # bytes
_SHOWN = 8  # dims that a message shows

_BOOL = onnx.TensorProto.BOOL
_PARTS = {TensorRole.SPARSE_VALUES: "values of ", TensorRole.SPARSE_INDICES: "indices of "}


def element_count(dims: Sequence[int]) -> int | None:
    """Return the product of ``dims``, at most :data:`MOST`; None if one of them is negative."""
    if any(dim < 0 for dim in dims):
        return None
    if 0 in dims:
        return 0
    count = 1
    for dim in dims:
        count *= dim
        if count >= MOST:
            return MOST
    return count


def dims_text(dims: Sequence[int]) -> str:
    """Format ``dims`` for a message."""
    if len(dims) <= _SHOWN:
        return str(list(dims))
    return f"[{', '.join(map(str, dims[:_SHOWN]))}, ... ({len(dims)} dimensions)]"


@dataclass(slots=True)
class StoredTensor:
    """One tensor that needs a closer look.

    ``element`` is None for an undefined or unknown type; ``count`` is that of :func:`element_count`. ``fields``: the
    nonempty data fields, with their number of entries (raw_data: bytes). ``reference`` is set if the data is external.
    """

    site: TensorSite
    tensor: onnx.TensorProto
    code: int
    element: ElementType | None
    dims: tuple[int, ...]
    count: int | None
    fields: dict[str, int]
    reference: Reference | None

    @property
    def position(self) -> Position:
        """Orders findings."""
        return self.site.position

    @property
    def where(self) -> str:
        """The ``where`` of findings about the tensor, or about its part of a sparse one."""
        return f"{_PARTS.get(self.site.role, '')}{self.site.where}"

    @property
    def shape(self) -> str:
        """The dims for a message."""
        return f"dims {dims_text(self.dims)}"

    @property
    def elements(self) -> str:
        """Number and type of the elements for a message."""
        name = element_types.describe(self.code)
        if self.count is None:
            return f"elements of {name}"
        most = f"{MOST} or more" if self.count == MOST else str(self.count)
        return f"{most} element{'s' if self.count != 1 else ''} of {name} ({self.shape})"

    @property
    def raw_size(self) -> int | None:
        """Bytes of the elements in raw or external data; None where type or dims are unknown."""
        if self.element is None or self.count is None or self.element.bits == 0:
            return None
        return self.element.raw_bytes(self.count)

    @property
    def need(self) -> Need | None:
        """:attr:`raw_size` with its description."""
        size = self.raw_size
        return None if size is None else Need(size, self.elements)

    def external_problems(self, files: ExternalFiles) -> list[Problem]:
        """Return the faults of the external data."""
        return [] if self.reference is None else verify(self.reference, self.need, files)

    def raw(self, files: ExternalFiles) -> bytes | None:
        """Return the tensor's data as raw bytes of the right length, from the model or its file; None if
        unavailable."""
        size = self.raw_size
        if size is None:
            return None
        if self.reference is None:
            return self.tensor.raw_data if self.fields.get("raw_data") == size else None
        return fetch(self.reference, size, files)

    def int64s(self, files: ExternalFiles) -> NDArray[np.int64] | None:
        """Return the elements of an int64 tensor, flat; None if unavailable."""
        if self.fields.get("int64_data", -1) == self.count:
            return np.array(self.tensor.int64_data, dtype=np.int64)
        if self.count == 0:
            return np.zeros(0, dtype=np.int64)
        data = self.raw(files)
        return None if data is None else np.frombuffer(data, dtype="<i8")


def _read(site: TensorSite) -> StoredTensor:
    tensor = site.tensor
    dims = tuple(tensor.dims)
    code = tensor.data_type
    external = tensor.data_location == onnx.TensorProto.EXTERNAL
    fields = {name: size for name in FIELDS if (size := len(getattr(tensor, name)))}
    reference = read_reference(tensor) if external else None
    element = element_types.BY_CODE.get(code)
    return StoredTensor(site, tensor, code, element, dims, element_count(dims), fields, reference)


def _varint_bytes(number: int) -> int:
    """Return the bytes of a number in protobuf's encoding, 7 bits each."""
    return max(1, -(-number.bit_length() // 7))


def _field_bytes(length: int) -> int:
    """Return the bytes of a field of ``length`` bytes with a number below 16, including tag and length."""
    return 1 + _varint_bytes(length) + length


@dataclass(slots=True)
class _Plain:
    """The properties of a tensor of one type and shape that needs no closer look.

    ``raw``: bytes of raw data, -1 if these need a closer look (Booleans, packed types with padding); ``encoded``: bytes
    of the whole encoding then, without a name. ``field``, ``entries``: typed storage whose entries are all in range; ""
    if there is none.
    """

    raw: int = -1
    encoded: int = -1
    field: str = ""
    entries: int = -1


def _plain(key: tuple[int, ...]) -> _Plain:
    """Return the properties for element type ``key[0]`` and dims ``key[1:]``."""
    code, *dims = key
    element = element_types.BY_CODE.get(code)
    count = element_count(dims)
    plain = _Plain()
    if element is None or count is None:
        return plain
    if element.bits and code != _BOOL and element.bits * count % 8 == 0:
        plain.raw = element.raw_bytes(count)
        dim_bytes = sum(1 + _varint_bytes(dim) for dim in dims)
        plain.encoded = 1 + _varint_bytes(code) + dim_bytes + _field_bytes(plain.raw)
    if element.field in ("float_data", "double_data", "int64_data"):
        plain.field, plain.entries = element.field, element.stored_entries(count)
    return plain


def _is_plain(tensor: onnx.TensorProto, plain: _Plain, size: int) -> bool:
    """Tell whether a tensor with ``size`` bytes of raw data, no part of a sparse one, needs no closer look."""
    if tensor.data_location:
        return False
    if size == plain.raw:
        return not any(getattr(tensor, field) for field in TYPED_FIELDS)
    if size or not plain.field or len(getattr(tensor, plain.field)) != plain.entries:
        return False
    return not any(getattr(tensor, field) for field in TYPED_FIELDS if field != plain.field)


def stored_tensors(sites: Iterable[TensorSite]) -> Iterator[StoredTensor]:
    """Yield the tensors that need a closer look, without absent parts of sparse tensors."""
    known: dict[tuple[int, ...], _Plain] = {}
    for site in sites:
        tensor = site.tensor
        if site.sparse is None:
            key = (tensor.data_type, *tensor.dims[:])
            plain = known.get(key)
            if plain is None:
                plain = known[key] = _plain(key)
            size = len(tensor.raw_data)
            # An encoding no longer than dims, type, raw data and name (with a 2-byte header) has no other field: for
            # small tensors this is faster than checking that every other field is empty. (Long or non-ASCII names take
            # more bytes, and a closer look.)
            small = size == plain.raw and size <= _SMALL
            if small and (name := tensor.name) and tensor.ByteSize() == plain.encoded + 2 + len(name):
                continue
            if _is_plain(tensor, plain, size):
                continue
        elif not site.sparse.HasField("values" if site.role is TensorRole.SPARSE_VALUES else "indices"):
            continue
        yield _read(site)
