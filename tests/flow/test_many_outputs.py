"""Several inputs and outputs; values that are read often, are outputs, inputs or constants: hardware computes what it
must, the host gives the rest, and both together are the model, as onnx's own evaluator has it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnx.reference
import pytest

import hwflow
from hwflow.api.checking import check
from tests.models import Builder

Array = npt.NDArray[np.generic]
SCALE, FRAME = 0.0625, (3, 2, 2)  # scales are powers of two: the evaluator's floats are exact


def convolution(b: Builder, x: str, name: str, seed: int) -> str:
    """Of single pixels; an integer tensor."""
    weights = b.weights(np.random.default_rng(seed).integers(-8, 8, (3, 3, 1, 1)), SCALE)
    return b.quantize(b.node("Conv", x, weights), SCALE, 128, name=name)


def image(b: Builder, name: str) -> str:
    return b.requantize(b.input(name, ["N", *FRAME]), SCALE, 128)


def used_inside() -> Builder:
    """An output that three layers read; the reals it stands for are an output, too."""
    b = Builder(opset=19, ir_version=9)
    start = convolution(b, image(b, "x"), "start", 1)
    real = b.dequantize(start, SCALE, 128, name="real")
    b.output(start, *(convolution(b, real, f"layer{seed}", seed) for seed in (2, 3, 4)), real)
    return b


def two_and_two() -> Builder:
    """Two inputs, a sum of both ways, and one of them."""
    b = Builder(opset=19, ir_version=9)
    ways = [convolution(b, image(b, name), f"way_{name}", seed) for seed, name in enumerate(("x", "other"))]
    total = b.node("Add", *(b.dequantize(way, SCALE, 128) for way in ways))
    b.output(b.quantize(total, 2 * SCALE, 128, name="total"), ways[1])
    return b


def given() -> Builder:
    """One result, and outputs that the host has: another name of the result, inputs, names of these, constants."""
    b = Builder(opset=19, ir_version=9)
    z = b.input("z", ["N", *FRAME], "uint8")
    result = convolution(b, b.dequantize(z, SCALE, 128), "result", 5)
    b.input("other", ["N", 4], "int8")
    b.input("x", ["N", 2])
    b.constant(np.arange(6).reshape(2, 3), name="table")
    b.constant(7.5, name="scalar")
    row = b.constant([[1, -2, 3]], "int8")
    column = b.constant([[4], [5]], "int8")
    b.output(
        b.node("Identity", result, name="again"), result, "x", "z", "other", b.node("Identity", z, name="z_again"),
        "table", "scalar", *(b.dequantize(c, 0.5, 0, "int8", name=n) for n, c in (("row", row), ("column", column))),
    )
    return b


def frames_of(path: Path, count: int) -> dict[str, Array]:
    rng = np.random.default_rng(9)
    arrays: dict[str, Array] = {}
    for info in onnx.load(path).graph.input:
        shape = (count, *(d.dim_value for d in info.type.tensor_type.shape.dim[1:]))
        kind = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        if kind == np.float32:
            arrays[info.name] = (rng.integers(-128, 128, shape) * SCALE).astype(np.float32)
        else:
            bounds = np.iinfo(kind)
            arrays[info.name] = rng.integers(bounds.min, bounds.max + 1, shape).astype(kind)
    return arrays


def frame_by_frame(path: Path, arrays: dict[str, Array]) -> dict[str, Array]:
    """onnx's evaluator on one frame after the other; of a result without frame axis, one copy per frame."""
    evaluator = onnx.reference.ReferenceEvaluator(str(path))
    parts: dict[str, list[Array]] = {name: [] for name in evaluator.output_names}
    for frame in range(len(next(iter(arrays.values())))):
        results = evaluator.run(None, {name: array[frame : frame + 1] for name, array in arrays.items()})
        for name, array in zip(evaluator.output_names, results, strict=True):
            parts[name].append(array[0] if array.shape[:1] == (1,) else np.asarray(array))
    return {name: np.stack(arrays) for name, arrays in parts.items()}


@pytest.mark.parametrize("network, inputs, outputs", [(used_inside, 1, 4), (two_and_two, 2, 2), (given, 1, 1)])
def test_hardware_and_host_are_the_model(network, inputs: int, outputs: int, tmp_path: Path) -> None:
    path, out = network().save(tmp_path), tmp_path / "out"
    arrays = frames_of(path, 3)
    np.savez(tmp_path / "frames.npz", **arrays)
    expected = frame_by_frame(path, arrays)
    design = hwflow.compile(path, "ulx3s_85f")
    graph = design.schedule.graph
    assert (len(graph.inputs), len(graph.outputs)) == (inputs, outputs)
    design.write(out)
    for stall in (0.0, 0.5):
        simulation = hwflow.simulate(
            out, inputs=tmp_path / "frames.npz", simulator="icarus", stall=stall, seed=2
        )
        assert simulation.findings == () and simulation.outputs is not None
        assert simulation.outputs.keys() == expected.keys()
        for name, array in expected.items():
            np.testing.assert_array_equal(simulation.outputs[name], array, err_msg=name)
            assert simulation.outputs[name].dtype == array.dtype
    assert all(list(simulation.output_lines()))
    comparison = hwflow.compare(path, inputs=tmp_path / "frames.npz")
    assert (comparison.mismatches, comparison.unexplained, comparison.drift.failed) == (0, 0, "")
    assert comparison.drift.differing == 0 and not any(comparison.drift.outputs.values())


def test_the_suffix_holds_what_the_host_gives(tmp_path: Path) -> None:
    path, out = given().save(tmp_path), tmp_path / "out"
    hwflow.compile(path, "ulx3s_85f").write(out)
    suffix = onnx.load(out / "suffix.onnx")
    onnx.checker.check_model(suffix, full_check=True)
    assert [f for f in check(out / "suffix.onnx") if f.severity == "error"] == []
    assert [o.name for o in suffix.graph.output] == ["again", "z_again", "table", "scalar", "row", "column"]
    arrays = frames_of(path, 1)
    result = np.zeros((1, *FRAME), np.uint8)
    feeds = {"result": result, "z": arrays["z"]}
    made = dict(zip(
        ["again", "z_again", "table", "scalar", "row", "column"],
        onnx.reference.ReferenceEvaluator(suffix).run(None, {i.name: feeds[i.name] for i in suffix.graph.input}),
        strict=True,
    ))
    np.testing.assert_array_equal(made["again"], result)
    np.testing.assert_array_equal(made["z_again"], arrays["z"])
    np.testing.assert_array_equal(made["row"], [[0.5, -1.0, 1.5]])
    assert made["scalar"] == 7.5 and made["table"].shape == (2, 3)


def test_an_input_alone_passes_through_no_hardware(tmp_path: Path) -> None:
    b = Builder(opset=19, ir_version=9)
    z = b.input("z", ["N", 4], "uint8")
    b.output(b.node("Identity", z, name="y"))
    with pytest.raises(hwflow.HwflowError, match="at least one operator must be left for hardware, not none"):
        hwflow.compile(b.save(tmp_path), "ulx3s_85f")
