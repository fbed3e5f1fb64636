"""Tables in the Verilog instead of files."""

from __future__ import annotations

import pytest

from hwflow.codegen.emitted.packaging import Packaging
from hwflow.codegen.emitted.table_contents import with_weights
from hwflow.cores.operator import MemoryFile

INSTANCE = """\
module hwflow_top(clk);
  hwflow_rom #(
    .ADDRESS_WIDTH(32'd1),
    .DEPTH(32'd2),
    .FILE("weights/w.mem"),{held}
    .WIDTH(32'd8)
  ) table_ (
    .clk(clk)
  );
endmodule
"""


@pytest.mark.parametrize("held", [False, True])
def test_a_held_table_stays_in_block_ram(held: bool) -> None:
    """Of two words synthesis would make look-up tables."""
    verilog = INSTANCE.format(held="\n    .HELD(32'd1)," if held else "")
    text = with_weights(
        verilog, [MemoryFile("w", [3, 250], 8, held)], {"w": "03\nfa\n"}, Packaging(inline_weights=True)
    )
    assert "  hwflow_rom__w table_ (" in text
    assert "memory[0] = 8'h03;\n        memory[1] = 8'hfa;" in text
    attribute = '    (* ram_style = "block", rom_style = "block" *)\n'
    assert (f"{attribute}    reg [7:0] memory [0:1];" in text) == (attribute in text) == held
