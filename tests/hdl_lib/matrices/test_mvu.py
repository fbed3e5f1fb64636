# amaranth: UnusedElaboratable=no
"""Mvu: exact products for every shape and folding, handshakes in the cycles its law says."""

import random
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
from amaranth.hdl import Module, ResetInserter, Shape, Signal
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st

from hdl_lib.arithmetic.digit_product import Digits
from hdl_lib.arithmetic.packed_product import Packing
from hdl_lib.matrices.mvu import Mvu
from hdl_lib.memories.rom import Table
from tests.hdl_lib.bench import STALLS, drive, pack, unpack


def values(shape: Shape, count: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Numbers of ``shape``; half of them the extremes."""
    low, high = (-(1 << shape.width - 1), (1 << shape.width - 1) - 1) if shape.signed else (0, (1 << shape.width) - 1)
    uniform = rng.integers(low, high, count, endpoint=True)
    return np.where(rng.random(count) < 0.5, uniform, rng.choice([low, high], count)).astype(np.int64)


@dataclass(frozen=True)
class Case:
    """A matrix, its folding, and the pixels it is multiplied with."""

    input_shape: Shape
    weight_shape: Shape
    pe: int = 2
    simd: int = 2
    synapse_fold: int = 2
    neuron_fold: int = 2
    multiplier: str = "dsp"
    depth: int = 10
    pixels: int = 4
    seed: int = 0
    part: int = 17
    ranges: tuple[tuple[int, int], tuple[int, int]] | None = None

    @cached_property
    def weights(self) -> np.ndarray:
        """[neuron fold, synapse fold, pe, simd]"""
        count = (self.neuron_fold, self.synapse_fold, self.pe, self.simd)
        return values(self.weight_shape, count, np.random.default_rng(self.seed))

    @cached_property
    def inputs(self) -> np.ndarray:
        """[pixels, synapse fold, simd]"""
        count = (self.pixels, self.synapse_fold, self.simd)
        return values(self.input_shape, count, np.random.default_rng(self.seed + 1))

    @cached_property
    def outputs(self) -> np.ndarray:
        """[pixels, neuron fold, pe] by an integer matrix product over whole rows and columns."""
        rows, columns = self.neuron_fold * self.pe, self.synapse_fold * self.simd
        matrix = self.weights.transpose(0, 2, 1, 3).reshape(rows, columns)
        flat = self.inputs.reshape(self.pixels, columns) @ matrix.T
        return flat.reshape(self.pixels, self.neuron_fold, self.pe)

    @cached_property
    def accumulator_shape(self) -> Shape:
        """The narrowest shape of the results that do occur: intermediate sums may well leave it."""
        low, high = int(self.outputs.min()), int(self.outputs.max())
        return Shape.cast(range(min(low, 0), max(high, 1) + 1))

    def build(self) -> Mvu:
        width = self.weight_shape.width
        words = [pack([int(w) for w in word.ravel()], width) for word in self.weights.reshape(-1, self.pe, self.simd)]
        return Mvu(
            self.input_shape,
            self.weight_shape,
            self.accumulator_shape,
            pe=self.pe,
            simd=self.simd,
            synapse_fold=self.synapse_fold,
            neuron_fold=self.neuron_fold,
            weights=Table.of_words(words, self.pe * self.simd * width),
            multiplier=self.multiplier,
            depth=self.depth,
            part=self.part,
            ranges=self.ranges,
        )

    @property
    def beats(self) -> list[int]:
        return [pack([int(x) for x in beat], self.input_shape.width) for beat in self.inputs.reshape(-1, self.simd)]

    def run(self, dut: Mvu | None = None, **how):
        """The trace of all pixels through ``dut`` (a new one by default), with the right values."""
        trace = drive(dut or self.build(), self.beats, self.pixels * self.neuron_fold, **how)
        shape = self.accumulator_shape
        got = [unpack(word, shape.width, self.pe, signed=shape.signed) for word in trace.beats]
        assert got == self.outputs.reshape(-1, self.pe).tolist()
        return trace


shapes = st.builds(Shape, st.integers(1, 16), st.booleans())
fold = st.integers(1, 4)


@settings(max_examples=60, deadline=None)
@given(
    case=st.builds(
        Case, shapes, shapes, st.integers(1, 3), st.integers(1, 5), fold, fold,
        st.sampled_from(["dsp", "lut"]), st.integers(1, 12), st.integers(1, 4), st.integers(0, 1 << 30),
    ),
    stalls=st.sampled_from(STALLS),
)  # fmt: skip
def test_exact_for_every_shape_and_folding(case, stalls):
    gap, stall = stalls
    case.run(gap=gap, stall=stall, seed=case.seed)


@settings(max_examples=40, deadline=None)
@given(
    case=st.builds(
        Case, st.builds(Shape, st.integers(1, 20), st.booleans()), st.builds(Shape, st.integers(17, 40), st.booleans()),
        st.integers(1, 2), st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.sampled_from(["dsp", "lut"]),
        st.integers(1, 20), st.integers(1, 4), st.integers(0, 1 << 30), st.sampled_from([2, 3, 7, 15, 17]),
    ),
)  # fmt: skip
def test_wide_weights(case):
    """With parts much narrower than any multiplier block too: many of them."""
    case.run()


@pytest.mark.parametrize("part", [15, 17])
@pytest.mark.parametrize("multiplier", ["dsp", "lut"])
@pytest.mark.parametrize(("input_shape", "weight_shape"), [
    (Shape(32, True), Shape(29, True)), (Shape(32), Shape(30)), (Shape(17), Shape(8, True)),
    (Shape(18, True), Shape(2)), (Shape(31, True), Shape(1, True)), (Shape(20), Shape(40, True)),
])  # fmt: skip
def test_wide_inputs(input_shape, weight_shape, multiplier, part):
    Case(input_shape, weight_shape, 2, 2, 1, 2, multiplier, 12, 8, part=part).run()


@pytest.mark.parametrize("multiplier", ["dsp", "lut"])
@pytest.mark.parametrize("weight_signed", [False, True])
@pytest.mark.parametrize("input_signed", [False, True])
@pytest.mark.parametrize("width", [2, 3, 4, 5])
def test_every_product(width, input_signed, weight_signed, multiplier):
    """All pairs of operands of 2 to 5 bits: a lane for every weight, a pixel for every input."""
    count = 1 << width
    case = Case(Shape(width, input_signed), Shape(width, weight_signed), count, 1, 1, 1, multiplier, 16, count)
    numbers = [unpack(pattern, width, 1, signed=signed)[0] for signed in (False, True) for pattern in range(count)]
    by_sign = {False: np.array(numbers[:count]), True: np.array(numbers[count:])}
    case.__dict__["weights"] = by_sign[weight_signed].reshape(1, 1, count, 1)
    case.__dict__["inputs"] = by_sign[input_signed].reshape(count, 1, 1)
    case.run()


@pytest.mark.parametrize("weight_signed", [False, True])
@pytest.mark.parametrize("input_signed", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_every_product_of_two_bits_of_known_ranges(whole, input_signed, weight_signed):
    """All pairs, of all values or of {-1, 0, 1} and {0, 1}; a weight of 0 gives 0 for any input."""
    inputs, weights = (list(range(-2, 2)) if s else list(range(4)) for s in (input_signed, weight_signed))
    kept = [values if whole else [v for v in values if abs(v) < 2] for values in (inputs, weights)]
    ranges = tuple((min(values), max(values)) for values in kept)
    count = len(kept[1])
    case = Case(
        Shape(2, input_signed), Shape(2, weight_signed), count + 1, 2, 1, 1, "lut", 16, len(kept[0]), ranges=ranges
    )
    outside = inputs[0 if input_signed else -1]
    case.__dict__["weights"] = np.array([[w, 0] for w in [*kept[1], 0]]).reshape(1, 1, count + 1, 2)
    case.__dict__["inputs"] = np.array([[x, outside] for x in kept[0]]).reshape(len(kept[0]), 1, 2)
    trace = case.run()
    assert trace.out_cycles[0] - trace.in_cycles[0] == 2 + 0 + 1 + 1 + 1  # no multiples of the input are needed


def law(latency: int, synapse_fold: int, neuron_fold: int, pixels: int, depth: int) -> tuple[list[int], list[int]]:
    """Handshake cycles with an always willing source and sink: the issue-slot law of the contract, written out."""
    taken, popped = [], []
    t = -1
    for _ in range(pixels):
        for nf in range(neuron_fold):
            for sf in range(synapse_fold):
                t += 1
                if sf == synapse_fold - 1:
                    beat = len(popped)
                    if beat >= depth:
                        t = max(t, popped[beat - depth] + 1)
                    popped.append(max(t + latency, popped[-1] + 1 if popped else 0))
                if nf == 0:
                    taken.append(t)
    return taken, popped


S8, U8, S4 = Shape(8, True), Shape(8, False), Shape(4, True)


@pytest.mark.parametrize("depth", [1, 2, 3, 6, 12])
@pytest.mark.parametrize("folds", [(1, 1), (1, 2), (2, 1), (1, 5), (5, 1), (2, 2), (3, 4), (4, 3)])
def test_handshakes_follow_the_law(folds, depth):
    synapse_fold, neuron_fold = folds
    case = Case(U8, S8, 1, 3, synapse_fold, neuron_fold, "dsp", depth, pixels=8)
    trace = case.run()
    # inputs 2, or 3 from a memory; operands 1, product 2, tree 2, accumulator if any, queue 1
    latency = 9 + (synapse_fold > 1) + (synapse_fold > 1 and neuron_fold > 1)
    assert (trace.in_cycles, trace.out_cycles) == law(latency, synapse_fold, neuron_fold, 8, depth)


@pytest.mark.parametrize(
    ("input_shape", "weight_shape", "simd", "synapse_fold", "multiplier", "latency"),
    [  # front 2 or, with a replay memory, 3; operands or multiples, product, tree, accumulator, queue 1
        (U8, S8, 1, 1, "dsp", 2 + 1 + 3 + 0 + 0 + 1),
        (U8, S8, 5, 1, "dsp", 2 + 1 + 3 + 3 + 0 + 1),
        (U8, S8, 4, 9, "dsp", 3 + 1 + 3 + 2 + 1 + 1),
        (U8, S8, 4, 1, "lut", 2 + 1 + 2 + 2 + 0 + 1),
        (U8, S4, 4, 3, "lut", 3 + 1 + 1 + 2 + 1 + 1),
        (S4, Shape(2, True), 2, 1, "lut", 2 + 1 + 1 + 1 + 0 + 1),
        (S4, Shape(16, False), 2, 1, "lut", 2 + 1 + 3 + 1 + 0 + 1),
        (S4, Shape(1, True), 2, 2, "lut", 3 + 0 + 1 + 1 + 1 + 1),
        (Shape(1, False), S8, 2, 2, "lut", 3 + 0 + 1 + 1 + 1 + 1),
        # two parts overlap: one sum; three of 17, 17 and 6 bits: the outer ones are one number, unless negative
        (U8, Shape(18, False), 1, 1, "dsp", 2 + 1 + 3 + 1 + 0 + 0 + 1),
        (U8, Shape(18, True), 1, 1, "dsp", 2 + 1 + 3 + 0 + 0 + 1),
        (U8, Shape(40, True), 2, 1, "dsp", 2 + 1 + 3 + 1 + 1 + 0 + 1),
        (S8, Shape(40, True), 2, 1, "dsp", 2 + 1 + 3 + 2 + 1 + 0 + 1),
        (U8, Shape(40, True), 1, 2, "lut", 3 + 1 + 5 + 0 + 1 + 1),
    ],
)
def test_latency(input_shape, weight_shape, simd, synapse_fold, multiplier, latency):
    assert latency == Mvu.latency_of(
        input_shape=input_shape,
        weight_shape=weight_shape,
        simd=simd,
        synapse_fold=synapse_fold,
        neuron_fold=2,
        multiplier=multiplier,
    )
    case = Case(input_shape, weight_shape, 2, simd, synapse_fold, 2, multiplier, depth=16)
    dut = case.build()
    assert dut.latency == latency
    trace = case.run(dut)
    assert (trace.in_cycles, trace.out_cycles) == law(latency, synapse_fold, 2, case.pixels, 16)


@pytest.mark.parametrize(("gap", "stall"), STALLS)
@pytest.mark.parametrize("multiplier", ["dsp", "lut"])
@pytest.mark.parametrize(("synapse_fold", "neuron_fold"), [(1, 1), (1, 3), (3, 1), (2, 2), (18, 2)])
def test_gaps_and_stalls(synapse_fold, neuron_fold, multiplier, gap, stall):
    """Two frames of three pixels each, back to back; (18, 2) has a buffer too deep for small memories."""
    Case(U8, S4, 2, 2, synapse_fold, neuron_fold, multiplier, 4, pixels=6).run(gap=gap, stall=stall, seed=3)


@pytest.mark.parametrize("after", range(1, 30, 4))
@pytest.mark.parametrize(("synapse_fold", "neuron_fold"), [(1, 1), (1, 2), (3, 2)])
def test_reset_in_mid_frame(synapse_fold, neuron_fold, after):
    """After a reset in any state the core starts afresh: nothing of before comes out."""
    case = Case(S8, S8, 2, 2, synapse_fold, neuron_fold, "lut", 5)
    reset = Signal()
    dut, m = case.build(), Module()
    m.submodules.dut = ResetInserter(reset)(dut)
    rng = random.Random(after)
    got = []

    async def bench(ctx):
        ctx.set(dut.i.valid, 1)
        for _ in range(after):
            ctx.set(dut.i.payload.as_value(), rng.getrandbits(16))
            ctx.set(dut.o.ready, rng.random() < 0.5)
            await ctx.tick()
        ctx.set(dut.i.valid, 0)
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        ctx.set(dut.o.ready, 1)
        waiting = case.beats
        assert not ctx.get(dut.o.valid)
        for _ in range(100):
            ctx.set(dut.i.valid, bool(waiting))
            if waiting:
                ctx.set(dut.i.payload.as_value(), waiting[0])
            _, _, taken, valid, payload = await ctx.tick().sample(dut.i.ready, dut.o.valid, dut.o.payload.as_value())
            if taken:
                waiting = waiting[1:]
            if valid:
                got.append(unpack(payload, case.accumulator_shape.width, 2, signed=case.accumulator_shape.signed))

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert got == case.outputs.reshape(-1, 2).tolist()


@dataclass(frozen=True)
class Bits(Case):
    """Inputs and weights of one bit; what is summed is 1 where they are equal. Of every ``group`` beats' last one the
    upper ``surplus`` lanes do not count."""

    group: int = 1
    surplus: int = 0

    @cached_property
    def outputs(self) -> np.ndarray:
        """[pixels, neuron fold, pe], one comparison after the other."""
        sums = np.zeros((self.pixels, self.neuron_fold, self.pe), dtype=np.int64)
        for pixel, nf, p in np.ndindex(sums.shape):
            for sf, s in np.ndindex(self.synapse_fold, self.simd):
                counts = sf % self.group != self.group - 1 or s < self.simd - self.surplus
                sums[pixel, nf, p] += counts and self.inputs[pixel, sf, s] == self.weights[nf, sf, p, s]
        return sums

    def build(self) -> Mvu:
        stored = self.weights.copy()
        stored[:, self.group - 1 :: self.group, :, self.simd - self.surplus :] = 1
        words = [pack([int(w) for w in word.ravel()], 1) for word in stored.reshape(-1, self.pe, self.simd)]
        table = Table.of_words(words, self.pe * self.simd)
        return Mvu(
            self.input_shape, self.weight_shape, self.accumulator_shape, pe=self.pe, simd=self.simd,
            synapse_fold=self.synapse_fold, neuron_fold=self.neuron_fold, weights=table, multiplier="xnor",
            depth=self.depth, group=self.group, surplus=self.surplus,
        )  # fmt: skip


U1 = Shape(1)


@settings(max_examples=40, deadline=None)
@given(
    data=st.data(), pe=st.integers(1, 3), simd=st.integers(1, 20), group=st.integers(1, 3), groups=st.integers(1, 3),
    neuron_fold=st.integers(1, 3), depth=st.integers(1, 12), seed=st.integers(0, 1 << 30),
    stalls=st.sampled_from(STALLS),
)  # fmt: skip
def test_counts_of_equal_bits(data, pe, simd, group, groups, neuron_fold, depth, seed, stalls):
    surplus = data.draw(st.integers(0, simd - 1))
    case = Bits(
        U1, U1, pe, simd, group * groups, neuron_fold, "xnor", depth, 3, seed, group=group, surplus=surplus
    )
    gap, stall = stalls
    case.run(gap=gap, stall=stall, seed=seed)


@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 5])
def test_every_count(lanes):
    """All pairs of words of up to 5 bits: a row for every weight word, a pixel for every input word."""
    count = 1 << lanes
    case = Bits(U1, U1, count, lanes, 1, 1, "xnor", 16, count)
    words = np.array([[word >> bit & 1 for bit in range(lanes)] for word in range(count)])
    case.__dict__["weights"] = words.reshape(1, 1, count, lanes)
    case.__dict__["inputs"] = words.reshape(count, 1, lanes)
    assert case.outputs.min() == 0 and case.outputs.max() == lanes
    case.run()


@pytest.mark.parametrize("lanes", [6, 7, 8, 9])
def test_every_number_of_equal_bits(lanes):
    """Every input word against a word and its complement."""
    case = Bits(U1, U1, 2, lanes, 1, 1, "xnor", 16, 1 << lanes)
    word = np.arange(lanes) % 3 % 2
    case.__dict__["weights"] = np.array([word, 1 - word]).reshape(1, 1, 2, lanes)
    case.__dict__["inputs"] = (np.arange(1 << lanes)[:, None, None] >> np.arange(lanes)) & 1
    assert np.array_equal(case.outputs.sum(axis=2), np.full((1 << lanes, 1), lanes))
    case.run()


@pytest.mark.parametrize(
    ("simd", "synapse_fold", "latency"),
    [  # front 2, or 3 with a replay memory; count ceil(log2(simd)) but at least 1, accumulator, queue 1
        (1, 1, 2 + 1 + 0 + 1),
        (2, 1, 2 + 1 + 0 + 1),
        (3, 2, 3 + 2 + 1 + 1),
        (4, 1, 2 + 2 + 0 + 1),
        (17, 2, 3 + 5 + 1 + 1),
        (64, 1, 2 + 6 + 0 + 1),
    ],
)
def test_latency_of_counts(simd, synapse_fold, latency):
    case = Bits(U1, U1, 2, simd, synapse_fold, 2, "xnor", 16, group=synapse_fold)
    trace = case.run()
    assert (trace.in_cycles, trace.out_cycles) == law(latency, synapse_fold, 2, case.pixels, 16)


GOOD = dict(
    input_shape=8, weight_shape=8, accumulator_shape=24, pe=2, simd=1, synapse_fold=2, neuron_fold=1,
    weights=Table.of_words([0, 1], 16), multiplier="dsp", depth=2,
)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pe": 0}, "Mvu pe must be at least 1, not 0"),
        ({"depth": 0}, "Mvu depth must be at least 1, not 0"),
        (
            {"input_shape": 33},
            "Mvu input_shape must have 1 to 32 bits, not 33; split wider operands into several products",
        ),
        (
            {"weight_shape": 41},
            "Mvu weight_shape must have 1 to 40 bits, not 41; split wider operands into several products",
        ),
        ({"part": 1}, "Mvu part must be at least 2 bits, not 1"),
        (
            {"accumulator_shape": 0},
            "Mvu accumulator_shape must have at least 1 bit, not 0; leave out rows that are all zero",
        ),
        ({"multiplier": "soft"}, "Mvu multiplier must be \"dsp\", \"dsp2\", \"lut\" or \"xnor\", not 'soft'"),
        ({"multiplier": "xnor"}, 'Mvu input_shape must be unsigned(1) for "xnor", not unsigned(8)'),
        (
            {"multiplier": "xnor", "input_shape": 1, "weight_shape": Shape(1, True)},
            'Mvu weight_shape must be unsigned(1) for "xnor", not signed(1)',
        ),
        (
            {"digits": Digits(4, True)},
            'Mvu digits must be given for "lut" only, with inputs of 2 bits or more',
        ),
        (
            {"multiplier": "lut", "digits": Digits(4, True)},
            "Mvu weights must be 2 words (neuron_fold * synapse_fold), or a multiple, of 18 bits "
            "(pe * simd * bits of digits), not 2 words of 16 bits; pack the table for this folding",
        ),
        ({"multiplier": "dsp2"}, 'Mvu packing must be given for "dsp2", and for nothing else'),
        (
            {"packing": Packing.of((0, 3), (-3, 3), 1, (18, 18))},
            'Mvu packing must be given for "dsp2", and for nothing else',
        ),
        (
            {"multiplier": "dsp2", "packing": Packing.of((0, 3), (-3, 3), 1, (18, 18))},
            "Mvu weights must be 2 words (neuron_fold * synapse_fold), or a multiple, of 6 bits "
            "(simd * packed bits of each two rows), not 2 words of 16 bits; pack the table for this folding",
        ),
        (
            {"group": 3},
            "Mvu group must divide synapse_fold, 2, not 3; give the beats after which surplus lanes come",
        ),
        ({"surplus": 1}, "Mvu surplus must be 0 to 0 (simd - 1), not 1"),
        (
            {"simd": 2},
            "Mvu weights must be 2 words (neuron_fold * synapse_fold), or a multiple, of 32 bits "
            "(pe * simd * weight bits), not 2 words of 16 bits; pack the table for this folding",
        ),
    ],
)
def test_messages(change, message):
    arguments = {**GOOD, **change}
    shapes_in_order = [arguments.pop(f"{name}_shape") for name in ("input", "weight", "accumulator")]
    with pytest.raises(ValueError) as caught:
        Mvu(*shapes_in_order, **arguments)
    assert str(caught.value) == message
