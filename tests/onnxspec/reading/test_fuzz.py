"""Damaged models: always findings, never a traceback, a crash, a hang or a large allocation (see fuzz.py)."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from hwflow.api.checking import check
from tests.onnxspec.reading.dialect_seeds import dialect_seeds
from tests.onnxspec.reading.fuzz import MUTATORS, case
from tests.onnxspec.reading.fuzz_seeds import seeds

ROOT = Path(__file__).parents[3]
CASES = 1500
DIALECT_CASES = 800


def _outcomes(folder: Path, first: int, count: int, *options: str) -> Counter[str]:
    """How so many cases ended."""
    worker = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.onnxspec.reading.fuzz", str(folder), str(first), str(count),
         *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    at = (folder / "case").read_text()
    assert worker.returncode == 0, f"case {at}: exit code {worker.returncode}\n{worker.stderr[-4000:]}"
    outcomes = Counter(ast.literal_eval(worker.stdout.splitlines()[-1]))
    assert outcomes.total() == count
    return outcomes


@pytest.mark.parametrize("first", range(0, 4 * CASES, CASES))
def test_damaged_models(tmp_path: Path, first: int) -> None:
    outcomes = _outcomes(tmp_path, first, CASES)
    # The damage does neither always nor never matter.
    assert outcomes["error"] > CASES // 4
    assert CASES - outcomes["error"] > CASES // 20


def test_damaged_models_of_the_dialects(tmp_path: Path) -> None:
    outcomes = _outcomes(tmp_path, 0, DIALECT_CASES, "dialects")
    assert min(outcomes["error"], outcomes["unsupported"], outcomes["none"]) > DIALECT_CASES // 10


def test_the_seeds_are_legal(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    for model in seeds(tmp_path):
        path.write_bytes(model.SerializeToString())
        assert [str(f) for f in check(path) if f.severity == "error"] == []


def test_cases_differ_and_repeat(tmp_path: Path) -> None:
    models = seeds(tmp_path)
    first = [case(number, models) for number in range(10 * len(MUTATORS))]
    assert first == [case(number, models) for number in range(10 * len(MUTATORS))]
    assert len(set(first)) > 0.9 * len(first)


def test_the_dialects_seeds_compile(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    for model in dialect_seeds():
        path.write_bytes(model.SerializeToString())
        assert [str(f) for f in check(path) if f.rule != "old-dialect"] == []
