"""`hwflow ops` and docs/operators.md: complete, and one table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from boards import all_boards
from hwflow.api.operator_list import markdown, operators
from hwflow.cli import main
from hwflow.cores.costs import FAMILIES
from hwflow.cores.registry import OPERATORS
from hwflow.operators.onnx_operators import HANDLERS, REASONS, RECORDS

DOCS = Path(__file__).resolve().parents[2] / "docs" / "operators.md"
NAMES = {name for _, name in HANDLERS}
DEFINED = {record.name for record in RECORDS if record.defined}
ROWS = sorted(NAMES | DEFINED)


def test_every_handler_has_a_row_and_every_row_a_handler() -> None:
    """Or a definition, whose operators have some."""
    assert {"Attention", "QAttention", "RotaryEmbedding", "LSTM", "Scan", "SequenceMap"} <= DEFINED
    assert [operator.name for operator in operators()] == ROWS
    assert {operator.name for operator in operators() if operator.defined} == DEFINED and not NAMES & DEFINED


def test_only_views_have_no_hardware_of_their_own() -> None:
    """What a DequantizeLinear, an Identity or a Dropout makes is the same integers; what an EyeLike or a Range makes is
    known before."""
    without = {operator.name for operator in operators() if not (operator.becomes or operator.refused)} - DEFINED
    assert without == {"DequantizeLinear", "Dropout", "EyeLike", "Identity", "Range"} & NAMES
    assert [operator.name for operator in operators() if operator.refused] == ["DynamicQuantizeLinear"]


def test_some_rows() -> None:
    rows = {operator.name: operator for operator in operators()}
    assert rows["QuantizeLinear"].dialects == ("ONNX", "com.microsoft")
    assert rows["QLinearAdd"].dialects == ("com.microsoft",)
    assert rows["Quant"].dialects == ("QONNX",)
    assert rows["Conv"].becomes == ("conv2d",)
    assert rows["Add"].becomes == ("elementwise", "scaled_add")
    assert all(name in OPERATORS for operator in operators() for name in operator.becomes)


def test_the_documentation_is_the_same_table() -> None:
    """If not: `hwflow ops --format markdown > docs/operators.md`."""
    assert DOCS.read_text() == "\n".join(markdown()) + "\n"
    table = [line for line in markdown() if line.startswith("| ")]
    assert len(table) == 1 + len(ROWS) + 1 + sum(record.refused is not None for record in RECORDS)


def test_every_board_has_models_for_every_core() -> None:
    """Which is why no operator has a list of devices."""
    assert {board.part.family for board in all_boards()} <= set(FAMILIES)


def test_what_is_refused_has_no_handler() -> None:
    assert not NAMES & set(REASONS)


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["operators"]
    assert [operator["name"] for operator in found] == ROWS
    assert found[0].keys() == {"name", "dialects", "becomes", "refused", "limits", "defined"}
