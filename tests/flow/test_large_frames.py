"""What frames of very many beats get, in a network small enough to simulate: even schedules with weights outside, and
depthwise convolutions whose line buffer is released pixel by pixel."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import compile
from hwflow.cli import main
from hwflow.cores.external.weight_memory import WeightMemoryAttributes, plan_of
from hwflow.cores.matrix.depthwise import DepthwiseAttributes, released_by_pixel
from hwflow.passes.outside import fetch_weights
from hwflow.schedule import queues
from tests.models import Builder

BOARD = "ulx3s_85f"


def bottleneck(folder: Path, side: int = 8, channels: int = 9, wide: int = 96) -> Path:
    """An inverted bottleneck: 1 x 1, depthwise 3 x 3, 1 x 1, and the sum with what came in."""
    rng = np.random.default_rng(4)
    made = Builder()

    def weights(*shape: int) -> str:
        return made.weights(rng.integers(-127, 128, shape), 0.01)

    source = made.requantize(made.input("x", ["N", channels, side, side]), 0.03, 128)
    value = made.node("Relu", made.node("Conv", source, weights(wide, channels, 1, 1)))
    value = made.requantize(value, 0.02)
    value = made.node("Conv", value, weights(wide, 1, 3, 3), pads=[1, 1, 1, 1], group=wide)
    value = made.requantize(made.node("Relu", value), 0.03)
    value = made.requantize(made.node("Conv", value, weights(channels, wide, 1, 1)), 0.05, 128)
    made.output(made.requantize(made.node("Add", value, source), 0.06, 128))
    return made.save(folder)


@pytest.fixture
def large_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every frame counts as one of many beats."""
    monkeypatch.setattr(queues, "MOST_BEATS", 0)
    monkeypatch.setattr(fetch_weights, "MANY", 0)


@pytest.mark.usefixtures("large_frames")
def test_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With stalls and gaps, no output is later than an even schedule says, and all are right."""
    design = compile(bottleneck(tmp_path), BOARD, memory="all", clock_mhz=100)
    nodes = {node.op: node for node in design.schedule.graph.nodes}
    depthwise, memory = nodes["depthwise"], nodes["weight_memory"]
    assert isinstance(depthwise.attributes, DepthwiseAttributes) and released_by_pixel(depthwise)
    assert design.schedule.plan[depthwise].pixels < 3 * 8
    assert isinstance(memory.attributes, WeightMemoryAttributes)
    assert design.schedule.initiation_interval >= plan_of(memory).cycles
    assert not design.schedule.run.exact
    design.write(tmp_path / "out")
    for stall in ("0", "0.3"):
        arguments = ["--frames", "3", "--stall", stall, "--seed", "2", "--format", "json"]
        assert main(["sim", str(tmp_path / "out"), *arguments]) == 0
        assert json.loads(capsys.readouterr().out)["mismatches"] == 0
