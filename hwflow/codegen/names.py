"""ONNX names to Verilog identifiers: readable, legal in Verilog-2005, unique."""

from __future__ import annotations

import re
from collections.abc import Iterable

# IEEE 1364-2005, annex B, and the SystemVerilog words (IEEE 1800-2017, annex B) that users' tools may choke on.
KEYWORDS = frozenset(
    """always and assign automatic begin buf bufif0 bufif1 case casex casez cell cmos config deassign default defparam
    design disable edge else end endcase endconfig endfunction endgenerate endmodule endprimitive endspecify endtable
    endtask event for force forever fork function generate genvar highz0 highz1 if ifnone incdir include initial inout
    input instance integer join large liblist library localparam macromodule medium module nand negedge nmos nor
    noshowcancelled not notif0 notif1 or output parameter pmos posedge primitive pull0 pull1 pulldown pullup
    pulsestyle_onevent pulsestyle_ondetect rcmos real realtime reg release repeat rnmos rpmos rtran rtranif0 rtranif1
    scalared showcancelled signed small specify specparam strong0 strong1 supply0 supply1 table task time tran tranif0
    tranif1 tri tri0 tri1 triand trior trireg unsigned use uwire vectored wait wand weak0 weak1 while wire wor xnor xor
    bit byte char class const do enum export extends extern final global import int interface logic longint new null
    package program property protected pure rand randc ref return sequence shortint static string struct super this
    type typedef union unique var virtual void with""".split()
)


def identifier(name: str) -> str:
    """``name`` as a Verilog identifier: other characters become underscores, a leading digit or a keyword gets 'n_'."""
    text = re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9_]", "_", name)).strip("_") or "n"
    return f"n_{text}" if text[0].isdigit() or text.lower() in KEYWORDS else text


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """A unique identifier for each name; those that would be the same (also but for case) are numbered in order."""
    result: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        base = identifier(name)
        candidate, number = base, 1
        while candidate.lower() in taken:
            number += 1
            candidate = f"{base}_{number}"
        taken.add(candidate.lower())
        result[name] = candidate
    return result
