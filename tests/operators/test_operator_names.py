"""An operator's name stands in one file of hwflow: its record, or the constant that the record takes."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import onnx.defs

import hwflow
from hwflow.operators.onnx_operators import RECORDS

ROOT = Path(hwflow.__file__).parent
NAMES = {schema.name for schema in onnx.defs.get_all_schemas_with_history()} | {record.name for record in RECORDS}


def named(source: str) -> set[str]:
    """Operators that a module names: strings that are a name and nothing else, but for parts of messages."""
    tree = ast.parse(source)
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in parts)
    return {node.value for node in constants if isinstance(node.value, str) and node.value in NAMES}


def test_an_operator_is_named_in_one_file() -> None:
    files = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for name in named(path.read_text(encoding="utf-8")):
            files[name].append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in files.items() if len(where) > 1} == {}
    assert {record.name for record in RECORDS} <= files.keys()


def test_names_are_seen_wherever_they_stand() -> None:
    source = 'X = {"Conv": 1}\nif op == "Relu" or op in ("Add",): f(f"{op}MatMul", "no Gemm here")\n"""Tanh."""'
    assert named(source) == {"Conv", "Relu", "Add"}
