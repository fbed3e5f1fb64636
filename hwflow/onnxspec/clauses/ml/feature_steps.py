"""The clauses of the operators that prepare features of numbers: scale, normalize, impute, join, select."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

import numpy as np

from hwflow.display import show
from hwflow.errors import Severity
from hwflow.onnxspec.clauses.ml.node_reading import (
    INPUTS,
    LENGTHS,
    MOST,
    VALUES,
    Fault,
    NodeReading,
    OperatorClauses,
    below,
    first_faults,
    legal_text,
    matrix_or_row,
    one_of,
    present,
    run,
    the_one,
)
from hwflow.onnxspec.reading import element_types

OFFSET_SCALE = ("offset", "scale")
IMPUTED = ("imputed_value_floats", "imputed_value_int64s")
REPLACED = ("replaced_value_float", "replaced_value_int64")
DIMENSIONS = "inputdimensions"
_INT32 = np.iinfo(np.int32)


def _per_feature(name: str, r: NodeReading) -> Iterator[Fault]:
    """Yield a fault unless a list has one entry, or one for each feature."""
    length, features = r.length(name), r.features()
    if length > 1 and length != features:
        counts = "1 entry" if features == 1 else f"1 or {features} entries"
        yield Fault(INPUTS, f"{show(name)} must have {counts} ({features} features of {r.input(0)}), not {length}")


def _scaler(r: NodeReading) -> Iterator[Fault]:
    yield from present(r, OFFSET_SCALE)
    offsets, scales = (r.length(name) for name in OFFSET_SCALE)
    if offsets and scales and offsets != scales:
        yield Fault(LENGTHS, f"'offset' and 'scale' must be equally long, not {offsets} and {scales}")


def _scaled_features(r: NodeReading) -> Iterator[Fault]:
    for name in OFFSET_SCALE:
        yield from _per_feature(name, r)


def _imputer(r: NodeReading) -> Iterator[Fault]:
    yield from one_of(r, IMPUTED, "the values")
    name = the_one(r, IMPUTED)
    mine, other = REPLACED if name == IMPUTED[0] else REPLACED[::-1]
    if r.given(other):
        yield Fault(
            VALUES,
            f"the value to replace must be in {show(mine)}, as {show(name)} is given, but there is {show(other)}",
            f"remove {show(other)}",
            Severity.WARNING,
        )


def _imputed_type(r: NodeReading) -> Iterator[Fault]:
    name, kind = the_one(r, IMPUTED), element_types.describe(r.level(0).code)
    real = kind.startswith("float")
    if real != (name == IMPUTED[0]):
        yield Fault(
            INPUTS,
            f"the values for {r.input(0)} of type {kind} must be in {show(IMPUTED[not real])}, not {show(name)}",
            f"write them to {show(IMPUTED[not real])}",
        )
    elif kind == "int32":
        values = r.ints(name)
        yield from first_faults(
            INPUTS,
            (values < _INT32.min) | (values > _INT32.max),
            lambda entry: f"the values for {r.input(0)} must fit int32, not {values[entry]} at entry {entry}",
        )


def _imputed_features(r: NodeReading) -> Iterator[Fault]:
    yield from _per_feature(the_one(r, IMPUTED), r)


def _dimensions(r: NodeReading) -> Iterator[Fault]:
    yield from present(r, [DIMENSIONS])
    sizes, inputs = r.ints(DIMENSIONS), len(r.node.inputs)
    if len(sizes) and len(sizes) != inputs:
        yield Fault(LENGTHS, f"{show(DIMENSIONS)} must have an entry for each of the {inputs} inputs, not {len(sizes)}")
    yield from first_faults(
        VALUES, sizes < 1, lambda entry: f"the size of an input must be at least 1, not {sizes[entry]} at entry {entry}"
    )


def _width(index: int, size: int, r: NodeReading) -> Iterator[Fault]:
    """Check that an input is as wide as the node says."""
    yield from matrix_or_row(r, index)
    shape = r.shape(index)
    if len(shape) == 2 and isinstance(shape[1], int) and shape[1] != size:
        yield Fault(
            INPUTS,
            f"{r.input(index)} must have {size} columns, as {show(DIMENSIONS)} says, not {shape[1]}: evaluators cut "
            "it or add zeros",
            f"correct {show(DIMENSIONS)}",
            Severity.WARNING,
        )


def _widths(r: NodeReading) -> Iterator[Fault]:
    """Check that each input is as wide as the node says; the first that are not."""
    sizes = r.ints(DIMENSIONS)[: len(r.node.inputs)].tolist()
    yield from islice(run([partial(_width, index, size) for index, size in enumerate(sizes)], r), MOST)


def _selected(r: NodeReading) -> Iterator[Fault]:
    """Check that constant indices are those of the last axis."""
    shape, indices = r.shape(0), r.constant(1).elements()
    size = shape[-1] if shape else None
    if not isinstance(size, int) or indices.dtype.kind != "i":
        return
    yield from first_faults(
        INPUTS,
        (indices < 0) | (indices >= size),
        lambda entry: f"indices must be {below(size)} (the last axis of {r.input(0)}), not {indices[entry]} at entry "
        f"{entry}",
        "correct the indices",
    )


SCALER = OperatorClauses((_scaler,), (_scaled_features,))
NORMALIZER = OperatorClauses((legal_text("norm", "MAX", ("MAX", "L1", "L2")),), (matrix_or_row,))
IMPUTER = OperatorClauses((_imputer,), (_imputed_type, _imputed_features))
FEATURE_VECTORIZER = OperatorClauses((_dimensions,), (_widths,))
ARRAY_FEATURE_EXTRACTOR = OperatorClauses((), (_selected,))
