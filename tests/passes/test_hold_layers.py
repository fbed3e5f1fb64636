"""Layers with room for other weights: what they hold, and why some do not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import dataflow
from hwflow.errors import ModelRefused
from hwflow.ir.graph import Graph
from hwflow.loaded_model import load
from hwflow.passes.hold_layers import HeldLayer, Holding
from hwflow.verify.golden import evaluate
from tests.models import Builder

WEIGHTS = np.array([[3, -7, 2], [1, 5, -4], [-6, 0, 2], [2, 2, 3]])


def dense(folder: Path, weights: np.ndarray, scale: float = 0.23, step: float = 1.9, name: str = "m.onnx") -> Path:
    """uint8 inputs, a product, uint8 results. No sum is half-way between two results."""
    b = Builder()
    x = b.requantize(b.input("x", ("N", 4)), 0.5)
    b.output(b.requantize(b.node("MatMul", x, b.weights(weights, scale), name="dense"), step))
    b.save(folder, name)
    return folder / name


def held(model: Path, holding: Holding) -> Graph:
    return dataflow(load(model).quantized, holding=holding)


def test_what_is_held_and_what_others_make_of_it(tmp_path) -> None:
    """Sums lie in [255 * -8, 255 * 6], [255 * -7, ...]; of twice as much and weights of four bits (-7 to 5)."""
    first = Holding()
    graph = held(dense(tmp_path, WEIGHTS), first)
    ((name, layer),) = first.found.items()
    assert name == "dense"
    assert layer.sums.weight_bits == 4
    assert (layer.sums.sums.lo, layer.sums.sums.hi) == (2 * 255 * -7, 2 * 255 * 7)
    assert HeldLayer.of_table(layer.table()) == layer
    # other weights, another scale: the same types, and right results
    other = dense(tmp_path, WEIGHTS[::-1] - 1, 0.3, name="o.onnx")
    second = Holding(known=first.found)
    changed = held(other, second)
    assert second.found == first.found
    for one, two in zip(graph.nodes, changed.nodes, strict=True):
        assert one.op == two.op and [v.typed.element for v in one.outputs] == [v.typed.element for v in two.outputs]
    x = np.random.default_rng(0).integers(0, 256, (50, 4))
    (y,) = evaluate(changed, {graph.inputs[0].name: x}).values()
    (expected,) = evaluate(load(other).quantized, {graph.inputs[0].name: x}).values()
    assert (y == expected).all()


def joined(folder: Path, scales: tuple[float, float, float], name: str, sign: str = "Add") -> Path:
    """The sum of two inputs of these scales, quantized by the third one."""
    b = Builder()
    operands = [b.requantize(b.input(x, ("N", 3)), scale, 120) for x, scale in zip("ab", scales, strict=False)]
    total = b.requantize(b.node(sign, *operands, name="sum"), scales[2], 100)
    b.output(b.requantize(b.node("MatMul", total, b.weights(WEIGHTS[:3], 0.23), name="dense"), 1.9))
    b.save(folder, name)
    return folder / name


@pytest.mark.parametrize("sign", ["Add", "Sub"])
@pytest.mark.parametrize("loadable", [False, True])
def test_sums_of_other_scales(tmp_path, loadable: bool, sign: str) -> None:
    """The same types at every value, and the right integers for every pair of bytes."""
    first = Holding(loadable=loadable)
    graph = held(joined(tmp_path, (0.0371, 0.0523, 0.0619), "m.onnx", sign), first)
    layer = first.found["sum"]
    assert layer.factors is not None and layer.factors.loadable == loadable and layer.forms[0].shift == 24
    assert HeldLayer.of_table(layer.table()).table() == layer.table()
    a, b = (each.reshape(-1, 1).repeat(3, 1) for each in np.meshgrid(np.arange(256), np.arange(256)))
    for number, scales in enumerate([(0.0412, 0.0311, 0.0555), (0.0911, 0.0134, 0.0789), (0.0371, 0.0523, 0.0701)]):
        other = joined(tmp_path, scales, f"o{number}.onnx", sign)
        second = Holding(known=first.found, loadable=loadable)
        changed = held(other, second)
        assert second.found == first.found
        for one, two in zip(graph.nodes, changed.nodes, strict=True):
            assert one.op == two.op and [v.typed.element for v in one.outputs] == [v.typed.element for v in two.outputs]
        names = [port.name for port in load(other).quantized.inputs]
        inputs = dict(zip(names, (a, b), strict=True))
        (y,), (expected,) = evaluate(changed, inputs).values(), evaluate(load(other).quantized, inputs).values()
        assert (y == expected).all()


def test_sums_of_equal_scales(tmp_path) -> None:
    """Of few different sums, whose mean slope is not right everywhere."""
    first = Holding(loadable=True)
    held(joined(tmp_path, (0.0371, 0.0371, 0.0619), "m.onnx"), first)
    a, b = (each.reshape(-1, 1).repeat(3, 1) for each in np.meshgrid(np.arange(256), np.arange(256)))
    for number, scale in enumerate((0.0381, 0.0392, 0.0406, 0.0417)):
        other = joined(tmp_path, (scale, scale, 0.0533), f"o{number}.onnx")
        changed = held(other, Holding(known=first.found, loadable=True))
        inputs = dict(zip([port.name for port in load(other).quantized.inputs], (a, b), strict=True))
        (y,), (expected,) = evaluate(changed, inputs).values(), evaluate(load(other).quantized, inputs).values()
        assert (y == expected).all()


def zeros(folder: Path, zero_point: int, name: str) -> Path:
    """What a gate is behind a state of zeros: its product by it is the zero point, whatever it is."""
    b = Builder()
    x = b.requantize(b.input("x", ("N", 4)), 0.0371)
    y = b.requantize(b.node("Mul", x, b.constant(0.0)), 0.0523, zero_point)
    total = b.requantize(b.node("Add", x, y, name="sum"), 0.06, zero_point)
    b.output(b.requantize(b.node("MatMul", total, b.weights(WEIGHTS, 0.23), name="dense"), 1.9))
    b.save(folder, name)
    return folder / name


def test_another_zero_point_behind_zeros(tmp_path) -> None:
    first = Holding(loadable=True)
    held(zeros(tmp_path, 65, "m.onnx"), first)
    other = zeros(tmp_path, 217, "o.onnx")
    changed = held(other, Holding(known=first.found, loadable=True))
    x = {changed.inputs[0].name: np.arange(256).reshape(-1, 1).repeat(4, 1)}
    (y,), (expected,) = evaluate(changed, x).values(), evaluate(load(other).quantized, x).values()
    assert (y == expected).all()


@pytest.mark.parametrize("scales", [(0.9, 0.0523, 0.0619), (0.0371, 0.0523, 0.0019)])
def test_sums_of_far_other_scales(tmp_path, scales) -> None:
    first = Holding()
    held(joined(tmp_path, (0.0371, 0.0523, 0.0619), "m.onnx"), first)
    with pytest.raises(ModelRefused) as refused:
        held(joined(tmp_path, scales, "o.onnx"), Holding(known=first.found))
    (finding,) = refused.value.findings
    assert finding.where == "node 'sum'" and "must be a sum of scales that hardware has room for" in finding.message


def test_a_sum_whose_channels_have_few_pairs(tmp_path) -> None:
    """Where one operand varies the other one does not: no sum is as large as both at their greatest."""
    b = Builder()
    x = b.requantize(b.input("x", ("N", 2)), 0.05, 128)
    operands = [
        b.requantize(b.node("MatMul", x, b.weights(weights, 0.1), name=name), 0.005, 128)
        for name, weights in (("one", [[7, 0], [0, 0]]), ("other", [[0, 0], [0, -7]]))
    ]
    b.output(b.requantize(b.node("Add", *operands, name="sum"), 0.0063, 100))
    quantized = b.load(tmp_path).quantized
    graph = dataflow(quantized, holding=(holding := Holding(loadable=True)))
    assert "sum" in holding.found
    x = {graph.inputs[0].name: np.stack([np.arange(256), np.arange(256)], axis=1)}
    (y,), (expected,) = evaluate(graph, x).values(), evaluate(quantized, x).values()
    assert (y == expected).all() and len(np.unique(expected)) > 10


def test_sums_that_are_not_held(tmp_path) -> None:
    """One that is an output, one of products too long to be tried, and those of layers that are not named."""
    b = Builder()
    x, y = (b.requantize(b.input(name, ("N", 3)), scale) for name, scale in (("a", 0.0371), ("b", 0.0523)))
    b.output(b.requantize(b.node("MatMul", x, b.weights(WEIGHTS[:3], 0.23), name="dense"), 1.9))
    b.output(b.requantize(b.node("Add", x, y, name="sum"), 0.06))
    b.save(tmp_path, "m.onnx")
    named = Holding(frozenset({"dense"}))
    held(tmp_path / "m.onnx", named)
    assert set(named.found) == {"dense"}
    every = Holding()
    held(tmp_path / "m.onnx", every)
    assert {"dense", "sum"} <= set(every.found)


@pytest.mark.parametrize(("weights", "scale", "message"), [
    (WEIGHTS + 3, 0.23, "must have weights of 4 bits, not from -4 to 8"),
    (np.full((4, 3), 7), 0.23, "must have sums within [-3570, 3570], not [0, 7140]: the hardware has no room"),
    (WEIGHTS, 3.0, "a shift by"),
])
def test_what_does_not_fit(tmp_path, weights, scale, message) -> None:
    first = Holding()
    held(dense(tmp_path, WEIGHTS), first)
    with pytest.raises(ModelRefused) as refused:
        held(dense(tmp_path, weights, scale, name="o.onnx"), Holding(known=first.found))
    assert message in " ".join(finding.message for finding in refused.value.findings)
    assert {finding.remedy for finding in refused.value.findings} == {"build this model with 'hwflow synth'"}


def test_what_cannot_be_held(tmp_path) -> None:
    with pytest.raises(ModelRefused) as refused:
        held(dense(tmp_path, WEIGHTS), Holding(frozenset({"other"})))
    assert "must name nodes with constant weights, not 'other'" in refused.value.findings[0].message
    b = Builder()
    x = b.requantize(b.input("x", ("N", 1)), 0.5)
    b.output(b.requantize(b.node("MatMul", x, b.weights([[3]], 0.23)), 1.9))
    b.save(tmp_path, "m.onnx")
    with pytest.raises(ModelRefused) as refused:
        held(tmp_path / "m.onnx", Holding())
    assert "must have several weights, not 1" in refused.value.findings[0].message
    assert refused.value.findings[0].remedy == "leave it out: name others with option --patchable"
    b = Builder()
    x = b.requantize(b.input("x", ("N", 4)), 0.05, 128)
    b.output(b.requantize(b.node("Sigmoid", x), 1 / 256))
    b.save(tmp_path, "f.onnx")
    with pytest.raises(ModelRefused, match="option --loadable: must be given for a model with weights or scales"):
        held(tmp_path / "f.onnx", Holding(loadable=True))


@pytest.mark.parametrize(("scale", "step", "rounding"), [(0.25, 2.0, "half_even"), (0.23, 1.9, "floor")])
@pytest.mark.parametrize("loadable", [False, True])
def test_scales_that_are_powers_of_two(tmp_path, scale, step, rounding, loadable) -> None:
    """(x * 1/8) / 2 has sums half-way between two results, which go to the even one: the shift rounds. It does for
    other weights, too, with ties and, twice as coarse, without; a shift that rounds down has none."""
    first = Holding(loadable=loadable)
    held(dense(tmp_path, WEIGHTS, scale, step), first)
    ((form,),) = (layer.forms for layer in first.found.values())
    assert form.rounding == rounding
    other = dense(tmp_path, WEIGHTS[::-1] - 1, 0.25, 4.0, name="o.onnx")
    if rounding == "floor":
        with pytest.raises(ModelRefused) as refused:
            held(other, Holding(known=first.found, loadable=loadable))
        assert f"a shift by {form.shift} (floor)" in refused.value.findings[0].message
        return
    changed = held(other, Holding(known=first.found, loadable=loadable))
    x = np.random.default_rng(0).integers(0, 256, (200, 4))
    (y,) = evaluate(changed, {changed.inputs[0].name: x}).values()
    (expected,) = evaluate(load(other).quantized, {changed.inputs[0].name: x}).values()
    assert (y == expected).all()


@pytest.mark.parametrize(("zero_point", "own", "other"), [(128, "even", "odd"), (129, "odd", "even")])
def test_zero_points_of_the_other_parity(tmp_path, zero_point: int, own: str, other: str) -> None:
    """Sums half-way go to even results before the zero point is added: to odd ones, with an odd one."""

    def model(zero_point: int) -> Path:
        b = Builder()
        x = b.requantize(b.input("x", ("N", 4)), 0.5)
        b.output(b.requantize(b.node("MatMul", x, b.weights(WEIGHTS, 0.25)), 2.0, zero_point))
        b.save(tmp_path, f"{zero_point}.onnx")
        return tmp_path / f"{zero_point}.onnx"

    first = Holding(loadable=True)
    held(model(zero_point), first)
    held(model(zero_point - 2), Holding(known=first.found, loadable=True))
    with pytest.raises(ModelRefused) as refused:
        held(model(zero_point + 1), Holding(known=first.found, loadable=True))
    assert f"must have {own} zero points" in refused.value.findings[0].message
    assert f"not {other} ones" in refused.value.findings[0].message


def test_who_reads_the_sums(tmp_path) -> None:
    """Two quantizers, each with room of its own, and an output without one: as wide as any sum that there is room for.
    """
    b = Builder()
    x = b.requantize(b.input("x", ("N", 4)), 0.5)
    y = b.node("MatMul", x, b.weights(WEIGHTS, 0.23), name="dense")
    for value in (b.requantize(y, 1.9), b.requantize(y, 0.7), y):
        b.output(value)
    b.save(tmp_path, "m.onnx")
    first = Holding()
    graph = held(tmp_path / "m.onnx", first)
    assert len(first.found["dense"].forms) == 2
    assert [port.value.typed.interval.hi for port in graph.outputs] == [255, 255, 2 * 255 * 7]
    b = Builder()
    x = b.requantize(b.input("x", ("N", 4)), 0.5)
    b.output(b.requantize(b.node("MatMul", x, b.weights(WEIGHTS, 0.23), name="dense"), 1.9))
    b.save(tmp_path, "o.onnx")
    with pytest.raises(ModelRefused) as refused:
        held(tmp_path / "o.onnx", Holding(known=first.found))
    assert "must be followed by 2 quantizers, as hardware has them, not 1" in refused.value.findings[0].message


def test_a_quantizer_before_reaches_more_with_other_numbers(tmp_path) -> None:
    """Of a mean, at a coarser scale, that is up to 102 with one model, and up to 255 with another: the layer
    behind it has room for 4 terms, 255 and weights of -8 to 7."""

    def mean(scale: float, zero_point: int, name: str) -> Graph:
        b = Builder()
        y = b.node("GlobalAveragePool", b.requantize(b.input("x", ("N", 4, 3, 3)), 0.5))
        y = b.node("Flatten", b.requantize(y, scale, zero_point))
        b.output(b.requantize(b.node("MatMul", y, b.weights(WEIGHTS, 0.23), name="dense"), 1.9, 100))
        b.save(tmp_path, name)
        return load(tmp_path / name).quantized

    first = Holding(loadable=True)
    dataflow(mean(1.25, 0, "m.onnx"), holding=first)
    room = first.found["dense"].sums
    assert room is not None and (room.sums.lo, room.sums.hi) == (4 * 255 * -8, 4 * 255 * 7)
    other = mean(0.5, 40, "o.onnx")
    changed = dataflow(other, holding=Holding(known=first.found, loadable=True))
    x = {changed.inputs[0].name: np.random.default_rng(0).integers(0, 256, (50, 4, 3, 3))}
    (y,), (expected,) = evaluate(changed, x).values(), evaluate(other, x).values()
    assert (y == expected).all() and len(np.unique(expected)) > 10


def test_a_quantizer_behind_is_asked_for_all_that_it_may_see(tmp_path) -> None:
    """The layer makes one number of all inputs, with weights of so small a scale; its hardware may make any, and the
    mean of these is 400 times as large as before: more than the second quantizer's multiplier has bits for."""
    def model(name: str, scale: float, step: float) -> Path:
        b = Builder()
        x = b.requantize(b.input("x", ("N", 3, 2, 2)), 0.5)
        y = b.node("Conv", x, b.weights(WEIGHTS.reshape(4, 3, 1, 1), scale), name="conv")
        b.output(b.requantize(b.node("GlobalAveragePool", b.requantize(y, 1.9, 128)), step, 60))
        b.save(tmp_path, name)
        return tmp_path / name

    first = Holding()
    held(model("m.onnx", 0.23, 2.3), first)
    with pytest.raises(ModelRefused, match="hardware has room for"):
        held(model("o.onnx", 0.23e-6, 2.3 / 400), Holding(known=first.found))
