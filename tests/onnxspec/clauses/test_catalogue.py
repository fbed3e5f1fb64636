"""The rules against the catalogue: every clause that one model file decides is a rule, and has twins.

catalogue.csv lists the clause ids and levels of the ONNX IR specification (onnx 1.23.2: IR.md and the comments of
onnx.proto) that can be decided from a model, its external data and the operator schemas.
"""

from __future__ import annotations

import csv
import importlib
from collections import Counter
from pathlib import Path

from hwflow.onnxspec.clauses import RULES
from hwflow.onnxspec.clauses.ml import operator_rules

HERE = Path(__file__).parent
OWN = {rule.id for rule in RULES if rule.level == "own"}


def catalogue() -> dict[str, str]:
    with (HERE / "catalogue.csv").open(newline="") as file:
        return {row["clause"]: row["level"] for row in csv.DictReader(file)}


def test_every_clause_is_a_rule_of_its_level() -> None:
    assert {rule.id: rule.level for rule in RULES if rule.id not in OWN} == catalogue()
    assert len(catalogue()) == 113


def test_no_clause_is_two_rules() -> None:
    assert [id for id, count in Counter(rule.id for rule in RULES if rule.id not in OWN).items() if count > 1] == []


def test_every_rule_says_what_to_do() -> None:
    assert all(rule.remedy for rule in RULES)


def test_every_clause_has_twins() -> None:
    tested = set()
    for path in HERE.rglob("test_*.py"):
        name = ".".join(path.relative_to(HERE).with_suffix("").parts)
        if path.stem != "test_catalogue":
            module = importlib.import_module(f"tests.onnxspec.clauses.{name}")
            tested.update(twin.clause for twin in getattr(module, "TWINS", ()))
    of_operators = {rule.id for rule in (*operator_rules.RULES, *operator_rules.LATE_RULES)}
    assert set(catalogue()) - tested == of_operators - tested == set()
