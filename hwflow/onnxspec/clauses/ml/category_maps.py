"""The clauses of the operators that map categories, labels and dictionaries: parallel lists, and lists of keys."""

from __future__ import annotations

from collections.abc import Iterator

from hwflow.display import show
from hwflow.errors import Severity
from hwflow.onnxspec.clauses.ml.class_labels import class_labels, distinct_keys, label_count
from hwflow.onnxspec.clauses.ml.node_reading import (
    INPUTS,
    LENGTHS,
    VALUES,
    Fault,
    NodeReading,
    OperatorClauses,
    distinct,
    legal_text,
    one_of,
    present,
    stop,
    the_one,
)
from hwflow.onnxspec.graphs.typeforms import LevelKind
from hwflow.onnxspec.reading import element_types

CATEGORIES = ("cats_int64s", "cats_strings")
VOCABULARIES = ("int64_vocabulary", "string_vocabulary")
MAP_LABELS = ("classlabels_int64s", "classlabels_strings")
_KINDS = {"floats": "float32", "int64s": "int64", "strings": "string"}
_DEFAULTS = {"default_float": "float32", "default_int64": "int64", "default_string": "string"}
_TENSOR = "tensor"


def _keys(r: NodeReading, what: str) -> tuple[str, ...]:
    """Return the attributes that may hold keys or values."""
    return tuple(name for kind in (*_KINDS, _TENSOR) if (name := f"{what}_{kind}") in r.declared)


def _kind(r: NodeReading, name: str) -> str:
    """Return the element type of a list of keys or values."""
    tensor = r.tensor(name) if name.endswith(_TENSOR) else None
    return _KINDS[name.partition("_")[2]] if tensor is None else tensor.type


def _label_encoder(r: NodeReading) -> Iterator[Fault]:
    if r.since < 2:
        yield from present(r, ["classes_strings"])
        yield from distinct("classes_strings", r.strings("classes_strings"), VALUES, "evaluators take one of them")
        yield from _two_defaults(r)
        return
    keys, values = _keys(r, "keys"), _keys(r, "values")
    yield from one_of(r, keys, "the keys")
    yield from one_of(r, values, "the values")
    key, value = the_one(r, keys), the_one(r, values)
    if r.length(key) != r.length(value):
        yield Fault(
            LENGTHS, f"{show(key)} and {show(value)} must be equally long, not {r.length(key)} and {r.length(value)}"
        )
    for name in (key, value):
        tensor = r.tensor(name) if name.endswith(_TENSOR) else None
        if tensor is not None and len(tensor.dims) != 1:
            yield Fault(VALUES, f"{show(name)} must have one axis, not {len(tensor.dims)}")
    if r.since < 4 and not key.endswith("floats"):
        listed = r.ints(key) if key.endswith("int64s") else r.strings(key)
        yield from distinct(key, listed, VALUES, "evaluators differ on its value")


def _defaults(r: NodeReading) -> Iterator[Fault]:
    """Check that the default is of the values' type."""
    if r.since < 2:
        return
    kind = _kind(r, the_one(r, _keys(r, "values")))
    tensor = r.tensor("default_tensor") if "default_tensor" in r.declared else None
    if tensor is not None:
        if tensor.type != kind:
            yield Fault(VALUES, f"'default_tensor' must be of the type of the values, {kind}, not {tensor.type}")
        if tensor.count != 1:
            yield Fault(LENGTHS, f"'default_tensor' must have one element, not {tensor.count}")
    for name, of in _DEFAULTS.items():
        if r.given(name) and of != kind:
            yield Fault(
                VALUES, f"the default must be of the type of the values, {kind}, but there is {show(name)}",
                f"remove {show(name)}", Severity.WARNING,
            )


def _two_defaults(r: NodeReading) -> Iterator[Fault]:
    if r.given("default_int64") and r.given("default_string"):
        yield Fault(
            VALUES, "only one of 'default_int64', 'default_string' must be given, not both",
            "remove the one that is not of the output's type", Severity.WARNING,
        )


def _mapper(r: NodeReading) -> Iterator[Fault]:
    yield from present(r, CATEGORIES)
    ints, strings = (r.length(name) for name in CATEGORIES)
    if ints and strings and ints != strings:
        yield Fault(LENGTHS, f"'cats_int64s' and 'cats_strings' must be equally long, not {ints} and {strings}")
    yield from _two_defaults(r)


def _one_hot(r: NodeReading) -> Iterator[Fault]:
    yield from one_of(r, CATEGORIES, "the categories")
    for fault in distinct_keys(r, CATEGORIES, VALUES, "evaluators differ on the number of columns"):
        yield fault._replace(severity=None)


def _category_type(r: NodeReading) -> Iterator[Fault]:
    name, kind = the_one(r, CATEGORIES), element_types.describe(r.level(0).code)
    legal = CATEGORIES[kind == "string"]
    if name != legal:
        yield Fault(
            INPUTS, f"the categories of {r.input(0)} of type {kind} must be in {show(legal)}, not {show(name)}",
            f"write them to {show(legal)}",
        )


def _vocabulary(r: NodeReading) -> Iterator[Fault]:
    yield from one_of(r, VOCABULARIES, "the keys")
    yield from distinct_keys(r, VOCABULARIES, VALUES, "evaluators differ on the number of columns")


def _dictionary(r: NodeReading) -> Iterator[Fault]:
    """Check that the keys of the input are of the vocabulary's type."""
    name, level = the_one(r, VOCABULARIES), r.level(0)
    if level.kind is not LevelKind.MAP:
        stop()
    kind = element_types.describe(level.code)
    legal = VOCABULARIES[kind == "string"]
    if name != legal:
        yield Fault(
            INPUTS, f"the keys of {r.input(0)} of type {kind} must be in {show(legal)}, not {show(name)}",
            f"write them to {show(legal)}",
        )


def _columns(r: NodeReading) -> Iterator[Fault]:
    """Check that there is a key for each column."""
    keys, columns = label_count(r, MAP_LABELS), r.features()
    if keys != columns:
        name = the_one(r, MAP_LABELS)
        yield Fault(
            INPUTS, f"{show(name)} must have an entry for each of the {columns} columns of {r.input(0)}, not {keys}"
        )


def _cast(r: NodeReading) -> Iterator[Fault]:
    """Check that a sparse output has a length."""
    length = r.integer("max_map", 1)
    if r.text("map_form", "DENSE") == "SPARSE" and length is not None and length < 1:
        yield Fault(VALUES, f"'max_map' must be at least 1, not {length}")


LABEL_ENCODER = OperatorClauses((_label_encoder, _defaults))
CATEGORY_MAPPER = OperatorClauses((_mapper,))
ONE_HOT_ENCODER = OperatorClauses((_one_hot,), (_category_type,))
DICT_VECTORIZER = OperatorClauses((_vocabulary,), (_dictionary,))
ZIP_MAP = OperatorClauses((class_labels(MAP_LABELS, needed=True),), (_columns,))
CAST_MAP = OperatorClauses(
    (
        legal_text("map_form", "DENSE", ("DENSE", "SPARSE")),
        legal_text("cast_to", "TO_FLOAT", ("TO_FLOAT", "TO_STRING", "TO_INT64")), _cast,
    )
)  # fmt: skip
