"""Several frames in a loop at once: the same integers, in the predicted cycles, of which each frame takes fewer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import compile
from hwflow.cli import main
from hwflow.errors import UsageError
from hwflow.frontend.states.ties import States
from hwflow.host.boundary_models import port_inputs
from hwflow.loaded_model import Model, load
from hwflow.verify import golden
from hwflow.verify.compiled_folder import compiled_model
from tests.frontend.test_control_flow import elman, lstm
from tests.models import Builder
from tests.simulated_model import check_simulated


def last_state(steps: int = 5) -> Builder:
    """An LSTM's last state, of frames that a variable counts."""
    b, rng = Builder(21, 10), np.random.default_rng(2)
    x = b.requantize(b.input("x", ["N", steps, 3]), 0.25, 3, "int8")
    given = b.node("MatMul", x, b.weights(rng.integers(-9, 9, (3, 8)), 0.125))
    recurrent = b.weights(rng.integers(-9, 9, (2, 8)), 0.0625)
    b.output(lstm(b, given, recurrent, 2, ["N"]))
    return b


def evaluated(model: Model, frames: np.ndarray) -> list[np.ndarray]:
    """The golden outputs of the model's own frames."""
    wholes = frames.reshape(-1, *model.resolved.values["x"].shape[1:])
    found = golden.evaluate(model.quantized, port_inputs(model, {"x": wholes}))
    return [values.reshape(len(frames), -1) for values in found.values()]


@pytest.mark.parametrize("make", [lambda: elman(6), last_state])
def test_frames_are_what_they_are_alone(make, tmp_path: Path) -> None:
    path = make().save(tmp_path)
    alone, together = load(path), load(path, interleave=3)
    frames = np.random.default_rng(0).normal(0, 8, (12, *alone.resolved.values["x"].shape[1:])).astype(np.float32)
    for one, other in zip(evaluated(alone, frames), evaluated(together, frames), strict=True):
        np.testing.assert_array_equal(one, other)
        assert len(np.unique(one)) > 3


def test_hardware_has_more_frames_a_second(tmp_path: Path) -> None:
    """A loop's circuit limits one frame; of as many as pay, each takes half of the time at most."""
    path = elman(5).save(tmp_path)
    alone = compile(path, "ulx3s_85f", loops="once")
    design = compile(path, "ulx3s_85f", loops="once", interleave="auto")
    count = design.model.interleave
    assert alone.schedule.limited_by_circuit and count > 1
    assert design.frames_per_second > 2 * alone.frames_per_second
    assert design.frames_per_second == pytest.approx(125e6 * count / design.schedule.initiation_interval)
    check_simulated(design, frames=2, stalls=(0.0, 0.5))


def test_a_rate_takes_as_many_frames_as_it_needs(tmp_path: Path) -> None:
    path = elman(5).save(tmp_path)
    most = compile(path, "ulx3s_85f", loops="once").frames_per_second
    for rate, least in ((0.5 * most, 1), (1.5 * most, 2)):
        design = compile(path, "ulx3s_85f", loops="once", interleave="auto", fps=rate)
        assert design.model.interleave == least and design.frames_per_second >= rate


def test_the_folder_knows_it(tmp_path: Path) -> None:
    path, out = last_state().save(tmp_path), tmp_path / "out"
    options = ["--board", "ulx3s_85f", "--fps", "1000", "--interleave", "4", "--until", "verilog"]
    assert main(["synth", str(path), *options, "-o", str(out)]) == 0
    timing = json.loads((out / "report.json").read_text())["timing"]
    assert timing["interleave"] == 4
    assert timing["frames_per_second"] == pytest.approx(4 * 125e6 / timing["initiation_interval"])
    assert timing["frames_per_second"] >= 1000
    model = compiled_model(out)
    assert (model.interleave, model.resolved.values["x"].shape) == (4, (1, 4, 5, 3))


def test_what_cannot_be_interleaved(tmp_path: Path) -> None:
    b = Builder(21, 10)
    b.output(b.requantize(b.input("x", ["N", "T", 3]), 0.25, 3, "int8"))
    with pytest.raises(UsageError, match="one dimension variable in its inputs, which counts frames, not 'N', 'T'"):
        load(b.save(tmp_path), interleave=2)
    b = Builder(21, 10)
    b.output(b.requantize(b.input("x", [1, 3]), 0.25, 3, "int8"))
    with pytest.raises(UsageError, match="which counts frames, not none"):
        load(b.save(tmp_path), interleave=2)
    b = Builder(21, 10)
    new = b.requantize(b.node("Add", b.input("x", ["N", 3]), b.input("h", ["N", 3])), 0.25, 3, "int8")
    b.output(new, b.node("Identity", new))
    with pytest.raises(UsageError, match="frames of a model with state must not be interleaved"):
        load(b.save(tmp_path), interleave=2, states=States((f"{new}=h",)))


@pytest.mark.parametrize("text", ["0", "many", "257", "-1", "1.5"])
def test_a_number_that_is_none(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["synth", str(tmp_path / "m.onnx"), "--board", "ulx3s_85f", f"--interleave={text}"]
    assert main(command) == 2
    assert f"must be auto, or a number of frames from 1 to 256, not '{text}'" in capsys.readouterr().err
