"""A stream that waits for a whole frame, in a board's SDRAM where block RAM is too small: the same integers, no later
than predicted, beside the model of the memory that checks its timing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import compile
from hwflow.cli import main
from hwflow.cores.external.memory_queue import MemoryQueueAttributes
from hwflow.errors import ModelRefused
from tests.models import Builder

BUDGET = "bram=8"


def excited(side: int = 64, channels: int = 8) -> Builder:
    """Pixels that are multiplied by a function of their channel's mean: all wait until the last one has come."""
    rng = np.random.default_rng(2)
    b = Builder(19, 9)
    x = b.requantize(b.input("x", ["N", channels, side, side]), 0.05, 128)
    means = b.requantize(b.node("GlobalAveragePool", x), 0.05, 128)
    weights = b.weights(rng.integers(-60, 61, (channels, channels, 1, 1)), 0.05)
    gates = b.requantize(b.node("Sigmoid", b.node("Conv", means, weights)), 2.0**-8)
    b.output(b.requantize(b.node("Mul", x, gates), 0.05, 128))
    return b


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("waiting")
    path = excited().save(folder)
    arguments = ["--board", "ulx3s_85f", "--clock", "100", "--budget", BUDGET, "--until", "verilog"]
    assert main(["synth", str(path), *arguments, "-o", str(folder / "out")]) == 0
    return folder / "out"


@pytest.mark.parametrize("stall", ["0", "0.4"])
def test_simulated(out: Path, stall: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Layer by layer, too: both runs are of one program."""
    arguments = ["--layers", "--frames", "4", "--stall", stall, "--seed", "1", "--format", "json"]
    assert main(["sim", str(out), *arguments]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["mismatches"] == 0
    assert told["layers"] and told["first_difference"] is None


def test_what_is_said_of_it(out: Path) -> None:
    (queue,) = json.loads((out / "manifest.json").read_text())["memory"]["queues"]
    assert queue["words"] == 64 * 64 * 8 // 2
    assert queue["slots"] * queue["burst"] > queue["words"]  # a frame, at least
    report = json.loads((out / "report.json").read_text())
    assert not report["timing"]["exact"]
    assert report["resources"]["bram"]["predicted"] <= 8


def test_without_the_memory_it_is_refused(tmp_path: Path) -> None:
    path = excited().save(tmp_path)
    with pytest.raises(ModelRefused, match="bram must be at most 8"):
        compile(path, "ulx3s_85f", budget={"bram": 8}, memory="none")
    roomy = compile(path, "ulx3s_85f")
    assert roomy.schedule.run.exact
    assert not any(isinstance(node.attributes, MemoryQueueAttributes) for node in roomy.schedule.graph.nodes)


def test_beside_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Weights and queues take turns at one memory."""
    path, out = excited(32, 16).save(tmp_path), tmp_path / "out"
    arguments = ["--board", "ulx3s_85f", "--clock", "100", "--budget", "bram=6", "--until", "verilog"]
    assert main(["synth", str(path), *arguments, "--memory", "all", "-o", str(out)]) == 0
    memory = json.loads((out / "manifest.json").read_text())["memory"]
    assert len(memory["regions"]) == len(memory["groups"]) == len(memory["queues"]) == 1
    assert memory["queues"][0]["page"] >= memory["regions"][0]["page"] + 1
    capsys.readouterr()
    assert main(["sim", str(out), "--frames", "3", "--stall", "0.3", "--seed", "2", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["mismatches"] == 0


def test_within_the_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the single-port RAM of an UP5K, whose block RAM holds less than a frame."""
    path, out = excited(48).save(tmp_path), tmp_path / "out"
    arguments = ["--board", "icebreaker", "--budget", "lut=100%,ff=100%", "--until", "verilog", "-o", str(out)]
    assert main(["synth", str(path), *arguments]) == 0
    memory = json.loads((out / "manifest.json").read_text())["memory"]
    assert (memory["kind"], len(memory["queues"]), len(memory["regions"])) == ("spram", 1, 0)
    for stall in ("0", "0.4"):
        capsys.readouterr()
        assert main(["sim", str(out), "--frames", "3", "--stall", stall, "--seed", "1", "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["mismatches"] == 0
