"""A network with a way around that is made smaller and as large again: in the predicted cycles, and with no longer
queue on the short way than it takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hwflow
from hwflow.cores.registry import hardware
from hwflow.schedule.throughput.evaluate import evaluate
from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.schedule.shorter import shorten_deepest

FRAMES = 10
MODES = {
    "nearest": {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    "linear": {"mode": "linear"},
}


def u_net(**attributes: object) -> Builder:
    """Convolution, pool, convolution, Resize, both ways joined, convolution; 6 x 4 pixels."""
    rng = np.random.default_rng(0)
    b = Builder(19, 9)

    def convolution(x: str, inputs: int, outputs: int, scale: float) -> str:
        weights = b.weights(rng.integers(-8, 8, (outputs, inputs, 3, 3)), 0.05)
        sums = b.node("Conv", x, weights, pads=[1] * 4)
        return b.requantize(b.node("Relu", sums), scale)

    way = convolution(b.requantize(b.input("x", ["N", 2, 6, 4]), 0.05, 128), 2, 3, 0.11)
    small = b.node("MaxPool", way, kernel_shape=[2, 2], strides=[2, 2])
    deep = convolution(small, 3, 5, 0.13)
    large = b.requantize(b.node("Resize", deep, "", "", b.constant([1, 5, 6, 4], "int64"), **attributes), 0.13)
    joined = b.requantize(b.node("Concat", large, way, axis=1), 0.13)
    weights = b.weights(rng.integers(-8, 8, (2, 8, 3, 3)), 0.05)
    b.output(b.quantize(b.node("Conv", joined, weights, pads=[1] * 4), 0.4, 99))
    return b


@pytest.mark.parametrize("mode", MODES)
def test_u_net(mode: str, tmp_path: Path) -> None:
    path = u_net(**MODES[mode]).save(tmp_path)
    assert compare(path, frames=4).unexplained == 0
    design = hwflow.compile(path, "ulx3s_12f", budget={"lut": 4000, "dsp": 4})
    planned = design.schedule
    plan = planned.plan
    slowest = max(hardware(node.op).cycles(node, plan[node].folding) for node in plan.graph.nodes)
    assert planned.initiation_interval == slowest
    out = tmp_path / "out"
    design.write(out)
    for stall in (0.0, 0.5) if mode == "linear" else (0.0,):
        simulation = hwflow.simulate(out, simulator="icarus", frames=4, stall=stall, seed=5)
        assert simulation.findings == (), stall
        assert simulation.outputs is not None
        assert all(len(np.unique(values)) > 1 for values in simulation.outputs.values())  # not just saturated
        if not stall:
            assert (simulation.result.initiation_interval, simulation.result.latency) == (slowest, planned.latency)
    shorten_deepest(plan, "fork", "fifo")
    (ends,) = (stream[:, -1] for stream in evaluate(plan, FRAMES).outputs)
    assert ends[-1] - ends[1] > (FRAMES - 2) * slowest
