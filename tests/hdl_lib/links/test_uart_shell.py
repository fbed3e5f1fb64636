"""The serial shell around a small core: frames through, and damage that ends in silence and a fresh start."""

from __future__ import annotations

import random

import pytest
from amaranth import Module, Signal
from amaranth.sim import Simulator

from hdl_lib.links.uart import UartRx, UartTx
from hdl_lib.links.uart_shell import UartShell

DIVISOR = 4
IDLE = 20 * DIVISOR
BYTE = 10 * DIVISOR


class Bench:
    """A host (one transmitter, one receiver), the shell, and a core that adds 1 to each byte of each beat.

    The core accepts a beat when ``accept`` says so, offers it ``delay`` cycles later, forgets everything in reset, and
    checks the marks on the last beats.
    """

    def __init__(self, n: int = 2, beats: int = 2, *, accept=lambda: True, delay: int = 0, **options):
        self.accept, self.delay, self.n, self.beats = accept, delay, n, beats
        self.m = m = Module()
        m.submodules.shell = self.shell = UartShell(DIVISOR, n, beats, n, idle_timeout=IDLE, **options)
        m.submodules.host_tx = self.host_tx = UartTx(DIVISOR)
        m.submodules.host_rx = self.host_rx = UartRx(DIVISOR)
        self.low = Signal()  # the host's line held low (a break)
        m.d.comb += [self.shell.rx.eq(self.host_tx.tx & ~self.low), self.host_rx.rx.eq(self.shell.tx)]
        self.received: list[int] = []
        self.resets: list[int] = []
        self.marks: list[int] = []

    async def _core(self, ctx):
        shell, queue, age, beat, cycle = self.shell, [], 0, 0, 0
        while True:
            ctx.set(shell.s_axis_tready, self.accept() and len(queue) < 2)
            ctx.set(shell.m_axis_tvalid, bool(queue) and age >= self.delay)
            ctx.set(shell.m_axis_tdata, queue[0] if queue else 0)
            _, _, tvalid, tready, tdata, tlast, ovalid, oready, reset = await ctx.tick().sample(
                shell.s_axis_tvalid, shell.s_axis_tready, shell.s_axis_tdata, shell.s_axis_tlast,
                shell.m_axis_tvalid, shell.m_axis_tready, shell.core_reset,
            )
            age += 1
            if ovalid and oready:
                queue.pop(0)
                age = 0
            if tvalid and tready:
                assert tlast == (beat == self.beats - 1)
                beat = (beat + 1) % self.beats
                self.marks.append(tlast)
                queue.append(int.from_bytes(bytes((b + 1) & 255 for b in tdata.to_bytes(self.n, "little")), "little"))
            if reset:
                queue, beat = [], 0
                self.resets.append(cycle)
            cycle += 1

    async def _host(self, ctx):
        ctx.set(self.host_rx.o.ready, 1)
        while True:
            _, _, valid, byte = await ctx.tick().sample(self.host_rx.o.valid, self.host_rx.o.payload)
            if valid:
                self.received.append(byte)

    def run(self, *script) -> list[int]:
        """Do the script: bytes are sent back to back, an int waits so many cycles, a callable is called with ctx."""

        async def bench(ctx):
            for item in script:
                if isinstance(item, int):
                    await ctx.tick().repeat(item)
                elif isinstance(item, bytes):
                    for byte in item:
                        ctx.set(self.host_tx.i.valid, 1)
                        ctx.set(self.host_tx.i.payload, byte)
                        await ctx.tick().until(self.host_tx.i.ready)
                    ctx.set(self.host_tx.i.valid, 0)
                else:
                    item(ctx)

        simulator = Simulator(self.m)
        simulator.add_clock(1e-6)
        simulator.add_testbench(self._core, background=True)
        simulator.add_testbench(self._host, background=True)
        simulator.add_testbench(bench)
        simulator.run()
        return self.received


def plus_one(data: bytes) -> list[int]:
    return [(b + 1) & 255 for b in data]


def test_cycles_from_the_line_to_the_core():
    """The middle of the stop bit is 9.5 bits after the start bit's edge; then two of the synchroniser, and six."""
    bench = Bench(1, 4)
    seen = []

    async def watch(ctx):
        await ctx.tick().sample(bench.host_tx.tx).until(~bench.host_tx.tx)
        cycles = 0
        while not ctx.get(bench.shell.s_axis_tvalid):
            await ctx.tick()
            cycles += 1
        seen.append(cycles)

    simulator = Simulator(bench.m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(watch)

    async def send(ctx):
        await ctx.tick().repeat(IDLE)
        ctx.set(bench.host_tx.i.payload, 0)
        ctx.set(bench.host_tx.i.valid, 1)
        await ctx.tick().until(bench.host_tx.i.ready)
        ctx.set(bench.host_tx.i.valid, 0)
        await ctx.tick().repeat(2 * BYTE)

    simulator.add_testbench(send)
    simulator.run()
    # "until" sees the start bit at the tick behind its first cycle
    assert seen == [9 * DIVISOR + DIVISOR // 2 + 2 + 6 - 1]


@pytest.mark.parametrize("n, beats", [(1, 4), (2, 2), (3, 1), (1, 1)])
@pytest.mark.parametrize("busy", [0.0, 0.9])
def test_frames_come_back(n, beats, busy):
    rng = random.Random(5)
    bench = Bench(n, beats, accept=lambda: rng.random() >= busy)
    data = random.Random(n).randbytes(3 * n * beats)
    assert bench.run(5, data, 8 * BYTE) == plus_one(data)
    assert bench.resets == [0]  # the first cycle after reset only
    assert bench.marks == ([0] * (beats - 1) + [1]) * 3


def test_nothing_is_lost_while_the_core_stalls_with_two_frames_in_flight():
    bench = Bench(4, 8)
    assert bench.shell.receive_bytes == 64 and bench.shell.frames_in_flight == 2
    data = random.Random(1).randbytes(64)
    bench.accept = lambda: False

    def go(ctx):
        bench.accept = lambda: True

    assert bench.run(5, data, 3000, go, 64 * BYTE + 400) == plus_one(data)


def test_a_slow_core_answers_late_and_is_not_reset():
    bench = Bench(2, 2, delay=4 * IDLE)
    assert bench.run(5, b"abcd", 16 * IDLE) == plus_one(b"abcd")
    assert bench.resets == [0]


def test_an_incomplete_frame_is_dropped_after_the_timeout():
    bench = Bench(2, 2)
    assert bench.run(5, b"abc", 2 * IDLE, b"wxyz", 8 * BYTE) == [ord("b"), ord("c"), *plus_one(b"wxyz")]
    assert len(bench.resets) == 2  # one cycle each


def test_a_pause_below_the_timeout_is_no_end():
    bench = Bench(2, 2)
    assert bench.run(5, b"abc", IDLE - 10, b"d", 8 * BYTE) == plus_one(b"abcd")
    assert bench.resets == [0]


def test_a_framing_error_silences_the_frame_and_what_follows_without_pause():
    bench = Bench(2, 2)
    low = bench.low
    answer = bench.run(
        5, b"a", 2, lambda ctx: ctx.set(low, 1), 12 * DIVISOR, lambda ctx: ctx.set(low, 0), 2 * DIVISOR,
        b"bcdbcd", 2 * IDLE, b"wxyz", 8 * BYTE,
    )
    assert answer == plus_one(b"wxyz")


def test_an_overflow_gives_silence_not_a_wrong_answer():
    bench = Bench(2, 2, receive_bytes=4)
    bench.accept = lambda: False

    def go(ctx):
        bench.accept = lambda: True

    assert bench.run(5, b"0123456789", go, 2 * IDLE, b"wxyz", 8 * BYTE) == plus_one(b"wxyz")


def test_a_core_error_resets_the_core():
    bench = Bench(2, 2)
    error = bench.shell.core_error
    assert bench.run(
        5, b"ab", 1, lambda ctx: ctx.set(error, 1), 1, lambda ctx: ctx.set(error, 0), 2 * IDLE, b"wxyz", 8 * BYTE
    ) == plus_one(b"wxyz")


def test_parameters_are_checked():
    with pytest.raises(ValueError) as error:
        UartShell(10, 1, 1, 1, idle_timeout=199)
    assert str(error.value) == "idle_timeout must be at least 20 * divisor = 200 cycles (two bytes), not 199"
    with pytest.raises(ValueError) as error:
        UartShell(10, 1, 1, 1, idle_timeout=200, receive_bytes=1)
    assert str(error.value) == "receive_bytes must be 2 or more, not 1"


def test_a_frame_larger_than_the_buffer_is_said():
    assert UartShell(10, 4, 2000, 1, idle_timeout=200).frames_in_flight == 0
    assert UartShell(10, 4, 600, 1, idle_timeout=200).frames_in_flight == 1
