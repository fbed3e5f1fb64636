"""A board's memory: the pins of an SDRAM, between the design and the chip, or the single-port RAM within the part; or
its flash (:mod:`hwflow.codegen.board.flash_pins`).

An SDRAM's clock is the design's, inverted, so that what leaves registers at a rising edge has half a cycle until the
memory takes it. A word that it sends comes ``cas`` cycles after that, plus the way out of the device and back: at slow
clocks the falling edge before the design's own register lies in the middle of a word, at fast ones that register does.
No board has been tried: see docs/how-to/memory.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from amaranth import ClockDomain, ClockSignal, DomainRenamer, Module, Signal
from amaranth.lib import io

from hdl_lib.external.spram import SinglePortRam
from hwflow.codegen.board.flash_pins import connect_flash, flash_beside
from hwflow.codegen.top import PIN_PREFIX

if TYPE_CHECKING:
    from hwflow.boards.board import Board, Memory

FALLING_MHZ = 90
"""Up to this clock words are taken at the falling edge: half a cycle earlier. Ways of 4 ns, accesses of 6 ns."""

_OPTIONAL = {"clk_en": "cke", "cs": "cs_n", "dqm": "dqm"}
_OUTPUTS = {"we": "we_n", "ras": "ras_n", "cas": "cas_n", "ba": "ba", "a": "a"}


def connect_memory(
    m: Module, platform: Any, board: Board, clock: Signal, mhz: float, *, flash: bool, words: int | None
) -> dict[str, Any]:
    """Connect a board's memory, or its ``flash``; return the ports of the design's instance for it. ``clock``: the
    design's, of ``mhz``. ``words``: of the part's own RAM."""
    m.domains.memory = ClockDomain(reset_less=True, local=True)
    m.d.comb += ClockSignal("memory").eq(clock)
    if flash:
        assert board.flash is not None, "the design has one"
        return connect_flash(m, platform, board.flash)
    if board.memory is None:
        assert board.part.spram is not None and words, "the design has a memory"
        return _connect_spram(m, board.part.spram.width, words)
    return _connect_chip(m, platform, board.memory, clock, mhz)


def _connect_spram(m: Module, width: int, words: int) -> dict[str, Any]:
    ram = SinglePortRam(width, words)
    m.submodules.memory = DomainRenamer("memory")(ram)
    return {
        f"o_{PIN_PREFIX}en": ram.en, f"o_{PIN_PREFIX}we": ram.we, f"o_{PIN_PREFIX}a": ram.a,
        f"o_{PIN_PREFIX}dq_o": ram.dq_i, f"i_{PIN_PREFIX}dq_i": ram.dq_o,
    }


def _connect_chip(m: Module, platform: Any, memory: Memory, clock: Signal, mhz: float) -> dict[str, Any]:
    chip = memory.chip
    m.domains.memory_falling = ClockDomain(reset_less=True, local=True, clk_edge="neg")
    m.d.comb += ClockSignal("memory_falling").eq(clock)
    resource = platform.request(memory.resource, memory.number, dir="-")
    m.submodules.memory_clock = driver = io.DDRBuffer("o", resource.clk, o_domain="memory")
    m.d.comb += [driver.o[0].eq(0), driver.o[1].eq(1)]  # low while the design's clock is high
    ports: dict[str, Any] = {}
    widths = {
        "ba": (chip.banks - 1).bit_length(), "a": max(11, (chip.rows - 1).bit_length()), "dqm": chip.width // 8
    }
    for pin, name in {**_OUTPUTS, **_OPTIONAL}.items():
        value = Signal(widths.get(name, 1), name=f"memory_{name}")
        ports[f"o_{PIN_PREFIX}{name}"] = value
        if pin in _OPTIONAL and not hasattr(resource, pin):
            continue
        m.submodules[f"memory_{name}_pins"] = buffer = io.Buffer("o", getattr(resource, pin))
        m.d.comb += buffer.o.eq(~value if name.endswith("_n") else value)  # the resource inverts such pins
    data_out, enable, data_in = Signal(chip.width), Signal(), Signal(chip.width)
    m.submodules.memory_data_pins = buffer = io.Buffer("io", resource.dq)
    m.d.comb += [buffer.o.eq(data_out), buffer.oe.eq(enable)]
    if mhz <= FALLING_MHZ:
        m.d.memory_falling += data_in.eq(buffer.i)
    else:
        m.d.comb += data_in.eq(buffer.i)
    return ports | {
        f"o_{PIN_PREFIX}dq_o": data_out, f"o_{PIN_PREFIX}dq_oe": enable, f"i_{PIN_PREFIX}dq_i": data_in
    }


def memory_beside(board: Board, table: Mapping[str, Any], clock_hz: Fraction) -> str:
    """Return the Verilog of the chip's model beside the board's top, whose pins it names; ``table``: the manifest's
    `memory`. At clocks at which the design takes words later, they come later. Nothing where the memory is in the
    part."""
    if "flash" in table:
        assert board.flash is not None, "the design has one"
        return flash_beside(board.flash, table)
    memory, model = board.memory, table["model"]
    if memory is None:
        return ""
    chip, prefix = memory.chip, f"{memory.resource}_{memory.number}__"
    width = chip.width
    there = {each.name for each in board.platform().resources[memory.resource, memory.number].ios}
    widths = {"ba": (chip.banks - 1).bit_length(), "a": max(11, (chip.rows - 1).bit_length()), "dqm": width // 8}
    wires = [f"  wire {prefix}clk__io;", f"  wire [{width - 1}:0] {prefix}dq__io;"]
    ports = [f".clk({prefix}clk__io)", f".dq_i({prefix}dq__io)", ".dq_oe(1'b1)", ".dq_o(memory_word)"]
    for pin, name in {**_OUTPUTS, **_OPTIONAL}.items():
        if pin in there:
            size = widths.get(name, 1)
            wires.append(f"  wire {f'[{size - 1}:0] ' if size > 1 else ''}{prefix}{pin}__io;")
            ports.append(f".{name}({prefix}{pin}__io)")
        else:
            ports.append(f".{name}({1 if name == 'cke' else 0})")
    parameters = ", ".join(f".{name}({value})" for name, value in model.items())
    late = float(clock_hz) / 1e6 > FALLING_MHZ
    ports[2] = ".dq_oe(memory_command == 3'b100)"  # the pins say no more: a word is driven where one is written
    return "\n".join([
        *wires,
        f"  wire [{width - 1}:0] memory_word;",
        f"  reg [{width - 1}:0] memory_word_late;",
        f"  wire [2:0] memory_command = {{{prefix}ras__io, {prefix}cas__io, {prefix}we__io}};",
        "  reg [7:0] memory_reads = 0;",
        f"  always @(posedge {prefix}clk__io) begin",
        "    memory_word_late <= memory_word;",
        "    memory_reads <= {memory_reads[6:0], memory_command == 3'b101};",
        "  end",
        f"  assign {prefix}dq__io = memory_reads[{model['CAS']}:{model['CAS'] - 1}] != 0 ? "
        f"{'memory_word_late' if late else 'memory_word'} : {width}'bz;",
        f"  hwflow_sdram #({parameters}) memory({', '.join(ports)});",
        "",
    ])
