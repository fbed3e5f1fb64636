"""The board's top level: clock, reset, carrier and link, and the emitted design unchanged (``design.v``).

The design is an instance of the Verilog module ``hwflow_top``, so that a bitstream contains the very file that is
simulated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from amaranth import (
    Cat,
    ClockDomain,
    ClockSignal,
    Const,
    DomainRenamer,
    Elaboratable,
    Instance,
    Module,
    ResetInserter,
    ResetSignal,
    Signal,
    Value,
)
from amaranth.lib import io, wiring
from amaranth.lib.cdc import FFSynchronizer

from hdl_lib.clocks.pll_ice40 import Ice40Pll
from hdl_lib.clocks.stream_crossing import StreamCrossing
from hdl_lib.external.single_port_queue import SinglePortQueue
from hdl_lib.links.link_shell import RESET_STAGES, LinkShell
from hwflow.codegen.board.carriers import Carrier
from hwflow.codegen.board.clock_plan import FAMILIES, ClockPlan
from hwflow.codegen.board.identity import Buffers, FramePort
from hwflow.codegen.board.memory_pins import connect_memory
from hwflow.codegen.emitted.packaging import TOP
from hwflow.codegen.top import LOAD_INPUT, LOAD_OUTPUT, PIN_PREFIX
from hwflow.cores.costs.memory import block_rams

if TYPE_CHECKING:
    from hwflow.boards.board import Board, Part

# Seconds from the PLL's lock to the end of reset. iCE40 block RAMs read as zero for about 3 us after configuration.
RESET_SECONDS = Fraction(16, 1_000_000)
FRAMING_BYTES = 512  # of a carrier's own memory


# Look-up tables and flip-flops of LinkShell, serial carrier, clock and reset with streams of no bytes, and for each
# byte of a beat; `tests/codegen/test_allowance.py` synthesizes them. Gowin has them within 2 %.
_SHELL = {"ice40": {"lut": 1265, "ff": 927}, "ecp5": {"lut": 1540, "ff": 990}}
_BYTE_IN, _BYTE_OUT = {"lut": 0, "ff": 8}, {"lut": 8, "ff": 8}  # beats are shifted in, but loaded and shifted out


def shell_allowance(part: Part) -> dict[str, int]:
    """Return the share of ``part`` to leave for link and carrier, in ``lut``, ``ff``, ``dsp`` and ``bram``.

    Measured for streams of one to eight bytes per beat: 1,261 to 1,336 look-up tables on iCE40, 1,526 to 1,609 on ECP5
    and Gowin, 947 to 1,130 flip-flops; the figures are the upper ends with a margin. Block RAMs: the link's buffers,
    that of the framing, those of identity and counters.
    """
    buffers, family = Buffers.of(part), part.family
    memories = (buffers.receive, buffers.transmit, FRAMING_BYTES)
    blocks = 2 + sum(block_rams(family, size, 8) for size in memories)
    return {"lut": 1450 if family == "ice40" else 1800, "ff": 1150, "dsp": 0, "bram": blocks}


# A queue between two clocks (:mod:`hdl_lib.clocks.stream_crossing`), and for each byte of a beat. Measured on ECP5 for
# one stream each way: 139 look-up tables and 153 flip-flops with beats of one byte, 274 and 265 with eight.
_CROSSING, _BYTE_CROSSED = {"lut": 60, "ff": 68}, {"lut": 10, "ff": 8}


def expected_link(
    part: Part, reserved: Mapping[str, int], bytes_in: int, bytes_out: int, crossing: int = 0
) -> dict[str, int]:
    """Return what link and carrier take by the model: of what is ``reserved`` (:func:`surroundings`) the part for a
    serial link is replaced by what it has been measured to take with so many bytes in the beats of all streams.
    ``crossing``: streams that cross to a clock of the design's own; what is reserved does not count them."""
    result, allowed = dict(reserved), shell_allowance(part)
    for name, count in _SHELL.get(part.family, _SHELL["ecp5"]).items():
        result[name] += count + bytes_in * _BYTE_IN[name] + bytes_out * _BYTE_OUT[name] - allowed[name]
        if crossing:
            result[name] += crossing * _CROSSING[name] + (bytes_in + bytes_out) * _BYTE_CROSSED[name]
    return result


# A DMA engine with 64-bit data and its interconnect, by the orders of magnitude in AMD PG021 (AXI DMA); not measured.
_DMA = {"lut": 5000, "ff": 7000, "dsp": 0, "bram": 8}


# A stream more on the line, with the control of its queue (:mod:`hdl_lib.links.stream_turns`). Measured by yosys for
# beats of one byte: 90 to 140 look-up tables, 45 to 70 flip-flops; wider beats have a register more for each bit.
_TURN = {"lut": 240, "ff": 160}


# What carriers need beyond a serial port. UDP: LiteEth's core, on ECP5. USB: LUNA's device. Both: the queues between
# their clocks and the design's. Measured with USB, link and all, for streams of a byte: 2,697 look-up tables, 1,895
# flip-flops and 12 block RAMs on iCE40; 3,285, 1,875 and 11 on ECP5.
_MORE: Mapping[str, Mapping[str, Mapping[str, int]]] = {
    "udp": {"ecp5": {"lut": 5600, "ff": 2700, "bram": 6}},
    "usb": {"ecp5": {"lut": 1700, "ff": 900, "bram": 0}, "ice40": {"lut": 1500, "ff": 900, "bram": 5}},
}


def surroundings(board: Board, queued: Sequence[int] = (), carrier: str = "serial") -> dict[str, int]:
    """Return the resources of everything around the design: a shell, or a Zynq's DMA engine and interconnect.

    ``queued``: bytes of a frame of each stream with a queue, if several share the link; ``carrier``: its name.
    """
    if board.zynq:
        return dict(_DMA)
    result = shell_allowance(board.part)
    for name, count in _MORE.get(carrier, {}).get(board.part.family, {}).items():
        result[name] += count
    for size in queued:
        result["bram"] += block_rams(board.part.family, size, 9)
        for name, count in _TURN.items():
            result[name] += count
    return result


class BoardTop(Elaboratable):  # type: ignore[misc]  # Amaranth carries no annotations
    """Clock input, PLL, reset, a carrier, :class:`hdl_lib.links.link_shell.LinkShell` and the design's top
    module ``core``.

    ``identity``: what the board says of itself. ``image``: bytes a beat and beats of what the board's memory is loaded
    with when a session begins; None: the design has nothing there. ``flash``: that memory is the flash;
    ``memory_words``: of the part's own RAM where it is that. ``load``: bytes of a packet that loads its tables, if it
    is loadable. ``waiting``: beats of the only input that have room in the part's own RAM in front of the design; 0:
    none. Reset is released :data:`RESET_SECONDS` after the PLL locks. The domain ``sync`` is that of link and carrier,
    ``core`` that of the design: the same clock, or ``clock.ratio`` times as fast.
    """

    def __init__(
        self, board: Board, sources: Sequence[FramePort], sinks: Sequence[FramePort], clock: ClockPlan,
        carrier: Carrier, identity: bytes, core: str = TOP, image: tuple[int, int] | None = None,
        load: int | None = None, *, flash: bool = False, memory_words: int | None = None,
        waiting: int = 0,
    ):
        self.flash = flash
        self.board, self.clock, self.carrier, self.core = board, clock, carrier, core
        self.inputs, self.outputs, self.image = len(sources), len(sinks), image
        buffers = Buffers.of(board.part)
        self.shell = LinkShell(
            [(port.bytes_per_beat, port.beats) for port in sources],
            [(port.bytes_per_beat, port.beats) for port in sinks],
            buffers.receive, buffers.transmit, buffers.payload, identity, clock.ratio, image, load,
        )
        self.load, self.memory_words, self.waiting = load, memory_words, waiting

    @property
    def reset_cycles(self) -> int:
        """Return the cycles of the link's clock from PLL lock to the end of reset."""
        return int(self.clock.link_hz * RESET_SECONDS)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        clock_input = self.board.clock
        pin = platform.request(clock_input.resource, clock_input.number, dir="-")
        clk, core_clk, lock = Signal(), Signal(), Signal(init=1)
        settings, ratio = self.clock.settings, self.clock.ratio
        m.d.comb += core_clk.eq(clk)
        if settings is not None and clock_input.route == "pad":
            m.submodules.pll = pll = Ice40Pll(settings, pad=pin.io)
            m.d.comb += [clk.eq(pll.clk_out), lock.eq(pll.lock)]
        else:
            m.submodules.clock_buffer = buffer = io.Buffer("i", pin)
            m.domains.oscillator = ClockDomain(reset_less=True, local=True)  # for a carrier with a PLL of its own
            m.d.comb += ClockSignal("oscillator").eq(buffer.i)
            if settings is None:
                m.d.comb += clk.eq(buffer.i)
            else:
                family = FAMILIES[self.board.part.family]
                m.submodules.pll = pll = family.pll(settings) if ratio == 1 else family.pll(settings, ratio)
                m.d.comb += [pll.clk_in.eq(buffer.i), clk.eq(pll.clk_out), lock.eq(pll.lock)]
                if ratio > 1:
                    m.d.comb += [clk.eq(pll.clk_divided), core_clk.eq(pll.clk_out)]

        m.domains.startup = ClockDomain(reset_less=True, local=True)
        m.domains.sync = ClockDomain()
        m.d.comb += [ClockSignal("startup").eq(clk), ClockSignal("sync").eq(clk)]
        locked, ready = Signal(), Signal()
        m.submodules.lock_synchronizer = FFSynchronizer(lock, locked, o_domain="startup")
        wait = self.reset_cycles
        waited = Signal(range(wait + 1))
        with m.If(~locked):
            m.d.startup += [waited.eq(0), ready.eq(0)]
        with m.Elif(waited != wait):
            m.d.startup += waited.eq(waited + 1)
        with m.Else():
            m.d.startup += ready.eq(1)
        # Resets leave registers: they go everywhere, which takes most of a cycle.
        reset = Signal(init=1)
        m.d.startup += reset.eq(~ready)
        m.d.comb += ResetSignal("sync").eq(reset)
        m.submodules.shell = shell = self.shell
        m.submodules.carrier = carrier = self.carrier
        wiring.connect(m, carrier.received, shell.i)
        wiring.connect(m, shell.o, carrier.packets)
        inputs = [getattr(shell, f"input{k}") for k in range(self.inputs)]
        outputs = [getattr(shell, f"output{k}") for k in range(self.outputs)]
        core_reset, core_error = shell.core_reset, shell.core_error
        image = [] if self.image is None else [shell.image]
        load, answer = ([], []) if self.load is None else ([shell.load], [shell.load_answer])
        if ratio > 1:
            inputs, outputs, core_reset, core_error = self._crossed(
                m, core_clk, inputs + image + load, outputs + answer
            )
            inputs, more = inputs[: self.inputs], inputs[self.inputs :]
            outputs, answer = outputs[: self.outputs], outputs[self.outputs :]
            image, load = (more, []) if image else ([], more)
        if self.waiting:
            (port,) = inputs
            inputs = [self._waiting(m, port, core_reset)]
        memory: dict[str, Any] = {}
        if image:
            mhz = float(self.clock.frequency_hz / 1_000_000)
            memory = connect_memory(
                m, platform, self.board, core_clk, mhz, flash=self.flash, words=self.memory_words
            ) | {
                f"i_{PIN_PREFIX}filled": Const(0, 1), f"i_{PIN_PREFIX}load": image[0].payload.data,
                f"i_{PIN_PREFIX}load_valid": image[0].valid, f"o_{PIN_PREFIX}load_ready": image[0].ready,
            }
        m.submodules.hwflow_top = Instance(
            self.core,
            i_clk=core_clk,
            i_rst=core_reset,
            **_streams("i", "s", inputs),
            **_streams("o", "m", outputs),
            **(_ports("i", LOAD_INPUT, load[0]) | _ports("o", LOAD_OUTPUT, answer[0]) if load else {}),
            **memory,
            o_error=core_error,
        )
        return m

    def _waiting(self, m: Module, port: Any, reset: Value) -> Any:
        """Put a queue behind the only input, so that an image comes while the design computes."""
        queue = SinglePortQueue(port.payload.shape(), self.waiting)
        domain = "sync" if self.clock.ratio == 1 else "core"
        m.submodules.image_queue = ResetInserter({domain: reset})(DomainRenamer(domain)(queue))
        wiring.connect(m, port, queue.i)
        return queue.o

    def _crossed(
        self, m: Module, core_clk: Signal, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> tuple[list[Any], list[Any], Signal, Signal]:
        """Put queues between the shell's streams and a core with a clock of its own, twice the shell's or more
        (:attr:`ClockPlan.ratio`); return the core's ends, its reset and its error."""
        shell = self.shell
        core_error, stages = Signal(), Signal(RESET_STAGES, init=-1)
        reset = Signal(init=1)
        m.domains.session = ClockDomain(local=True)  # the link's clock: the queues' ends there
        m.domains.core = ClockDomain(local=True)
        m.domains.core_startup = ClockDomain(reset_less=True, local=True)
        m.submodules.reset_to_core = FFSynchronizer(shell.core_reset, reset, o_domain="core_startup", init=1)
        m.submodules.error_to_link = FFSynchronizer(core_error, shell.core_error)
        m.d.core_startup += stages.eq(Cat(reset, stages))
        m.d.comb += [
            ClockSignal("session").eq(ClockSignal("sync")),
            ResetSignal("session").eq(shell.core_reset),
            ClockSignal("core").eq(core_clk),
            ClockSignal("core_startup").eq(core_clk),
            ResetSignal("core").eq(stages[-1]),
        ]
        into, outof = [], []
        for k, port in enumerate(inputs):
            shape = port.payload.shape()
            m.submodules[f"input{k}_crossing"] = crossing = StreamCrossing(shape, "session", "core", pauses=True)
            wiring.connect(m, port, crossing.i)
            into.append(crossing.o)
        for k, port in enumerate(outputs):
            m.submodules[f"output{k}_crossing"] = crossing = StreamCrossing(port.payload.shape(), "core", "session")
            wiring.connect(m, crossing.o, port)
            outof.append(crossing.i)
        return into, outof, stages[-1], core_error


def _streams(way: str, letter: str, streams: Sequence[Any]) -> dict[str, Any]:
    """Return the ports of the design's AXI4-Streams; ``way``: "i" for its inputs, "o" for its outputs."""
    result: dict[str, Any] = {}
    for k, port in enumerate(streams):
        result |= _ports(way, f"{letter}_axis" if len(streams) == 1 else f"{letter}{k}_axis", port)
    return result


def _ports(way: str, prefix: str, port: Any) -> dict[str, Any]:
    back = "o" if way == "i" else "i"
    return {
        f"{way}_{prefix}_tdata": port.payload.data, f"{way}_{prefix}_tvalid": port.valid,
        f"{back}_{prefix}_tready": port.ready, f"{way}_{prefix}_tlast": port.payload.last,
    }
