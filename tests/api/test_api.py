"""The Python API of the package: the same verbs as the command line."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import hwflow
from tests.models import Builder

MODEL = Path(__file__).parents[2] / "examples" / "digits" / "model.onnx"


@pytest.mark.parametrize("name", hwflow.__all__)
def test_every_public_name_is_documented(name):
    assert inspect.getdoc(getattr(hwflow, name))


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="module 'hwflow' has no attribute 'synthesise'"):
        _ = hwflow.synthesise


def test_the_verbs_work_together(tmp_path):
    assert hwflow.check(MODEL) == []
    model = hwflow.load(MODEL)
    assert (model.resolved.name, model.resolved.inputs, model.resolved.outputs) == ("digits", ("image",), ("logits",))
    design = hwflow.compile(model, "ulx3s_85f")
    report = design.write(tmp_path / "out")
    # 64 pixels x 9 taps x 8 + 16 x 9 x 8 x 16 + 64 x 10
    assert report["model"]["macs"] == 64 * 9 * 8 + 16 * 9 * 8 * 16 + 64 * 10 == 23_680
    simulation = hwflow.simulate(tmp_path / "out", simulator="icarus", frames=2)
    assert simulation.ok and simulation.result.frames == 2
    comparison = hwflow.compare(model, frames=3)
    assert comparison.unexplained == 0


def test_a_lower_rate_costs_less():
    model = hwflow.load(MODEL)
    fast = hwflow.compile(model, "ulx3s_85f").schedule
    slow = hwflow.compile(model, "ulx3s_85f", fps=10_000).schedule
    # 125 MHz / 10,000 frames per second
    assert fast.initiation_interval < slow.initiation_interval <= 12_500
    assert slow.resources.dsp < fast.resources.dsp
    assert slow.resources.lut < fast.resources.lut


def test_what_if_the_part_had_more(tmp_path):
    """A budget beyond the part is refused, or, where it is said to be for that, makes Verilog and nothing more."""
    budget = {"dsp": 200}
    with pytest.raises(hwflow.HwflowError) as refused:
        hwflow.compile(MODEL, "ulx3s_85f", budget=budget)
    design = hwflow.compile(MODEL, "ulx3s_85f", fps=1_000, budget=budget, what_if=True)
    assert design.beyond == refused.value.findings and len(design.beyond) == 1
    with pytest.raises(hwflow.HwflowError) as unwritten:
        design.write(tmp_path / "out", until="netlist")
    assert unwritten.value.findings == design.beyond
    assert not (tmp_path / "out").exists()


def test_a_model_without_work_is_refused(tmp_path):
    b = Builder()
    x = b.input("x", ["N", 2, 3], "int8")
    b.output(b.node("Flatten", x, name="flat"))
    path = b.save(tmp_path)
    expected = [
        "error: model 'model': at least one operator must be left for hardware, not none: outputs are inputs in "
        "another shape [hardware-operator]\n  remedy: there is nothing to compile"
    ]
    assert [str(f) for f in hwflow.check(path)] == [f"unsupported{expected[0].removeprefix('error')}"]
    with pytest.raises(hwflow.HwflowError) as refused:
        hwflow.compile(path, "ulx3s_85f")
    assert [str(f) for f in refused.value.findings] == expected
