"""The output queue behind a pipeline that cannot stop: credits, cycles, reset."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.streams.output_queue import OutputQueue
from tests.hdl_lib.bench import STALLS, drive
from tests.hdl_lib.law import Process, cycles
from tests.hdl_lib.protocol import after_reset, check_no_paths

LATENCY = {"register": 1, "lutram": 1, "block": 3}


class Pipeline(wiring.Component):
    """Adds 1 in each of ``stages`` registers, none of which can be held."""

    def __init__(self, stages, depth, style):
        self.stages = stages
        self.queue = OutputQueue(8, depth, style=style)
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(8))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        m.d.comb += [self.i.ready.eq(queue.available), queue.reserve.eq(self.i.valid & self.i.ready)]
        valid, value = queue.reserve, self.i.payload
        for k in range(self.stages):
            next_valid = Signal(name=f"valid_{k}")
            next_value = Signal(8, name=f"value_{k}")
            m.d.sync += [next_valid.eq(valid), next_value.eq(value + 1)]
            valid, value = next_valid, next_value
        m.d.comb += [queue.push.eq(valid), queue.payload.eq(value)]
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        return m


CASES = [
    (stages, depth, style)
    for style in LATENCY
    for stages, depth in [(0, 1), (0, 2), (1, 2), (3, 1), (3, 4), (3, 5), (5, 20)]
]


@pytest.mark.parametrize(("stages", "depth", "style"), CASES)
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_values_in_order_and_cycles_of_the_law(stages, depth, style, gap, stall):
    dut = Pipeline(stages, depth, style)
    beats = list(range(40))
    trace = drive(dut, beats, 40, gap=gap, stall=stall)
    assert trace.beats == [b + stages for b in beats]
    if not gap and not stall:
        law = cycles(Process([(True, True)] * 40, depth, stages + LATENCY[style]))
        assert (trace.in_cycles, trace.out_cycles) == law
        assert dut.queue.latency == LATENCY[style]


@pytest.mark.parametrize(("stages", "depth", "style"), CASES)
def test_reset_in_mid_frame(stages, depth, style):
    dut = Pipeline(stages, depth, style)
    assert after_reset(dut, list(range(20)), 20, seed=depth) == [b + stages for b in range(20)]


@pytest.mark.parametrize("style", LATENCY)
def test_no_combinational_path(style):
    check_no_paths(Pipeline(2, 3, style))


def test_auto_never_takes_the_style_with_the_long_latency():
    assert [OutputQueue(64, depth).style for depth in (1, 4, 5, 4096)] == ["register", "register", "lutram", "lutram"]


def test_wrong_depth_is_named():
    with pytest.raises(ValueError, match=r"^depth must be an integer of at least 0, not -1$"):
        OutputQueue(8, -1)
