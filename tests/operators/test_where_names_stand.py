"""An operator's name stands in one file of hwflow: its record, or the constant that the record takes. What an operator
does is a fact of its record: only structure is asked for by name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import onnx.defs

import hwflow
from hwflow.onnxspec.graphs import operator_names
from hwflow.operators.onnx_operators import RECORDS

MODULE = operator_names.__name__.rpartition(".")[2]
CONSTANTS = frozenset(name for name in vars(operator_names) if name.isupper())

# Modules that ask for an operator by its constant, and why no fact of its record would say more. Everything else asks
# the record what the operator does.
ASKED_BY_NAME = {
    "frontend/unquantized.py": "control flow: an If whose branch is known takes no part",
    "onnxspec/clauses/graphs/nodes.py": "control flow: what each operator passes to its body",
    "onnxspec/clauses/graphs/operators.py": "constants: a Constant has one of several attributes",
    "onnxspec/clauses/values/stated_types.py": "sequences",
    "onnxspec/graphs/sequences.py": "sequences",
    "onnxspec/reading/map_ends.py": "maps: their three operators are what reads and makes them",
    "onnxspec/reading/skeleton.py": "constants",
    "onnxspec/reference/evaluation.py": "constants",
    "onnxspec/resolving/constant_folding.py": "constants: Shape, Size and Identity are known without an evaluator",
    "onnxspec/resolving/constant_loops.py": "control flow",
    "onnxspec/resolving/control_flow.py": "control flow",
    "onnxspec/resolving/resolver.py": "control flow, and constants that are known without an evaluator",
    "onnxspec/resolving/static_sequences.py": "sequences",
    "onnxspec/shapes/inference.py": "constants",
    "onnxspec/shapes/node_inference.py": "sequences and constants",
    "quantization/preparation.py": "forms that exporters write, and what onnxruntime's quantizer does to a Gemm",
}

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


def asked(source: str) -> set[str]:
    """Constants of operators' names that a module compares with, or has as members of a set or keys of a dictionary."""
    tree = ast.parse(source)
    imported = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
        if node.module == operator_names.__name__ or alias.name == MODULE
    }
    found: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare | ast.Set | ast.MatchValue):
            found.append(node)
        elif isinstance(node, ast.Dict):
            found += filter(None, node.keys)
    result = set()
    for part in (part for each in found for part in ast.walk(each)):
        if isinstance(part, ast.Name):
            result.add(imported.get(part.id, ""))
        elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            result.add(part.attr if imported.get(part.value.id) == MODULE else "")
    return result & CONSTANTS


def test_only_structure_is_asked_for_by_name() -> None:
    sources = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
    assert {name for name, source in sources.items() if asked(source)} == ASKED_BY_NAME.keys()


def test_questions_by_name_are_seen() -> None:
    head = "from hwflow.onnxspec.graphs import operator_names as n\n"
    head += "from hwflow.onnxspec.graphs.operator_names import ADD, IF as CHOICE, MUL, POW\n"
    assert asked(head + "node(ADD, x); y = n.LOOP; z = {x: MUL}; w = (POW, x)") == set()
    body = "if op == n.LOOP or op in (ADD,): pass\nX = {CHOICE: 1}, {MUL}\nmatch op:\n    case n.SCAN: pass"
    assert asked(head + body) == {"LOOP", "ADD", "IF", "MUL", "SCAN"}


def test_names_are_seen_wherever_they_stand() -> None:
    source = 'X = {"Conv": 1}\nif op == "Relu" or op in ("Add",): f(f"{op}MatMul", "no Gemm here")\n"""Tanh."""'
    assert named(source) == {"Conv", "Relu", "Add"}
