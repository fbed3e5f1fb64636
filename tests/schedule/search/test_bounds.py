"""What a model needs at the least: never more than designs take, and enough to refuse large models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hwflow.api.compiler import compile as compile_model
from hwflow.boards import find_board
from hwflow.boards.board import Part
from hwflow.errors import ModelRefused
from hwflow.loaded_model import load
from hwflow.schedule import schedule as scheduling
from hwflow.schedule.search import bounds as bounds_module
from hwflow.schedule.search.bounds import Bounds, weight_bits
from hwflow.schedule.search.folding_search import Budget, FoldingSearch
from tests.attributes import attributes_of
from tests.models import Builder
from tests.schedule.graphs import dataflow, random_graph

PARTS = [find_board(name).part for name in ("ulx3s_85f", "icebreaker")]


def verdicts(part: Part, memory: bool) -> list[tuple[bool, bool]]:
    """(refused by the bounds, found by the search) with budgets around what random graphs need at random intervals;
    short of memory, or of what makes products."""
    found = []
    for seed in (1, 3, 4):
        rng = np.random.default_rng(seed)
        graph = dataflow(random_graph(seed))
        bounds = Bounds(graph, part)
        search = FoldingSearch(graph, part, Budget(1 << 20, 1 << 20, 1 << 10, 1 << 10))
        assert bounds.intervals == search.intervals
        for _ in range(8):
            interval = int(rng.choice([search.intervals[-1], rng.choice(search.intervals)]))
            need = search.total(search.choose(interval) or {})
            share = float(rng.choice([0.02, 0.1, 0.3, 0.6, 0.9, 1.1]))
            lut, dsp = int(need.lut * share), int(need.dsp * rng.choice([0, 0.5, 1]))
            if memory:
                budget = Budget(lut, int(need.ff * share), 1 << 10, int(rng.integers(0, 3)))
            else:
                budget = Budget(lut, 1 << 20, dsp, 1 << 10)
            fits = search.within(budget).choose(interval) is not None
            least = bounds.least_interval(budget)
            refused = bounds.missing_luts(budget, interval) > 0
            assert refused == (least is None or least > interval)
            found.append((refused, fits))
    return found


@pytest.mark.parametrize("memory", [True, False], ids=["memory", "multipliers"])
@pytest.mark.parametrize("part", PARTS, ids=[part.family for part in PARTS])
def test_nothing_that_fits_is_refused(part: Part, memory: bool) -> None:
    """Against the search: where the bound says no it finds nothing."""
    found = verdicts(part, memory)
    assert (True, True) not in found
    assert {(True, False), (False, True)} <= set(found)


def test_a_bound_that_counts_too_much_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Budgets counted by half."""
    worth = bounds_module.worth
    monkeypatch.setattr(bounds_module, "worth", lambda budget, prices: worth(budget, prices) // 2)
    assert (True, True) in verdicts(PARTS[0], memory=False)


def large_model(folder: Path) -> Path:
    """Two layers of 8 Mbit and 4 Mbit of weights."""
    rng = np.random.default_rng(1)
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 1024]), 0.1, 0, "int8")
    for name, width in (("first", 1024), ("second", 512)):
        fan = 1024
        weights = b.weights(rng.integers(-128, 128, (fan, width)), 0.001)
        d = b.requantize(b.node("MatMul", d, weights, name=name), 0.1, 0, "int8")
    b.output(d)
    return b.save(folder)


def test_a_model_far_beyond_is_refused_before_any_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def searched(*arguments: object) -> None:
        raise AssertionError("nothing is to be searched for")

    monkeypatch.setattr(scheduling, "FoldingSearch", searched)
    with pytest.raises(ModelRefused) as refused:
        compile_model(large_model(tmp_path), "ulx3s_85f", memory="none")
    (finding,) = refused.value.findings
    assert finding.rule == "device-budget"
    assert "not 12,582,912 (most are in 'first_mvu' 8,388,608, 'second_mvu' 4,194,304" in finding.message
    assert finding.remedy.startswith("no board of hwflow holds it (de10_nano has the most block RAM)")
    named = re.search(r"about (.*) should hold it", finding.remedy)
    assert named is not None
    budget = Budget(**{name: int(count) for name, count in (part.split("=") for part in named[1].split(", "))})
    graph = dataflow(load(tmp_path / "model.onnx").quantized)
    search = FoldingSearch(graph, PARTS[0], budget)
    assert search.choose(search.intervals[-1]) is not None
    with pytest.raises(AssertionError, match="nothing is to be searched for"):  # with that much memory it is tried
        compile_model(tmp_path / "model.onnx", "ulx3s_85f", budget={"bram": 900}, what_if=True, memory="none")


def wide_model(folder: Path) -> Path:
    """Two convolutions of few weights on images of 4,000 pixels by 4, with 64 channels."""
    rng = np.random.default_rng(1)
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 64, 4, 4000]), 0.1, 0, "int8")
    for name in ("first", "second"):
        weights = b.weights(rng.integers(-128, 128, (64, 64, 3, 3)), 0.001)
        d = b.requantize(b.node("Conv", d, weights, name=name, pads=[1, 1, 1, 1]), 0.1, 0, "int8")
    b.output(d)
    return b.save(folder)


@pytest.mark.parametrize(
    "options, rule, message, remedy",
    [
        # a line buffer of at least 3 rows of 4,000 pixels of 512 bits, 6,144,000 bits, and some for what is around it
        (
            {"memory": "none"}, "device-budget",
            r"its weights, line buffers and registers .* 'second_window' 6,\d{3},", "smaller images",
        ),
        (
            {"fps": 120, "budget": {"bram": 5000}, "what_if": True}, "reachable-rate",
            # 2 * 64 * 64 * 9 * 16,000 products, at 125 MHz; more than fit without those of padding, too
            r"--fps 120 not met: at most .* frames/s: 1,179,648,000 products per frame "
            r"\(most are in 'first_mvu' 589,824,000, .* are 1,133 per cycle; "
            r"look-up tables must be at most 81840, not at least \d+, beside all 156 mult", "fewer frames",
        ),
    ],
    ids=["line buffers", "multipliers"],
)
def test_a_wide_image_is_refused_before_any_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], rule: str, message: str, remedy: str
) -> None:
    def searched(*arguments: object) -> None:
        raise AssertionError("nothing is to be searched for")

    monkeypatch.setattr(scheduling, "FoldingSearch", searched)
    with pytest.raises(ModelRefused) as refused:
        compile_model(wide_model(tmp_path), "ulx3s_85f", **options)
    (finding,) = refused.value.findings
    assert finding.rule == rule
    assert re.search(message, finding.message)
    assert remedy in finding.remedy
    with pytest.raises(AssertionError, match="nothing is to be searched for"):
        compile_model(tmp_path / "model.onnx", "ulx3s_85f", fps=1, budget={"bram": 5000}, what_if=True)


def test_bits_of_weights() -> None:
    node = dataflow(random_graph(3)).nodes[0]
    node.attributes = attributes_of("dense", weights=np.array([[-8, 7, 0], [1, 2, 3]]))
    assert weight_bits(node) == 6 * 4
    node.attributes = attributes_of("dense", weights=np.array([[0, 15], [1, 2]]))
    assert weight_bits(node) == 4 * 4
