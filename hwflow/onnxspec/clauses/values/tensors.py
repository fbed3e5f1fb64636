"""Clauses about tensor values: element types, number and range of stored elements."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import onnx
from numpy.typing import NDArray

from hwflow.errors import Severity
from hwflow.onnxspec.clauses.rules import Context, Hit, Rule
from hwflow.onnxspec.graphs.sites import TensorRole
from hwflow.onnxspec.graphs.typeforms import TENSORS
from hwflow.onnxspec.reading import element_types
from hwflow.onnxspec.reading.stored import StoredTensor, dims_text, element_count

_AGAIN = "export the model again"
_LAST = max(element_types.BY_CODE)


def _element_types(context: Context) -> Iterator[Hit]:
    for stored in context.stored:
        if stored.element is None:
            found = element_types.describe(stored.code)
            message = f"the tensor's data_type must be an element type of ONNX (1 to {_LAST}), not {found}"
            yield Hit(stored.position, stored.where, message)
    for site, form in zip(context.types, context.forms, strict=True):
        code = next((v.code for v in form if v.kind in TENSORS and v.code not in element_types.BY_CODE), None)
        if code is not None:
            found = element_types.describe(code)
            message = f"the type's elem_type must be an element type of ONNX (1 to {_LAST}), not {found}"
            yield Hit(site.position, site.where, message)


def _inside(context: Context) -> Iterator[StoredTensor]:
    """Yield tensors of known types with data in the model."""
    return (stored for stored in context.stored if stored.element is not None and stored.reference is None)


def _one_field(context: Context) -> Iterator[Hit]:
    for stored in _inside(context):
        assert stored.element is not None  # _inside
        field = stored.element.field
        if len(stored.fields) > 1:
            message = f"the tensor must use one data field, not {' and '.join(stored.fields)}"
        elif stored.fields and not stored.fields.keys() & {field, "raw_data"}:
            allowed = field if stored.element.bits == 0 else f"{field} or raw_data"
            found = next(iter(stored.fields))
            message = f"elements of {stored.element.name} must be stored in {allowed}, not in {found}"
        else:
            continue
        yield Hit(stored.position, stored.where, message)


def _number_of_elements(context: Context) -> Iterator[Hit]:
    for stored in context.stored:
        if stored.count is None:
            message = f"dims must not be negative, but they are {dims_text(stored.dims)}"
            yield Hit(stored.position, stored.where, message)
        elif stored.element is not None and stored.reference is None:
            for message in _miscounted(stored):
                yield Hit(stored.position, stored.where, message)


def _miscounted(stored: StoredTensor) -> Iterator[str]:
    """Yield faults of the number of entries, except for fields of other element types (PRO-09, PRO-11)."""
    assert stored.element is not None and stored.count is not None  # the caller's conditions
    if not stored.fields and stored.count:
        yield f"the tensor must hold {stored.elements}, but it holds no data"
    found = stored.fields.get("raw_data")
    size = stored.raw_size
    if found is not None and size is not None and found != size:
        yield f"raw_data must have {size} bytes for {stored.elements}, not {found}"
    found = stored.fields.get(stored.element.field)
    if found is not None:
        wanted = stored.element.stored_entries(stored.count)
        if found != wanted:
            entries = "entry" if wanted == 1 else "entries"
            yield f"{stored.element.field} must have {wanted} {entries} for {stored.elements}, not {found}"


def _raw_strings(context: Context) -> Iterator[Hit]:
    for stored in _inside(context):
        assert stored.element is not None  # _inside
        if stored.element.bits == 0 and "raw_data" in stored.fields:
            message = "strings must be stored in string_data, but this tensor has raw_data"
            yield Hit(stored.position, stored.where, message)


_FEW = 64
# Typed fields for integers of several element types, and their numpy types.
_INTEGER_FIELDS = {"int32_data": (np.int32, -(2**31), 2**31 - 1), "uint64_data": (np.uint64, 0, 2**64 - 1)}


def _ranges(context: Context) -> Iterator[Hit]:
    for stored in _inside(context):
        message = _out_of_range(stored)
        if message:
            yield Hit(stored.position, stored.where, message)
        message = _padding(stored)
        if message:
            remedy = "nothing reads them; export the model again"
            yield Hit(stored.position, stored.where, message, remedy, Severity.WARNING)


def _out_of_range(stored: StoredTensor) -> str:
    """Describe the fault of the integers in int32_data or uint64_data; "" if there is none."""
    element = stored.element
    if element is None or element.low is None or element.high is None or element.field not in stored.fields:
        return ""
    dtype, least, most = _INTEGER_FIELDS.get(element.field, (np.int64, element.low, element.high))
    if (element.low, element.high) == (least, most):
        return ""
    if stored.fields[element.field] <= _FEW:  # faster than building an array
        few = getattr(stored.tensor, element.field)
        if max(few) <= element.high and min(few) >= element.low:
            return ""
    entries: NDArray[np.generic] = np.array(getattr(stored.tensor, element.field), dtype=dtype)
    wrong = entries > element.high  # type: ignore[operator]  # of an integer dtype, which mypy cannot know
    if least < 0:
        wrong |= entries < element.low  # type: ignore[operator]  # as above
    if not wrong.any():
        return ""
    index = int(wrong.argmax())
    others = int(wrong.sum()) - 1
    more = f" ({others} more are wrong)" if others else ""
    limits = f"from {element.low} to {element.high}"
    return f"{element.field} of {element.name} must hold integers {limits}, but entry {index} is {entries[index]}{more}"


def _padding(stored: StoredTensor) -> str:
    """Describe the fault of the bits after the last element of a packed type; "" if there is none."""
    element, count = stored.element, stored.count
    if element is None or not count or element.bits in (0, 8) or element.bits > 8:
        return ""
    used = element.bits * count % 8
    raw = stored.fields.get("raw_data") == stored.raw_size
    typed = element.packed > 1 and stored.fields.get(element.field) == element.stored_entries(count)
    if not used or not (raw or typed):
        return ""
    last = stored.tensor.raw_data[-1] if raw else stored.tensor.int32_data[-1]
    if not 0 <= last <= 255 or last >> used == 0:
        return ""
    return f"bits behind the last element of {element.name} must be 0, but the last byte is 0x{last:02x}"


def _booleans(context: Context) -> Iterator[Hit]:
    for stored in context.stored:
        if stored.element is None or stored.element.name != "bool":
            continue
        if "int32_data" in stored.fields and stored.reference is None:
            message = _out_of_range(stored)
        else:
            data = stored.raw(context.files)
            message = _raw_booleans(data) if data else ""
        if message:
            yield Hit(stored.position, stored.where, message)


def _raw_booleans(data: bytes) -> str:
    if not data.translate(None, b"\0\1"):  # nothing remains without these bytes
        return ""
    elements = np.frombuffer(data, dtype=np.uint8)
    index = int((elements > 1).argmax())
    return f"elements of bool must be the bytes 0 or 1, but element {index} is {elements[index]}"


def _strings(context: Context) -> Iterator[Hit]:
    for stored in _inside(context):
        strings = list(stored.tensor.string_data) if "string_data" in stored.fields else []
        if strings and not _clean_text(strings):
            for severity, message in _odd_text(strings):
                yield Hit(stored.position, stored.where, message, severity=severity)


def _clean_text(strings: Sequence[bytes]) -> bool:
    """Tell whether all strings are certainly clean; False if that needs a closer look."""
    # A line break is one byte that cannot be a part of another character: the whole is UTF-8 iff every string is.
    text = b"\n" + b"\n".join(strings) + b"\n"
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\n" + codecs.BOM_UTF8 not in text and b"\0\n" not in text


def _is_utf8(string: bytes) -> bool:
    try:
        string.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _odd_text(strings: Sequence[bytes]) -> Iterator[tuple[Severity, str]]:
    # Readers differ on the second and third, but the text itself is clear.
    kinds: tuple[tuple[Severity, str, Callable[[bytes], bool]], ...] = (
        (Severity.ERROR, "must be UTF-8", lambda string: not _is_utf8(string)),
        (Severity.WARNING, "must not begin with a byte order mark", lambda string: string.startswith(codecs.BOM_UTF8)),
        (Severity.WARNING, "must not end with a NUL character", lambda string: string.endswith(b"\0")),
    )
    for severity, rule, is_odd in kinds:
        odd = [index for index, string in enumerate(strings) if is_odd(string)]
        if odd:
            more = f" (and {len(odd) - 1} more)" if len(odd) > 1 else ""
            yield severity, f"strings {rule}, but element {odd[0]} breaks that{more}: {_shown(strings[odd[0]])}"


def _shown(string: bytes) -> str:
    return repr(string) if len(string) <= 40 else f"{string[:40]!r}..."


def _sparse(context: Context) -> Iterator[Hit]:
    parts: dict[int, dict[TensorRole, StoredTensor]] = {}
    for stored in context.stored:
        if stored.site.sparse is not None:
            parts.setdefault(id(stored.site.sparse), {})[stored.site.role] = stored
    for site in context.tensors:
        if site.sparse is None or site.role is not TensorRole.SPARSE_VALUES:
            continue
        found = parts.get(id(site.sparse), {})
        values, indices = found.get(TensorRole.SPARSE_VALUES), found.get(TensorRole.SPARSE_INDICES)
        messages = _sparse_shape(site.sparse, values, indices) or _sparse_indices(site.sparse, indices, context)
        for message in messages:
            yield Hit(site.position, site.where, message)


def _sparse_shape(
    sparse: onnx.SparseTensorProto, values: StoredTensor | None, indices: StoredTensor | None
) -> list[str]:
    """Return the faults of dims and types of the parts; None is an absent part."""
    messages = []
    if any(dim < 0 for dim in sparse.dims):
        messages.append(f"dims of a sparse tensor must not be negative, but they are {dims_text(sparse.dims)}")
    if values is None:
        return [*messages, "a sparse tensor must have values, but it has none"]
    if len(values.dims) != 1:
        messages.append(f"values must have one dimension (their number), not dims {dims_text(values.dims)}")
        return messages
    number, rank = values.dims[0], len(sparse.dims)
    if indices is None:
        if number != 0:
            messages.append(f"a sparse tensor with {number} values must have indices, but it has none")
        return messages
    if indices.code != onnx.TensorProto.INT64:
        messages.append(f"indices must be int64, not {element_types.describe(indices.code)}")
    if indices.dims not in ((number,), (number, rank)):
        messages.append(
            f"indices must have dims [{number}] or [{number}, {rank}] ({number} values of {rank} dimensions), "
            f"not {dims_text(indices.dims)}"
        )
    return messages


def _sparse_indices(
    sparse: onnx.SparseTensorProto, indices: StoredTensor | None, context: Context
) -> Iterator[str]:
    """Yield the faults of the indices themselves, given correct types and dims."""
    elements = indices.int64s(context.files) if indices is not None else None
    if indices is None or elements is None or elements.size == 0:
        return
    if len(indices.dims) == 1:
        size = element_count(sparse.dims) or 0
        wrong = (elements < 0) | (elements > min(size - 1, 2**63 - 1))
        limits, rows = f"from 0 to {size - 1}" if size else "none (the tensor has no elements)", elements[:, None]
    else:
        rows = elements.reshape(indices.dims)
        limits = f"inside dims {dims_text(sparse.dims)}"
        wrong = np.asarray(((rows < 0) | (rows >= np.array(sparse.dims, dtype=np.int64))).any(axis=1))
    if wrong.any():
        place = int(wrong.argmax())
        yield f"indices must be {limits}, but index {place} is {_index(rows[place])}"
    # Two rows are in order if the first place where they differ ascends.
    differ = rows[1:] != rows[:-1]
    first = differ.argmax(axis=1)[:, None]
    ascending = np.take_along_axis(rows[1:] > rows[:-1], first, axis=1)[:, 0]
    if not ascending.all():
        place = int((~ascending).argmax())
        before, after = _index(rows[place]), _index(rows[place + 1])
        if before == after:
            yield f"indices must be distinct, but indices {place} and {place + 1} are both {before}"
        else:
            yield f"indices must be in ascending order, but {after} comes after {before}"


def _index(row: NDArray[np.int64]) -> str:
    return str(int(row[0])) if len(row) == 1 else dims_text(row.tolist())


RULES: tuple[Rule, ...] = (
    Rule("TYP-03", "MUST", _element_types, "choose an element type that ONNX defines"),
    Rule("PRO-09", "MUST", _one_field, _AGAIN),
    Rule("PRO-10", "MUST", _number_of_elements, _AGAIN),
    Rule("PRO-11", "MUST", _raw_strings, "store the strings in string_data"),
    Rule("PRO-12", "MUST", _ranges, _AGAIN),
    Rule("TYP-08", "definition", _strings, "store the strings as UTF-8, without byte order mark and final NUL"),
    Rule("TYP-09", "definition", _booleans, _AGAIN),
    Rule("PRO-15", "MUST", _sparse, "export the model again, or store the tensor as a dense one", since_ir=6),
)
