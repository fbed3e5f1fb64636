"""The pins of a board's flash, between the design and the chip.

The flash's clock is the design's, inverted, from a double-rate register: high in the second half of a cycle. All other
pins have a register in the pad, so the flash has half a cycle for what it is sent. It sends at the falling edge, the
beginning of a cycle, and the register in the pad takes that at the end: the cycle has room for the ways out and back,
say 10 ns, and the flash's 7 ns, up to 58 MHz; and what it holds for 1.5 ns changes after the ways, never too early. No
board has been tried: see docs/how-to/memory.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from amaranth import Module, Signal
from amaranth.lib import io

from hwflow.codegen.top import PIN_PREFIX

if TYPE_CHECKING:
    from hwflow.boards.board import Flash


def connect_flash(m: Module, platform: Any, flash: Flash) -> dict[str, Any]:
    """Connect a board's flash, in the domain ``memory``; return the ports of the design's instance for it."""
    resource = platform.request(flash.resource, flash.number, dir="-")
    deselected, sent, drives, holds, data = Signal(), Signal(), Signal(), Signal(), Signal(4)
    m.submodules.memory_clock = clock = io.DDRBuffer("o", resource.clk, o_domain="memory")
    m.submodules.memory_select = select = io.FFBuffer("o", resource.cs, o_domain="memory")
    both = {"i_domain": "memory", "o_domain": "memory"}
    m.submodules.memory_io0 = first = io.FFBuffer("io", resource.dq[0], **both)
    m.submodules.memory_io1 = second = io.FFBuffer("i", resource.dq[1], i_domain="memory")
    m.submodules.memory_io23 = others = io.FFBuffer("io", resource.dq[2:4], **both)
    m.d.comb += [
        clock.o[0].eq(0), clock.o[1].eq(1), select.o.eq(~deselected),  # the resource inverts this pin
        first.o.eq(sent), first.oe.eq(drives), others.o.eq(0b11), others.oe.eq(holds),
        data[0].eq(first.i), data[1].eq(second.i), data[2:4].eq(others.i),
    ]
    return {
        f"o_{PIN_PREFIX}cs_n": deselected, f"o_{PIN_PREFIX}dq_o": sent, f"o_{PIN_PREFIX}dq_oe": drives,
        f"o_{PIN_PREFIX}hold": holds, f"i_{PIN_PREFIX}dq_i": data,
    }


def flash_beside(flash: Flash, memory: Mapping[str, Any]) -> str:
    """Return the Verilog of the flash's model beside the board's top, whose pins it names; ``memory``: the manifest's
    table. The pins do not say who drives them: while the flash sends, the design must not."""
    prefix = f"{flash.resource}_{flash.number}__"
    parameters = ", ".join(f".{name}({value})" for name, value in memory["model"].items())
    return "\n".join([
        f"  wire {prefix}clk__io, {prefix}cs__io;",
        f"  wire [3:0] {prefix}dq__io;",
        "  wire [3:0] memory_nibble;",
        "  wire memory_sends;",
        f"  assign {prefix}dq__io = memory_sends ? memory_nibble : 4'bz;",
        f"  hwflow_flash #({parameters}, .FILE(\"{memory['image']}\")) memory(",
        f"    .clk({prefix}clk__io), .cs_n({prefix}cs__io), .dq_i({prefix}dq__io),",
        "    .dq_oe(memory_sends ? 4'b0000 : 4'b1101), .dq_o(memory_nibble), .sends(memory_sends)",
        "  );",
        "",
    ])
