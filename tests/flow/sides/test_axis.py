"""`tlast` in the wrong place at the whole design's input: `error` rises and stays, the next good frame is right."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hwflow import load
from hwflow.host.boundary_models import port_inputs
from hwflow.host.inputs import choose_inputs
from hwflow.toolchain.icarus import ICARUS
from hwflow.verify import golden
from sim.cocotb_run import CocotbJob, run_job
from tests.flow.conftest import DIGITS

BEATS, OUTPUTS = 64, 10
STALLS = {"early": (0.0, 0.3), "missing": (0.3,), "first": (0.0,)}


@pytest.fixture(scope="module")
def model():
    return load(DIGITS)


def logits(model, frames: np.ndarray) -> list[list[int]]:
    """Golden outputs of integer images, a list for each frame; one channel, so beats come in the tensor's order."""
    (port,) = model.quantized.inputs
    return golden.evaluate(model.quantized, {port.name: frames})["dense_quantized"].astype(int).tolist()


@pytest.fixture(scope="module")
def ran(model, digits, tmp_path_factory):
    """(expected frames, outcome) by name of scenario; all in one run of the simulator."""
    images = port_inputs(model, choose_inputs(model, DIGITS, None, 3, np.random.default_rng(0)).arrays)["image"]
    pixels = images.reshape(3, BEATS).tolist()
    junk = [255 - p for p in pixels[0][:10]]

    def frame(values: list[int], lasts: tuple[int, ...]) -> list[tuple[int, bool]]:
        return [(v, i in lasts) for i, v in enumerate(values)]

    good = [frame(p, (BEATS - 1,)) for p in pixels]
    cut = pixels[1][:20] + [0] * 44  # a frame that ends early goes on with zeros
    whole = logits(model, images)
    ended = logits(model, np.array(cut).reshape(1, 1, 8, 8))[0]
    early = good[0] + frame(pixels[1][:20], (19,)) + good[2]
    missing = good[0] + frame(pixels[1], ()) + frame(junk, (9,)) + good[2]
    first = frame([1], (0,)) + good[0]  # the very first beat is a last one
    scenarios = {
        "early": (early, [whole[0], ended, whole[2]], 83),
        "missing": (missing, [whole[0], whole[1], whole[2]], 127),
        "first": (first, [logits(model, np.array([1] + 63 * [0]).reshape(1, 1, 8, 8))[0], whole[0]], 0),
    }
    plan, expected = [], {}
    for name, (beats, frames, bad) in scenarios.items():
        for stall in STALLS[name]:
            plan.append({"beats": beats, "expected": OUTPUTS * len(frames), "bad": bad, "gap": stall, "stall": stall})
            expected[name, stall] = frames
    work = tmp_path_factory.mktemp("axis")
    job = CocotbJob(
        "icarus", ICARUS.find().command, [digits / "design.v"], "hwflow_top", "tests.flow.sides.axis_bench", digits,
        work,
        {"scenarios": plan, "result": str(work / "result.json")},
    )
    run_job(job, work / "result.json")
    outcomes = json.loads((work / "result.json").read_text())
    return {key: (frames, outcome) for (key, frames), outcome in zip(expected.items(), outcomes, strict=True)}


@pytest.mark.parametrize(("name", "stall"), [(name, stall) for name, stalls in STALLS.items() for stall in stalls])
def test_a_wrong_last_is_reported_and_survived(ran, name, stall):
    frames, outcome = ran[name, stall]
    assert not outcome["error_before"]
    assert outcome["error_after"]
    assert [last for _, last in outcome["beats"]] == len(frames) * ([False] * (OUTPUTS - 1) + [True])
    values = [value for value, _ in outcome["beats"]]
    assert [values[i : i + OUTPUTS] for i in range(0, len(values), OUTPUTS)] == frames
