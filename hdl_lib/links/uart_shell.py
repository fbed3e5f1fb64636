"""A design's streams on a serial line: the shell between the two pins of a board and the AXI4-Streams of a core."""

from __future__ import annotations

from amaranth import Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.links.byte_adapter import BeatsToBytes, BytesToBeats
from hdl_lib.links.uart import UartRx, UartTx
from hdl_lib.streams.fifo import Fifo


class UartShell(wiring.Component):
    """Feeds a core frame by frame from a serial line and sends its output back.

    There is no framing on the line: a frame is ``input_bytes_per_beat * input_beats`` bytes, its answer the bytes of
    the core's output frame, in the order of the streams.

    What the host must respect: the line has no flow control, so **at most** ``frames_in_flight`` **frames may be under
    way** (sent wholly or in part, and not yet answered wholly). Then nothing is lost however long the core stalls,
    because the receive buffer holds them all. If ``frames_in_flight`` is 0 (a frame is larger than the buffer) one
    frame may be under way, and nothing is lost as long as the core accepts a frame's bytes, on the average over any
    ``receive_bytes`` of them, as fast as the line brings them (``10 * divisor`` cycles per byte).

    Damage leads to silence, never to a wrong answer: when a byte has a framing error, when the buffer overflows, when
    the core reports an error, or when the line is idle for ``idle_timeout`` cycles inside a frame, the shell
    resynchronises. It resets the core and its own buffers (all frames under way are lost, an answer that was being sent
    ends after the current byte) and holds them in reset until the line has been idle for ``idle_timeout`` cycles. A
    host that misses bytes of an answer waits that long (and at least until it receives no more), discards what it
    received, and sends again.

    Parameters
    ----------
    divisor : int
        Clock cycles per bit of the line.
    input_bytes_per_beat, input_beats : int
        The core's input frame.
    output_bytes_per_beat : int
        The core's output beat.
    idle_timeout : int
        Cycles; at least 20 * divisor (two bytes), so that the gap between two bytes is never taken for the end.
    receive_bytes : int
        Capacity of the receive buffer (block RAM); default: two frames, but at least 16 and at most 4096 bytes.

    Members
    -------
    rx : In(1)
        Pin, asynchronous.
    tx : Out(1)
        Pin, from a register.
    core_reset : Out(1)
        From a register; also high in the first cycle after reset. The core must be reset while it is high.
    core_error : In(1)
        The core's sticky error.
    s_axis_tdata, s_axis_tvalid, s_axis_tready, s_axis_tlast
        To the core's input.
    m_axis_tdata, m_axis_tvalid, m_axis_tready, m_axis_tlast
        From the core's output. ``m_axis_tlast`` is ignored.

    Timing
    ------
    A byte reaches the core's input 6 cycles after the middle of its stop bit, behind the two of the receiver's
    synchroniser, when the buffer is empty. Both streams are registered; ``m_axis_tready`` is low while the bytes of a
    beat wait for the line.
    """

    def __init__(
        self,
        divisor: int,
        input_bytes_per_beat: int,
        input_beats: int,
        output_bytes_per_beat: int,
        *,
        idle_timeout: int,
        receive_bytes: int | None = None,
    ):
        if idle_timeout < 20 * divisor:
            raise ValueError(
                f"idle_timeout must be at least 20 * divisor = {20 * divisor} cycles (two bytes), not {idle_timeout}"
            )
        self.frame_bytes = input_bytes_per_beat * input_beats
        if receive_bytes is None:
            receive_bytes = min(max(2 * self.frame_bytes, 16), 4096)
        if receive_bytes < 2:
            raise ValueError(f"receive_bytes must be 2 or more, not {receive_bytes}")
        self.divisor = divisor
        self.idle_timeout = idle_timeout
        self.receive_bytes = receive_bytes
        self.frames_in_flight = receive_bytes // self.frame_bytes
        self._to_beats = BytesToBeats(input_bytes_per_beat, input_beats)
        self._to_bytes = BeatsToBytes(output_bytes_per_beat)
        super().__init__(
            {
                "rx": In(1, init=1),
                "tx": Out(1, init=1),
                "core_reset": Out(1, init=1),
                "core_error": In(1),
                "s_axis_tdata": Out(8 * input_bytes_per_beat),
                "s_axis_tvalid": Out(1),
                "s_axis_tready": In(1),
                "s_axis_tlast": Out(1),
                "m_axis_tdata": In(8 * output_bytes_per_beat),
                "m_axis_tvalid": In(1),
                "m_axis_tready": Out(1),
                "m_axis_tlast": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.receiver = receiver = UartRx(self.divisor)
        m.submodules.transmitter = transmitter = UartTx(self.divisor)
        # A block RAM's data take most of a cycle to leave it without its output register, which this queue has.
        fifo = Fifo(8, self.receive_bytes, style="block")
        reset = self.core_reset
        m.submodules.receive_buffer = ResetInserter(reset)(fifo)
        m.submodules.to_beats = ResetInserter(reset)(self._to_beats)
        m.submodules.to_bytes = ResetInserter(reset)(self._to_bytes)
        to_beats, to_bytes = self._to_beats, self._to_bytes

        # The receiver is emptied at once: into the buffer, or, while resynchronising, into nothing. Registers between
        # them let place and route put the receiver at its pin and the buffer at its memory.
        arrived = Signal()
        byte = Signal(8, reset_less=True)
        overflow = Signal()
        m.d.sync += [
            arrived.eq(receiver.o.valid & ~reset),
            byte.eq(receiver.o.payload),
            overflow.eq(arrived & ~fifo.i.ready & ~reset),
        ]
        m.d.comb += [
            receiver.rx.eq(self.rx),
            self.tx.eq(transmitter.tx),
            receiver.o.ready.eq(1),
            fifo.i.payload.eq(byte),
            fifo.i.valid.eq(arrived),
            to_beats.i.payload.eq(fifo.o.payload),
            to_beats.i.valid.eq(fifo.o.valid),
            fifo.o.ready.eq(to_beats.i.ready),
            self.s_axis_tdata.eq(to_beats.o.payload.data),
            self.s_axis_tlast.eq(to_beats.o.payload.last),
            # nothing is offered to, nor taken from, a core in reset
            self.s_axis_tvalid.eq(to_beats.o.valid & ~reset),
            to_beats.o.ready.eq(self.s_axis_tready),
            to_bytes.i.payload.data.eq(self.m_axis_tdata),
            to_bytes.i.payload.last.eq(self.m_axis_tlast),
            to_bytes.i.valid.eq(self.m_axis_tvalid & ~reset),
            self.m_axis_tready.eq(to_bytes.i.ready & ~reset),
            transmitter.i.payload.eq(to_bytes.o.payload),
            transmitter.i.valid.eq(to_bytes.o.valid & ~reset),
            to_bytes.o.ready.eq(transmitter.i.ready),
        ]

        # Counters down, each with a register that says what a comparison would.
        missing = Signal(range(self.frame_bytes), init=self.frame_bytes - 1)  # bytes of the frame, but for the next one
        final = Signal(init=self.frame_bytes == 1)
        inside = Signal()  # of a frame
        with m.If(reset | (arrived & final)):
            m.d.sync += [missing.eq(self.frame_bytes - 1), final.eq(self.frame_bytes == 1), inside.eq(0)]
        with m.Elif(arrived):
            m.d.sync += [missing.eq(missing - 1), final.eq(missing == 1), inside.eq(1)]

        patience = Signal(range(self.idle_timeout + 1), init=self.idle_timeout)  # cycles
        timeout, busy = Signal(), Signal()
        m.d.comb += busy.eq(~receiver.idle | receiver.o.valid)
        with m.If(busy):
            m.d.sync += [patience.eq(self.idle_timeout), timeout.eq(0)]
        with m.Elif(~timeout):
            m.d.sync += [patience.eq(patience - 1), timeout.eq(patience == 1)]

        started = Signal()  # the first cycle after reset only passes the reset on: no wait for an idle line
        m.d.sync += started.eq(1)
        damaged = Signal()
        m.d.comb += damaged.eq(
            receiver.framing_error | receiver.overflow | overflow | self.core_error | (timeout & inside)
        )
        with m.If(reset), m.If(timeout | ~started):
            m.d.sync += reset.eq(0)
        with m.Elif(damaged):
            m.d.sync += reset.eq(1)
        return m
