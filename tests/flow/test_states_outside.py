"""The state of many channels in a board's SDRAM where block RAM is too small: the same integers as onnxruntime's, no
later than predicted, beside the model of the memory that checks its timing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import compile
from hwflow.cli import main
from hwflow.cores.external.memory_delay import MemoryDelayAttributes
from hwflow.errors import ModelRefused
from hwflow.frontend.states.ties import States
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.loaded_model import load
from hwflow.verify import golden
from tests.flow.test_state import one_by_one
from tests.models import Builder

CHANNELS, SIZE = 48, 256
FRAMES = 3 * CHANNELS  # each channel's state goes round twice


def smoothed(size: int = SIZE) -> Builder:
    """h' = tanh(x + h / 2), y = h': a state that decides all that follows."""
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", size]), 0.0625, 0, "int8")
    h = b.requantize(b.input("h", ["N", size]), 0.0078125, 0, "int8")
    half = b.node("Mul", h, b.constant(np.float32(0.5)))
    left = b.requantize(b.node("Tanh", b.node("Add", x, half)), 0.0078125, 0, "int8")
    b.output(b.node("Identity", left, name="h_next"), b.node("Identity", left, name="y"))
    return b


def synthesized(folder: Path, first: np.ndarray | None, *options: str) -> Path:
    path = smoothed().save(folder)
    tie = "h_next=h"
    if first is not None:
        np.savez(folder / "first.npz", h=first)
        tie = f"h_next=h:{folder / 'first.npz'}"
    arguments = ["synth", str(path), "--board", "ulx3s_85f", "--clock", "100", "--budget", "bram=5", *options]
    arguments += ["--state", tie, "--channels", str(CHANNELS), "--until", "verilog"]
    assert main([*arguments, "-o", str(folder / "out")]) == 0
    return folder / "out"


FIRST = np.linspace(-0.9, 0.9, SIZE, dtype=np.float32)[np.newaxis]


@pytest.fixture(scope="module", params=["zeros", "numbers"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    first = np.zeros_like(FIRST) if request.param == "zeros" else FIRST
    out = synthesized(tmp_path_factory.mktemp("states"), None if request.param == "zeros" else first)
    return out, first


@pytest.mark.parametrize("stall", ["0", "0.4"])
def test_simulated(made: tuple[Path, np.ndarray], stall: str, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = made
    assert main(["sim", str(out), "--frames", str(FRAMES), "--stall", stall, "--seed", "1", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["mismatches"] == 0


def test_golden_model(made: tuple[Path, np.ndarray]) -> None:
    """What hardware is compared with is what onnxruntime makes of each channel."""
    out, first = made
    frames = np.random.default_rng(3).integers(-40, 41, (FRAMES, SIZE)).astype(np.float32) / 16
    tie = "h_next=h" if not first.any() else f"h_next=h:{out.parent / 'first.npz'}"
    model = load(out.parent / "model.onnx", states=States((tie,), CHANNELS))
    arrays = {"x": frames}
    found = model_outputs(model, golden.evaluate(model.quantized, port_inputs(model, arrays)), arrays)["y"]
    np.testing.assert_array_equal(found, one_by_one(smoothed().build(), frames, first[0], CHANNELS))


def test_layer_by_layer(made: tuple[Path, np.ndarray], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", str(made[0]), "--frames", str(CHANNELS + 5), "--layers"]) == 0
    assert "layers equal the golden model" in capsys.readouterr().out


def test_what_is_said_of_it(made: tuple[Path, np.ndarray]) -> None:
    (queue,) = json.loads((made[0] / "manifest.json").read_text())["memory"]["queues"]
    assert queue["words"] == SIZE // 2
    assert queue["slots"] * queue["burst"] > CHANNELS * queue["words"]
    report = json.loads((made[0] / "report.json").read_text())
    assert report["timing"]["circuit"]["frames"] == CHANNELS
    assert not report["timing"]["exact"]
    assert report["resources"]["bram"]["predicted"] <= 5


def test_only_where_it_must(tmp_path: Path) -> None:
    model = load(smoothed().save(tmp_path), states=States(("h_next=h",), CHANNELS))
    with pytest.raises(ModelRefused, match="bram must be at most 5"):
        compile(model, "ulx3s_85f", budget={"bram": 5}, memory="none")
    roomy = compile(model, "ulx3s_85f")
    assert roomy.schedule.run.exact
    assert not any(isinstance(node.attributes, MemoryDelayAttributes) for node in roomy.schedule.graph.nodes)


def coupled(size: int, other: int) -> Builder:
    """Two states of different types, each of which decides the other."""
    rng = np.random.default_rng(size)
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", size]), 0.0625, 0, "int8")
    h = b.requantize(b.input("h", ["N", size]), 0.0078125, 0, "int8")
    c = b.requantize(b.input("c", ["N", other]), 2.0**-12, 0, "int16")
    there = b.node("Gemm", h, b.weights(rng.integers(-50, 51, (other, size)), 0.0078125, 0), transB=1)
    kept = b.node("Mul", c, b.constant(np.float32(0.75)))
    c_next = b.requantize(b.node("Add", b.requantize(there, 2.0**-10, 0, "int16"), kept), 2.0**-12, 0, "int16")
    back = b.node("Gemm", c_next, b.weights(rng.integers(-50, 51, (size, other)), 0.0078125, 0), transB=1)
    left = b.requantize(b.node("Tanh", b.node("Add", x, back)), 0.0078125, 0, "int8")
    b.output(*(b.node("Identity", value, name=name) for name, value in (("h_next", left), ("c_next", c_next))))
    b.output(b.node("Identity", left, name="y"))
    return b


def test_two_states_whose_bursts_do_not_fill_frames(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Frames of 51 and 33 words; hardware is no later than predicted for as many frames as channels, and more."""
    path, out = coupled(101, 33).save(tmp_path), tmp_path / "out"
    arguments = ["--board", "ulx3s_85f", "--clock", "100", "--budget", "bram=10", "--channels", "200"]
    arguments += ["--state", "h_next=h", "--state", "c_next=c", "--until", "verilog"]
    assert main(["synth", str(path), *arguments, "-o", str(out)]) == 0
    queues = json.loads((out / "manifest.json").read_text())["memory"]["queues"]
    assert [queue["words"] for queue in queues] == [51, 33]
    for stall in ("0", "0.4"):
        capsys.readouterr()
        assert main(["sim", str(out), "--frames", "400", "--stall", stall, "--seed", "2", "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["mismatches"] == 0


def test_elements_of_several_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of 32 bits, where the memory's words have 16."""
    b = Builder(21, 10)
    total = b.node("Add", b.input("x", ["N", 33], "int32"), b.input("h", ["N", 33], "int32"), name="h_next")
    b.output(total, b.node("Identity", total, name="y"))
    path, out = b.save(tmp_path), tmp_path / "out"
    arguments = ["--board", "ulx3s_85f", "--clock", "100", "--budget", "bram=6", "--channels", "100"]
    assert main(["synth", str(path), *arguments, "--state", "h_next=h", "--until", "verilog", "-o", str(out)]) == 0
    (queue,) = json.loads((out / "manifest.json").read_text())["memory"]["queues"]
    assert queue["words"] == 2 * 33
    for stall in ("0", "0.4"):
        capsys.readouterr()
        assert main(["sim", str(out), "--frames", "330", "--stall", stall, "--seed", "2", "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["mismatches"] == 0
