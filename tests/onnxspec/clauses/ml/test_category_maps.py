"""Clauses of the operators that map categories, labels and dictionaries."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import helper

from hwflow.onnxspec.clauses.ml.node_reading import CLASSES, INPUTS, LENGTHS, VALUES
from tests.onnxspec.build import value
from tests.onnxspec.clauses.ml.ml_models import CORRECT, FLOAT, INPUT, INT64, LISTS, STRING, twin, vector
from tests.onnxspec.clauses.twins import Twin, check

LE = {"keys_strings": ["a", "b"], "values_int64s": [1, 2], "default_int64": 0}
TE = {
    "keys_tensor": vector(["a", "b"], STRING),
    "values_tensor": vector([1, 2], INT64),
    "default_tensor": vector([0], INT64),
}
CM = {"cats_int64s": [1, 2], "cats_strings": ["a", "b"]}
V1 = {"version": 1, "inputs": [value("x", ["N"], STRING)], "outputs": [value("y", ["N"], INT64)]}
V2 = {**V1, "version": 2}
V4 = {**V1, "version": 4}
TEXTS = {"inputs": [value("x", ["N"], STRING)], "outputs": [value("y", ["N", None])]}


def mapping(key: int) -> onnx.TypeProto:
    return helper.make_map_type_proto(key, helper.make_tensor_type_proto(FLOAT, []))


TEXT_KEYS = {"inputs": [helper.make_value_info("x", mapping(STRING))], "outputs": [value("y", [None])]}
INTEGER_KEYS = {"inputs": [helper.make_value_info("x", mapping(INT64))], "outputs": [value("y", [1, None])]}
MAPS = helper.make_value_info("y", helper.make_sequence_type_proto(mapping(INT64)))


TWINS = [
    twin(
        "v1 missing", VALUES, "LabelEncoder", dict(classes_strings=["a", "b"]),
        {"classes_strings": None},
        [
            ("attribute 'classes_strings' must have entries, but it is missing", "give 'classes_strings'"),
        ],
        **V1,
    ),
    twin(
        "v1 twice", VALUES, "LabelEncoder", dict(classes_strings=["a", "b"], default_int64=0),
        {"classes_strings": ["a", "a"], "default_string": "x"},
        [
            (
                "the entries of 'classes_strings' must be distinct, but 'a' is there twice: evaluators take one of "
                "them",
                "remove all but one of them", "warning",
            ),
            (
                "only one of 'default_int64', 'default_string' must be given, not both",
                "remove the one that is not of the output's type", "warning",
            ),
        ],
        **V1,
    ),
    twin(
        "keys", VALUES, "LabelEncoder", LE,
        {"keys_int64s": [1, 2]},
        [
            (
                "exactly one of 'keys_floats', 'keys_int64s', 'keys_strings' must have entries, not 'keys_int64s', "
                "'keys_strings'",
                "remove all but one of them",
            ),
        ],
        **V2,
    ),
    twin(
        "values", VALUES, "LabelEncoder", LE,
        {"values_int64s": None},
        [
            (
                "exactly one of 'values_floats', 'values_int64s', 'values_strings' must have entries, not none",
                "give the values in one of them",
            ),
        ],
        **V2,
    ),
    twin(
        "three", VALUES, "LabelEncoder", LE,
        {"values_strings": ["a", "b"], "values_floats": [1.0, 2.0]},
        [
            (
                "exactly one of 'values_floats', 'values_int64s', 'values_strings' must have entries, not "
                "'values_floats', 'values_int64s', 'values_strings'",
                "remove all but one of them",
            ),
        ],
        **V2,
    ),
    twin(
        "length", LENGTHS, "LabelEncoder", LE,
        {"values_int64s": [1]},
        [
            ("'keys_strings' and 'values_int64s' must be equally long, not 2 and 1", LISTS),
        ],
        **V2,
    ),
    twin(
        "default", VALUES, "LabelEncoder", LE,
        {"default_float": 1.0},
        [
            (
                "the default must be of the type of the values, int64, but there is 'default_float'",
                "remove 'default_float'", "warning",
            ),
        ],
        **V2,
    ),
    twin(
        "twice", VALUES, "LabelEncoder", LE,
        {"keys_strings": ["a", "a"]},
        [
            (
                "the entries of 'keys_strings' must be distinct, but 'a' is there twice: evaluators differ on its "
                "value",
                "remove all but one of them", "warning",
            ),
        ],
        **V2,
    ),
    twin(
        "twice v4", VALUES, "LabelEncoder", {**LE, "keys_strings": ["a", "a"]},
        {"default_tensor": vector([1], INT64, [1]), "default_float": 1.0},
        [
            (
                "the default must be of the type of the values, int64, but there is 'default_float'",
                "remove 'default_float'", "warning",
            ),
        ],
        **V4,
    ),
    twin(
        "tensor", VALUES, "LabelEncoder", TE,
        {"default_tensor": vector([0, 1], FLOAT)},
        [
            ("'default_tensor' must be of the type of the values, int64, not float32", CORRECT),
        ],
        **V4,
    ),
    twin(
        "tensor len", LENGTHS, "LabelEncoder", TE,
        {"default_tensor": vector([0, 1], INT64), "values_tensor": vector([1, 2, 3], INT64)},
        [
            ("'keys_tensor' and 'values_tensor' must be equally long, not 2 and 3", LISTS),
            ("'default_tensor' must have one element, not 2", LISTS),
        ],
        **V4,
    ),
    twin(
        "tensor axes", VALUES, "LabelEncoder", TE,
        {"keys_tensor": vector(["a", "b"], STRING, [2, 1])},
        [
            ("'keys_tensor' must have one axis, not 2", CORRECT),
        ],
        **V4,
    ),
    twin(
        "missing", VALUES, "CategoryMapper", CM,
        {"cats_strings": None},
        [
            ("attribute 'cats_strings' must have entries, but it is missing", "give 'cats_strings'"),
        ],
        **V1,
    ),
    twin(
        "lengths", LENGTHS, "CategoryMapper", CM,
        {"cats_strings": ["a"]},
        [
            ("'cats_int64s' and 'cats_strings' must be equally long, not 2 and 1", LISTS),
        ],
        **V1,
    ),
    twin(
        "defaults", VALUES, "CategoryMapper", {**CM, "default_int64": 1},
        {"default_string": "a"},
        [
            (
                "only one of 'default_int64', 'default_string' must be given, not both",
                "remove the one that is not of the output's type", "warning",
            ),
        ],
        **V1,
    ),
    twin(
        "both", VALUES, "OneHotEncoder", dict(cats_strings=["a", "b"]),
        {"cats_int64s": [1]},
        [
            ("exactly one of 'cats_int64s', 'cats_strings' must have entries, not both", "remove all but one of them"),
        ],
        **TEXTS, version=1,
    ),
    twin(
        "none", VALUES, "OneHotEncoder", dict(cats_strings=["a", "b"]),
        {"cats_strings": None},
        [
            (
                "exactly one of 'cats_int64s', 'cats_strings' must have entries, not none",
                "give the categories in one of them",
            ),
        ],
        **TEXTS, version=1,
    ),
    twin(
        "twice", VALUES, "OneHotEncoder", dict(cats_strings=["a", "b"]),
        {"cats_strings": ["b", "b"]},
        [
            (
                "the entries of 'cats_strings' must be distinct, but 'b' is there twice: evaluators differ on the "
                "number of columns",
                "remove all but one of them",
            ),
        ],
        **TEXTS, version=1,
    ),
    twin(
        "type", INPUTS, "OneHotEncoder", dict(cats_strings=["a", "b"]),
        {"cats_strings": None, "cats_int64s": [1, 2]},
        [
            (
                "the categories of input 'x' of type string must be in 'cats_strings', not 'cats_int64s'",
                "write them to 'cats_strings'",
            ),
        ],
        **TEXTS, version=1,
    ),
    twin(
        "floats", INPUTS, "OneHotEncoder", dict(cats_int64s=[1, 2]),
        {"cats_int64s": None, "cats_strings": ["a"]},
        [
            (
                "the categories of input 'x' of type float32 must be in 'cats_int64s', not 'cats_strings'",
                "write them to 'cats_int64s'",
            ),
        ],
        inputs=[value("x", ["N"])], outputs=[value("y", ["N", None])], version=1,
    ),
    twin(
        "both", VALUES, "DictVectorizer", dict(string_vocabulary=["a", "b"]),
        {"int64_vocabulary": [1]},
        [
            (
                "exactly one of 'int64_vocabulary', 'string_vocabulary' must have entries, not both",
                "remove all but one of them",
            ),
        ],
        **TEXT_KEYS, version=1,
    ),
    twin(
        "twice", VALUES, "DictVectorizer", dict(string_vocabulary=["a", "b"]),
        {"string_vocabulary": ["a", "a"]},
        [
            (
                "the entries of 'string_vocabulary' must be distinct, but 'a' is there twice: evaluators differ on "
                "the number of columns",
                "remove all but one of them", "warning",
            ),
        ],
        **TEXT_KEYS, version=1,
    ),
    twin(
        "type", INPUTS, "DictVectorizer", dict(string_vocabulary=["a", "b"]),
        {"string_vocabulary": None, "int64_vocabulary": [1]},
        [
            (
                "the keys of input 'x' of type string must be in 'string_vocabulary', not 'int64_vocabulary'",
                "write them to 'string_vocabulary'",
            ),
        ],
        **TEXT_KEYS, version=1,
    ),
    twin(
        "both", VALUES, "ZipMap", dict(classlabels_int64s=[1, 2]),
        {"classlabels_strings": ["a", "b"]},
        [
            (
                "exactly one of 'classlabels_int64s', 'classlabels_strings' must have entries, not both",
                "remove all but one of them",
            ),
        ],
        outputs=[MAPS], version=1,
    ),
    twin(
        "none", VALUES, "ZipMap", dict(classlabels_int64s=[1, 2]),
        {"classlabels_int64s": None},
        [
            (
                "exactly one of 'classlabels_int64s', 'classlabels_strings' must have entries, not none",
                "give the labels in one of them",
            ),
        ],
        outputs=[MAPS], version=1,
    ),
    twin(
        "twice", CLASSES, "ZipMap", dict(classlabels_int64s=[1, 2]),
        {"classlabels_int64s": [1, 1]},
        [
            (
                "the entries of 'classlabels_int64s' must be distinct, but 1 is there twice: results do not tell "
                "these classes apart",
                "remove all but one of them", "warning",
            ),
        ],
        outputs=[MAPS], version=1,
    ),
    twin(
        "columns", INPUTS, "ZipMap", dict(classlabels_int64s=[1, 2]),
        {"classlabels_int64s": [1, 2, 3]},
        [
            ("'classlabels_int64s' must have an entry for each of the 2 columns of input 'x', not 3", INPUT),
        ],
        outputs=[MAPS], version=1,
    ),
    twin(
        "map form", VALUES, "CastMap", dict(map_form="SPARSE", max_map=3),
        {"map_form": "sparse", "cast_to": "TO_INT"},
        [
            ("'map_form' must be one of DENSE, SPARSE, not 'sparse'", CORRECT),
            ("'cast_to' must be one of TO_FLOAT, TO_STRING, TO_INT64, not 'TO_INT'", CORRECT),
        ],
        **INTEGER_KEYS, version=1,
    ),
    twin(
        "length", VALUES, "CastMap", dict(map_form="SPARSE", max_map=3),
        {"max_map": 0},
        [
            ("'max_map' must be at least 1, not 0", CORRECT),
        ],
        **INTEGER_KEYS, version=1,
    ),
]


@pytest.mark.parametrize("case", TWINS, ids=str)
def test_twins(case: Twin, tmp_path: Path) -> None:
    check(case, tmp_path)
