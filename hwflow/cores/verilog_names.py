"""Convert ONNX names to Verilog identifiers: readable, legal in Verilog-2005, unique."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

# IEEE 1800-2017, annex B, which contains all of IEEE 1364-2005: users' tools may read Verilog as SystemVerilog.
KEYWORDS = frozenset(
    """accept_on alias always always_comb always_ff always_latch and assert assign assume automatic before begin bind
    bins binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class clocking cmos config
    const constraint context continue cover covergroup coverpoint cross deassign default defparam design disable
    dist do edge else end endcase endchecker endclass endclocking endconfig endfunction endgenerate endgroup
    endinterface endmodule endpackage endprimitive endprogram endproperty endsequence endspecify endtable endtask
    enum event eventually expect export extends extern final first_match for force foreach forever fork forkjoin
    function generate genvar global highz0 highz1 if iff ifnone ignore_bins illegal_bins implements implies import
    incdir include initial inout input inside instance int integer interconnect interface intersect join join_any
    join_none large let liblist library local localparam logic longint macromodule matches medium modport module
    nand negedge nettype new nexttime nmos nor noshowcancelled not notif0 notif1 null or output package packed
    parameter pmos posedge primitive priority program property protected pull0 pull1 pulldown pullup
    pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase randsequence rcmos real realtime ref reg
    reject_on release repeat restrict return rnmos rpmos rtran rtranif0 rtranif1 s_always s_eventually s_nexttime
    s_until s_until_with scalared sequence shortint shortreal showcancelled signed small soft solve specify
    specparam static string strong strong0 strong1 struct super supply0 supply1 sync_accept_on sync_reject_on table
    tagged task this throughout time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior trireg
    type typedef union unique unique0 unsigned until until_with untyped use uwire var vectored virtual void wait
    wait_order wand weak weak0 weak1 while wildcard wire with within wor xnor xor""".split()  # noqa: SIM905  (a list of 248 strings would take as many lines)
)


MOST_CHARACTERS = 100
"""Of an identifier: names of memory files are made of them, and file systems take 255 bytes."""


def identifier(name: str) -> str:
    """Convert ``name`` to a Verilog identifier: letters lose their accents, other characters become underscores, a
    leading digit or a keyword gets 'n_', and a long name loses its middle."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    text = re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9_]", "_", plain)).strip("_") or "n"
    if len(text) > MOST_CHARACTERS:
        half = (MOST_CHARACTERS - 1) // 2
        text = f"{text[:half].strip('_')}_{text[-half:].strip('_')}"
    return f"n_{text}" if text[0].isdigit() or text.lower() in KEYWORDS else text


def identifiers(names: Iterable[str], reserved: Iterable[str] = ()) -> dict[str, str]:
    """Return a unique identifier for each name; equal ones (ignoring case) are numbered in order.

    None is in ``reserved``, and none has two underscores in a row: those are for compound names.
    """
    result: dict[str, str] = {}
    taken = {word.lower() for word in reserved}
    for name in names:
        base = identifier(name)
        candidate, number = base, 1
        while candidate.lower() in taken:
            number += 1
            candidate = f"{base}_{number}"
        taken.add(candidate.lower())
        result[name] = candidate
    return result
