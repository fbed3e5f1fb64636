"""Clauses of the operators that prepare features of numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hwflow.onnxspec.clauses.ml.node_reading import INPUTS, LENGTHS, VALUES
from tests.onnxspec.build import value
from tests.onnxspec.clauses.ml.ml_models import CORRECT, INPUT, INT32, INT64, LISTS, said, single, twin
from tests.onnxspec.clauses.twins import Twin, check

SC = {"offset": [1.0, 2.0], "scale": [3.0, 4.0]}
IM = {"imputed_value_floats": [1.0, 2.0], "replaced_value_float": 0.0}
II = {"imputed_value_int64s": [1, 2], "replaced_value_int64": 0}
OF_INT64 = {"inputs": [value("x", ["N", 2], INT64)], "outputs": [value("y", ["N", 2], INT64)]}
OF_INT32 = {"inputs": [value("x", ["N", 2], INT32)], "outputs": [value("y", ["N", 2], INT32)]}
FV = {"inputdimensions": [2, 1]}
TWO_INPUTS = {"inputs": [value("x", ["N", 2]), value("u", ["N", 1])], "outputs": [value("y", ["N", 3])]}


TWINS = [
    twin(
        "missing", VALUES, "Scaler", SC,
        {"scale": None},
        [
            ("attribute 'scale' must have entries, but it is missing", "give 'scale'"),
        ],
        version=1,
    ),
    twin(
        "lengths", LENGTHS, "Scaler", SC,
        {"scale": [1.0]},
        [
            ("'offset' and 'scale' must be equally long, not 2 and 1", LISTS),
        ],
        version=1,
    ),
    twin(
        "features", INPUTS, "Scaler", SC,
        {"offset": [1.0] * 3, "scale": [1.0] * 3},
        [
            ("'offset' must have 1 or 2 entries (2 features of input 'x'), not 3", INPUT),
            ("'scale' must have 1 or 2 entries (2 features of input 'x'), not 3", INPUT),
        ],
        version=1,
    ),
    twin(
        "norm", VALUES, "Normalizer", dict(norm="L2"),
        {"norm": "L3"},
        [
            ("'norm' must be one of MAX, L1, L2, not 'L3'", CORRECT),
        ],
        version=1,
    ),
    twin(
        "both", VALUES, "Imputer", IM,
        {"imputed_value_int64s": [1]},
        [
            (
                "exactly one of 'imputed_value_floats', 'imputed_value_int64s' must have entries, not both",
                "remove all but one of them",
            ),
        ],
        version=1,
    ),
    twin(
        "none", VALUES, "Imputer", IM,
        {"imputed_value_floats": None},
        [
            (
                "exactly one of 'imputed_value_floats', 'imputed_value_int64s' must have entries, not none",
                "give the values in one of them",
            ),
        ],
        version=1,
    ),
    twin(
        "replaced", VALUES, "Imputer", IM,
        {"replaced_value_int64": 1},
        [
            (
                "the value to replace must be in 'replaced_value_float', as 'imputed_value_floats' is given, but "
                "there is 'replaced_value_int64'",
                "remove 'replaced_value_int64'", "warning",
            ),
        ],
        version=1,
    ),
    twin(
        "type", INPUTS, "Imputer", II,
        {"imputed_value_int64s": None, "imputed_value_floats": [1.0], "replaced_value_int64": None},
        [
            (
                "the values for input 'x' of type int64 must be in 'imputed_value_int64s', not "
                "'imputed_value_floats'",
                "write them to 'imputed_value_int64s'",
            ),
        ],
        **OF_INT64, version=1,
    ),
    twin(
        "int32", INPUTS, "Imputer", II,
        {"imputed_value_int64s": [1, 2 ** 31]},
        [
            ("the values for input 'x' must fit int32, not 2147483648 at entry 1", INPUT),
        ],
        **OF_INT32, version=1,
    ),
    twin(
        "features", INPUTS, "Imputer", IM,
        {"imputed_value_floats": [1.0] * 3},
        [
            ("'imputed_value_floats' must have 1 or 2 entries (2 features of input 'x'), not 3", INPUT),
        ],
        version=1,
    ),
    twin(
        "missing", VALUES, "FeatureVectorizer", FV,
        {"inputdimensions": None},
        [
            ("attribute 'inputdimensions' must have entries, but it is missing", "give 'inputdimensions'"),
        ],
        **TWO_INPUTS, version=1,
    ),
    twin(
        "number", LENGTHS, "FeatureVectorizer", FV,
        {"inputdimensions": [2]},
        [
            ("'inputdimensions' must have an entry for each of the 2 inputs, not 1", LISTS),
        ],
        **TWO_INPUTS, version=1,
    ),
    twin(
        "size", VALUES, "FeatureVectorizer", FV,
        {"inputdimensions": [2, 0]},
        [
            ("the size of an input must be at least 1, not 0 at entry 1", CORRECT),
        ],
        **TWO_INPUTS, version=1,
    ),
    twin(
        "width", INPUTS, "FeatureVectorizer", FV,
        {"inputdimensions": [3, 1]},
        [
            (
                "input 'x' must have 3 columns, as 'inputdimensions' says, not 2: evaluators cut it or add zeros",
                "correct 'inputdimensions'", "warning",
            ),
        ],
        **TWO_INPUTS, version=1,
    ),
]

TWINS += [
    Twin(
        INPUTS,
        name="ArrayFeatureExtractor: indices",
        bad=single("ArrayFeatureExtractor", {}, constants={"i": np.array([0, 2, -1])}, outputs=[value("y", ["N", 3])]),
        good=single("ArrayFeatureExtractor", {}, constants={"i": np.array([0, 1, 1])}, outputs=[value("y", ["N", 3])]),
        findings=[
            said(
                INPUTS, "ArrayFeatureExtractor", f"indices must be 0 to 1 (the last axis of input 'x'), not {index}",
                "correct the indices",
            )
            for index in ("2 at entry 1", "-1 at entry 2")
        ],
    ),
    *(
        Twin(
            INPUTS,
            name=f"{op_type}: axes",
            bad=single(op_type, attributes, inputs=[value("x", ["N", 2, 3])], outputs=[value("y", ["N", 2, 3])]),
            good=single(op_type, attributes, inputs=[value("x", [2])], outputs=[value("y", [2])]),
            findings=[
                said(
                    INPUTS, op_type, "input 'x' must have the axes [N, C] or [C], not shape [N, 2, 3]",
                    "reshape the input",
                )
            ],
        )
        for op_type, attributes in (("Normalizer", {"norm": "L1"}), ("LinearRegressor", {"coefficients": [1.0, 2.0]}))
    ),
]


@pytest.mark.parametrize("case", TWINS, ids=str)
def test_twins(case: Twin, tmp_path: Path) -> None:
    check(case, tmp_path)
