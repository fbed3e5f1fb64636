"""Operators that map categories to numbers and labels. Strings come from outside, so what reads them is the host's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from hwflow.display import show
from hwflow.frontend.frames import axes
from hwflow.onnxspec.clauses.ml import category_maps
from hwflow.onnxspec.definitions.dialect_writer import Call, DialectWriter
from hwflow.onnxspec.definitions.function_writer import Undefined, Use
from hwflow.onnxspec.reading.numpy_tensors import DTYPE_NAMES
from hwflow.onnxspec.reference import framewise
from hwflow.onnxspec.reference.defect import AnyArray, Defect, Inputs, Mended, exactly
from hwflow.onnxspec.resolving.resolved_model import Attribute
from hwflow.onnxspec.shapes.dialects import ML_DOMAIN, Result
from hwflow.onnxspec.shapes.dialects import Inputs as ValueInfos
from hwflow.operators.float_errors.step_errors import of_exact
from hwflow.operators.ml.ml_operands import DOUBLE, FLOAT, INT64, STRING, cast, integer_kind, integers, strings
from hwflow.operators.record import ML, Operator

_OF_STRINGS = "of numbers; what reads strings is the host's"


def _one_hot_encoder(use: Use) -> onnx.FunctionProto | None:
    """Return 1 at the place of each element among the categories, along a new last axis.

    Without ``zeros`` an unknown category is an error. Hardware cannot fail, so it gives zeros where it takes the
    categories, which are integers of at most 32 bits then; all others are the host's, which says so.
    """
    call = Call.of(use)
    if call.kind(0) == STRING or (not call.integer("zeros", 1) and call.kind(0) in _OF_THE_HOST):
        return None
    body = DialectWriter(call)
    categories = integers(call, "cats_int64s")
    if not categories or len({*categories}) < len(categories):
        raise Undefined("cats_int64s must hold different categories, at least one", "correct the attribute")
    x, kind = body.argument(0), call.kind(0)
    if not integer_kind(kind):
        x, kind = _cut_off(body, x, kind, categories)
    x = body.let(f"Unsqueeze ({x}, {body.integers([-1])})")
    same = _equal(body, x, categories, kind)
    return body.returned(cast(body, same, "bool", FLOAT))


_OF_THE_HOST = (INT64, FLOAT, DOUBLE)

_SHORT = 15
"""Bits of the magnitudes of categories that reals become integers of 16 bits for, which hardware takes."""


def _cut_off(body: DialectWriter, x: str, kind: str, categories: Sequence[int]) -> tuple[str, str]:
    """Return reals cut off to integers, and the type of these; those beyond the categories are some beyond them."""
    first, last = min(categories) - 1, max(categories) + 1
    if max(abs(first), abs(last)) >> _SHORT:
        return cast(body, x, kind, INT64), INT64
    within = body.let(f"Clip ({x}, {body.number(first, kind)}, {body.number(last, kind)})")
    return cast(body, within, kind, "int16"), "int16"


def _equal(body: DialectWriter, x: str, keys: Sequence[Any], kind: str) -> str:
    """Return which of the keys ``x`` is, along its last axis; keys beyond an integer type are none."""
    if not integer_kind(kind):
        return body.let(f"Equal ({x}, {body.number(keys, kind)})")
    limits = np.iinfo(kind)
    reached = [limits.min <= key <= limits.max for key in keys]
    known = [key if limits.min <= key <= limits.max else 0 for key in keys]
    same = body.let(f"Equal ({x}, {body.number(known, kind)})")
    return same if all(reached) else body.let(f"And ({same}, {body.number(reached, 'bool')})")


@dataclass(frozen=True)
class _Map:
    """``table``: the values of keys, those of equal keys the last one's; ``default``: of all else."""

    table: Mapping[Any, Any]
    keys: str
    values: str
    default: Any


_KINDS = (("int64s", INT64), ("floats", FLOAT), ("strings", STRING))
_DEFAULTS: Mapping[str, tuple[str, Any]] = {
    INT64: ("default_int64", -1), FLOAT: ("default_float", -0.0), STRING: ("default_string", "_Unused"),
}


def _label_map(attribute: Any) -> _Map:
    """Return the map of a LabelEncoder of any version. ``attribute(name, default)``: its attributes."""
    classes = attribute("classes_strings", None)
    if classes is not None:  # version 1; the input's type tells the direction
        return _Map({name: place for place, name in enumerate(classes)}, STRING, INT64, attribute(*_DEFAULTS[INT64]))
    keys, key_kind = _listed(attribute, "keys")
    values, kind = _listed(attribute, "values")
    if len(keys) != len(values):
        raise Undefined(
            f"there must be as many keys as values, not {len(keys)} and {len(values)}", "correct the attributes"
        )
    default = _tensor(attribute("default_tensor", None))
    if default is not None and default[0].size != 1:
        raise Undefined(f"default_tensor must have one element, not {default[0].size}", "correct the attribute")
    name, otherwise = _DEFAULTS.get(kind, ("", -1 if integer_kind(kind) else -0.0))
    single = default[0].reshape(-1).tolist()[0] if default is not None else attribute(name, otherwise)
    return _Map(dict(zip(keys, values, strict=True)), key_kind, kind, single)


def _listed(attribute: Any, name: str) -> tuple[list[Any], str]:
    """Return keys or values, and their element type."""
    found = [(attribute(f"{name}_{suffix}", None), kind) for suffix, kind in _KINDS]
    lists = [([*values], kind) for values, kind in found if values]
    tensor = _tensor(attribute(f"{name}_tensor", None))
    if tensor is not None:
        lists.append(([*tensor[0].reshape(-1).tolist()], tensor[1]))
    if len(lists) != 1:
        raise Undefined(f"one of the attributes {name}_* must be given, not {len(lists)}", "correct the attributes")
    return lists[0]


def _tensor(value: Any) -> tuple[AnyArray, str] | None:
    if value is None:
        return None
    if isinstance(value, onnx.TensorProto):
        array = numpy_helper.to_array(value)
        if value.data_type == onnx.TensorProto.STRING:
            array = np.array([_text(v) for v in array.reshape(-1).tolist()], object)
        return array, DTYPE_NAMES[value.data_type]
    array = np.asarray(value)
    return array, STRING if array.dtype.kind in "OSU" else array.dtype.name


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _label_encoder(use: Use) -> onnx.FunctionProto | None:
    """Return the values of the elements, which are keys."""
    call = Call.of(use)
    if call.kind(0) == STRING:
        return None
    classes = strings(call, "classes_strings")
    if classes:
        found = _Map(dict(enumerate(classes)), INT64, STRING, call.attribute(*_DEFAULTS[STRING]))
    else:
        found = _label_map(call.attribute)
    if found.keys != call.kind(0):
        raise Undefined(f"keys must be of the input's type, {call.kind(0)}, not {found.keys}", "correct the attributes")
    return _looked_up(call, found)


_MOST_COMPARED = 1 << 10
"""Keys that each element is compared with; of more, the node is the host's, which has a better way."""

_LONGEST, _LEAST_SHARE = 1 << 16, 8
"""Of a table that an integer is the index of: its length, and the share (1 in so many) of its places that are keys."""


def _looked_up(call: Call, found: _Map) -> onnx.FunctionProto | None:
    """Return the values of elements."""
    body = DialectWriter(call)
    index = _place_in_table(body, found) or _place_among_keys(body, found)
    if index is None:
        return None
    place, values = index
    table = body.constant([found.default, *values], object if found.values == STRING else found.values)
    return body.returned(body.let(f"Gather <axis = 0> ({table}, {place})"))


def _place_in_table(body: DialectWriter, found: _Map) -> tuple[str, list[Any]] | None:
    """Return the place of each integer among all between the least key and the greatest, from 1, and their values; None
    where these are too many. 0 is the place of others."""
    if not integer_kind(found.keys) or not found.table:
        return None
    first, last = min(found.table), max(found.table)
    length = last - first + 1
    if length > min(_LONGEST, _LEAST_SHARE * len(found.table)) or first <= np.iinfo(found.keys).min:
        return None
    x, before = body.argument(0), body.number(first - 1, found.keys)
    least, most = (body.number(end, found.keys) for end in (first, last))
    inside = body.let(f"And ({body.let(f'GreaterOrEqual ({x}, {least})')}, {body.let(f'LessOrEqual ({x}, {most})')})")
    place = body.let(f"Sub ({body.let(f'Where ({inside}, {x}, {before})')}, {before})")
    values = [found.table.get(key, found.default) for key in range(first, last + 1)]
    return cast(body, place, found.keys, INT64), values


def _place_among_keys(body: DialectWriter, found: _Map) -> tuple[str, list[Any]] | None:
    """Return the place of each element among the keys, from 1, and their values; None where these are too many. 0 is
    the place of others."""
    keys = [*found.table]
    if len(keys) > _MOST_COMPARED:
        return None
    lost = [place for place, key in enumerate(keys) if key != key]  # NaN
    one = body.let(f"Unsqueeze ({body.argument(0)}, {body.integers([-1])})")
    same = _equal(body, one, keys, found.keys)
    if lost:  # keys of NaN are alike
        its = body.number([p == lost[-1] for p in range(len(keys))], "bool")
        none = body.let(f"And ({body.let(f'IsNaN ({one})')}, {its})")
        same = body.let(f"Or ({same}, {none})")
    numbers, nothing = body.number([*range(1, len(keys) + 1)]), body.number(0.0)
    place = body.let(f"Where ({same}, {numbers}, {nothing})")
    index = body.let(f"ReduceSum <keepdims = 0> ({place}, {body.integers([-1])})")
    return cast(body, index, FLOAT, INT64), [*found.table.values()]


def _categories(attributes: Mapping[str, Any]) -> Sequence[Any] | None:
    """Return what the elements must be among."""
    listed = attributes.get("cats_strings") or attributes.get("cats_int64s")
    return None if attributes.get("zeros", 1) else listed


def _encoded(inputs: Inputs, attributes: Mapping[str, Any]) -> AnyArray:
    """Compute a OneHotEncoder. Raises :class:`ValueError` for an unknown category without ``zeros``."""
    (x,) = inputs
    assert x is not None
    name = next(name for name in ("cats_strings", "cats_int64s") if attributes.get(name))
    place = {category: number for number, category in enumerate(attributes[name])}
    flat = [_category(v) for v in x.reshape(-1).tolist()]
    places = np.array([place.get(v, -1) for v in flat], np.int64).reshape(x.shape)
    if not attributes.get("zeros", 1) and (places < 0).any():
        unknown = flat[int((places < 0).argmax())]
        said = show(unknown) if isinstance(unknown, str) else unknown
        raise ValueError(f"every category must be among {name}, since zeros is 0, not {said}")
    result: AnyArray = (places[..., np.newaxis] == np.arange(len(place))).astype(np.float32)
    return result


def _category(value: Any) -> Any:
    """Return an element as a category: reals are cut off."""
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else None
    return _text(value) if isinstance(value, bytes) else value


def _reals(attributes: Mapping[str, Any], inputs: Inputs) -> bool:
    return inputs[0] is not None and inputs[0].dtype.kind == "f" and bool((inputs[0] % 1 != 0).any())


def _ranks(attributes: Mapping[str, Any], inputs: Inputs) -> bool:
    return inputs[0] is not None and inputs[0].ndim not in (1, 2)


def _category_mapper(use: Use) -> onnx.FunctionProto | None:
    """Return the strings of integers."""
    call = Call.of(use)
    numbers, texts = integers(call, "cats_int64s"), strings(call, "cats_strings")
    if len(numbers) != len(texts) or not numbers:
        raise Undefined(
            "cats_int64s and cats_strings must have the same number of entries, at least one, not "
            f"{len(numbers)} and {len(texts)}",
            "correct the attributes",
        )
    if call.kind(0) == STRING:
        return None
    table = dict(zip(numbers, texts, strict=True))
    return _looked_up(call, _Map(table, INT64, STRING, call.attribute("default_string", "_Unused")))


def _strings_looked_up(inputs: Inputs, attributes: Mapping[str, Any]) -> AnyArray:
    """Compute a CategoryMapper."""
    (x,) = inputs
    assert x is not None
    texts, numbers = attributes["cats_strings"], attributes["cats_int64s"]
    if x.dtype.kind in "OSU":
        return _each(x, dict(zip(texts, numbers, strict=True)), attributes["default_int64"], np.int64)
    return _each(x, dict(zip(numbers, texts, strict=True)), attributes["default_string"], object)


def _each(x: AnyArray, table: Mapping[Any, Any], default: Any, dtype: Any) -> AnyArray:
    of_nan = [value for key, value in table.items() if key != key]
    if x.dtype.kind in "OSU":
        flat = [table.get(_text(key), default) for key in x.reshape(-1).tolist()]
    else:
        flat = [of_nan[-1] if of_nan and key != key else table.get(key, default) for key in x.reshape(-1).tolist()]
    result: AnyArray = np.array(flat, dtype).reshape(x.shape)
    return result


def _labels_looked_up(inputs: Inputs, attributes: Mapping[str, Any]) -> AnyArray:
    """Compute a LabelEncoder of strings."""
    (x,) = inputs
    assert x is not None
    found = _label_map(lambda name, default: attributes.get(name) if attributes.get(name) is not None else default)
    return _each(x, found.table, found.default, object if found.values == STRING else np.dtype(found.values))


def _positions(inputs: ValueInfos, attributes: Mapping[str, Attribute]) -> Sequence[Result]:
    """Infer the results of a LabelEncoder of version 1 of strings: integers."""
    (x,) = inputs
    assert x is not None
    return ((x.shape, INT64),)


RECORDS = (
    Operator(
        "OneHotEncoder", domains=ML, definition=_one_hot_encoder, frames=axes.IMAGE, error=of_exact, among=_categories,
        defined=f"{_OF_STRINGS}; without zeros an unknown category is an error on the host, and none in hardware",
        framewise=framewise.always,
        clauses=category_maps.ONE_HOT_ENCODER,
        mended=Mended(
            (
                Defect("onehotencoder-reals", "reals are not cut off to integers", _reals),
                Defect("onehotencoder-axes", "it takes one or two axes", _ranks),
            ),
            exactly(_encoded, domain=ML_DOMAIN),
        ),
    ),
    Operator(
        "LabelEncoder", domains=ML, definition=_label_encoder, defined=_OF_STRINGS, results=_positions,
        frames=axes.ELEMENTWISE, error=of_exact,
        clauses=category_maps.LABEL_ENCODER,
        mended=Mended(
            (Defect("labelencoder-classes", "there is none before operator set 2", None),),
            exactly(_labels_looked_up, domain=ML_DOMAIN),
        ),
    ),
    Operator(
        "CategoryMapper", domains=ML, definition=_category_mapper, defined=_OF_STRINGS, frames=axes.ELEMENTWISE,
        error=of_exact, clauses=category_maps.CATEGORY_MAPPER,
        mended=Mended(
            (Defect("categorymapper-missing", "it is missing", None),), exactly(_strings_looked_up, domain=ML_DOMAIN)
        ),
    ),
)
