"""Line buffers whose rows wait in a board's SDRAM where block RAM is too small: the same integers, no later than
predicted, beside the model of the memory that checks its timing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import compile
from hwflow.cli import main
from hwflow.errors import ModelRefused
from tests.models import Builder

BUDGET = "bram=9,lut=8000,ff=8000"


def wide(width: int = 160, channels: int = 32) -> Builder:
    """A depthwise convolution and one with strides over four rows, each of which fills two block RAMs and more."""
    rng = np.random.default_rng(4)
    b = Builder(19, 9)
    x = b.requantize(b.input("x", ["N", channels, 4, width]), 0.05, 128)
    w = b.weights(rng.integers(-60, 61, (channels, 1, 3, 3)), 0.02)
    x = b.requantize(b.node("Conv", x, w, pads=[1, 1, 1, 1], group=channels), 0.05, 128)
    w = b.weights(rng.integers(-60, 61, (4, channels, 3, 3)), 0.002)
    b.output(b.requantize(b.node("Relu", b.node("Conv", x, w, pads=[1, 1, 1, 1], strides=[2, 2])), 0.05))
    return b


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many_cycles")
    path = wide().save(folder)
    arguments = ["--board", "ulx3s_85f", "--clock", "100", "--budget", BUDGET, "--until", "verilog"]
    assert main(["synth", str(path), *arguments, "-o", str(folder / "out")]) == 0
    return folder / "out"


@pytest.mark.parametrize("stall", ["0", "0.4"])
def test_simulated(out: Path, stall: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Layer by layer, too: both runs are of one program."""
    arguments = ["--layers", "--frames", "3", "--stall", stall, "--seed", "1", "--format", "json"]
    assert main(["sim", str(out), *arguments]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["mismatches"] == 0
    assert told["layers"] and told["first_difference"] is None


def test_what_is_said_of_it(out: Path) -> None:
    memory = json.loads((out / "manifest.json").read_text())["memory"]
    assert len(memory["rows"]) == 2
    assert len(memory["queues"]) == 4  # two rows of each
    report = json.loads((out / "report.json").read_text())
    assert not report["timing"]["exact"]
    assert report["resources"]["bram"]["predicted"] <= 9


def test_without_the_memory_it_is_refused(tmp_path: Path) -> None:
    path = wide().save(tmp_path)
    with pytest.raises(ModelRefused, match="bram must be at most 9"):
        compile(path, "ulx3s_85f", budget={"bram": 9, "lut": 8000, "ff": 8000}, memory="none")
    roomy = compile(path, "ulx3s_85f")
    assert roomy.schedule.run.exact
    assert not any(node.op == "side_by_side" for node in roomy.schedule.graph.nodes)


def test_a_refusal_is_of_the_network_as_it_is(tmp_path: Path) -> None:
    path = wide().save(tmp_path)
    with pytest.raises(ModelRefused) as refused:
        compile(path, "ulx3s_85f", clock_mhz=100, budget={"bram": 2, "lut": 8000, "ff": 8000})
    assert "side_by_side" not in str(refused.value)
    assert "conv" in str(refused.value)
