"""The model of an SDRAM ends the simulation at each violation: a sequence of commands written by hand for each, beside
one that is as late as it must be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hdl_lib.external.memory_bench import run

NOP, ACTIVE, READ, WRITE, PRECHARGE, REFRESH, MODE = 0b111, 0b011, 0b101, 0b100, 0b010, 0b001, 0b000
ALL, TWO_CYCLES = 1 << 10, 1 << 9 | 2 << 4

# At 10 ns a cycle: tRCD 2, tRP 2, tRAS 5, tRC 8, tWR 2, tRFC 7 cycles, a refresh every 100 cycles, power-up 20 cycles.
PARAMETERS = (
    ".BANKS(4), .ROWS(16), .COLUMNS(32), .WIDTH(16), .PAGES(4), .CAS(2), .CLOCK_PS(10000), .T_RCD(20000), "
    ".T_RP(20000), .T_RAS(45000), .T_RC(80000), .T_WR(20000), .T_RFC(70000), .T_REFRESH(1000000), .T_POWER_UP(200000), "
    ".INITIAL_REFRESHES(2)"
)
SETUP = [(20, PRECHARGE, ALL), (2, REFRESH, 0), (7, REFRESH, 0), (7, MODE, TWO_CYCLES)]
"""(cycles since the command before, command, address); writes drive the pins of data."""

BENCH = """
module bench;
    reg clk = 0, cs_n = 1, drives = 0;
    reg [2:0] command = 7;
    reg [12:0] a = 0;
    reg [1:0] ba = 0;
    wire [15:0] q;
    always #5 clk = ~clk;
    task step(input integer wait_, input [2:0] next, input integer address, input integer bank, input drive); begin
        repeat (wait_ - 1) @(negedge clk);
        command = next; cs_n = 0; a = address; ba = bank; drives = drive;
        @(negedge clk);
        command = 7; drives = 0;
    end endtask
    hwflow_sdram #(%(parameters)s) dut(.clk(clk), .cke(1'b1), .cs_n(cs_n), .ras_n(command[2]), .cas_n(command[1]),
        .we_n(command[0]), .ba(ba), .a(a), .dqm(2'b0), .dq_i(16'h1234), .dq_oe(drives), .dq_o(q));
    initial begin
        @(negedge clk);
%(steps)s
        $display("word %%h", q);
        $display("good");
        $finish;
    end
endmodule
"""


def printed(folder: Path, steps: list[tuple[int, ...]], rest: int = 3) -> str:
    """What the bench prints for these commands: (cycles, command, address[, bank[, drives the pins]])."""
    lines = []
    for cycles, command, address, *more in steps:
        bank, drives = (*more, *(0, int(command == WRITE))[len(more) :])
        lines.append(f"        step({cycles}, {command}, {address}, {bank}, {drives});")
    lines.append(f"        repeat ({rest}) @(negedge clk);")
    return run(folder, BENCH % {"parameters": PARAMETERS, "steps": "\n".join(lines)})


def test_a_word_is_written_and_read(tmp_path: Path) -> None:
    steps = [*SETUP, (2, ACTIVE, 1), (2, WRITE, 7), (4, PRECHARGE, 0), (2, ACTIVE, 1), (2, READ, 7)]
    assert printed(tmp_path, steps, rest=1).split() == ["word", "1234", "good"]


VIOLATIONS = {
    "tRCD": ([(2, ACTIVE, 1), (2, READ, 0)], [(2, ACTIVE, 1), (1, READ, 0)]),
    "tRAS": ([(2, ACTIVE, 1), (5, PRECHARGE, 0)], [(2, ACTIVE, 1), (4, PRECHARGE, 0)]),
    "tRP": (
        [(2, ACTIVE, 1), (6, PRECHARGE, 0), (2, ACTIVE, 1)], [(2, ACTIVE, 1), (7, PRECHARGE, 0), (1, ACTIVE, 1)]
    ),
    "tRC": (
        [(2, ACTIVE, 1), (5, PRECHARGE, 0), (3, ACTIVE, 0)], [(2, ACTIVE, 1), (5, PRECHARGE, 0), (2, ACTIVE, 0)]
    ),
    "tWR": (
        [(2, ACTIVE, 1), (4, WRITE, 0), (2, PRECHARGE, 0)], [(2, ACTIVE, 1), (4, WRITE, 0), (1, PRECHARGE, 0)]
    ),
    "tRFC": ([(2, REFRESH, 0), (7, ACTIVE, 0)], [(2, REFRESH, 0), (6, ACTIVE, 0)]),
    "tMRD": ([(2, ACTIVE, 0)], [(1, REFRESH, 0)]),
    "tREF": ([(90, REFRESH, 0)], [(120, REFRESH, 0)]),
    "row must be open": ([(2, ACTIVE, 0), (2, READ, 0)], [(2, READ, 0)]),
    "must be closed before another": (
        [(2, ACTIVE, 0), (7, ACTIVE, 1, 1)], [(2, ACTIVE, 0), (7, ACTIVE, 1, 0)]
    ),
    "closed for a refresh": ([(2, REFRESH, 0)], [(2, ACTIVE, 0), (9, REFRESH, 0)]),
    "one of the image's": ([(2, ACTIVE, 3), (2, READ, 0)], [(2, ACTIVE, 4), (2, READ, 0)]),
    "one driver": (
        [(2, ACTIVE, 0), (2, READ, 0), (4, WRITE, 0)], [(2, ACTIVE, 0), (2, READ, 0), (2, WRITE, 0)]
    ),
    "must be driven": ([(2, ACTIVE, 0), (2, WRITE, 0)], [(2, ACTIVE, 0), (2, WRITE, 0, 0, 0)]),
    "closed by PRECHARGE": ([(2, ACTIVE, 0), (2, READ, 0)], [(2, ACTIVE, 0), (2, READ, ALL)]),
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_violation_ends_the_simulation(tmp_path: Path, name: str) -> None:
    good, bad = VIOLATIONS[name]
    assert "good" in printed(tmp_path, [*SETUP, *good])
    out = printed(tmp_path, [*SETUP, *bad])
    assert "FATAL" in out
    assert name in out
    assert "good" not in out


SETUPS = {
    "first command": [(19, PRECHARGE, ALL)],
    "must be set up": [(20, PRECHARGE, ALL), (2, REFRESH, 0), (7, REFRESH, 0), (7, ACTIVE, 0)],
    "refreshes, not 1": [(20, PRECHARGE, ALL), (2, REFRESH, 0), (7, MODE, TWO_CYCLES)],
    "single words": [*SETUP[:3], (7, MODE, 1 << 9 | 3 << 4)],
    "closed for a refresh": [(20, PRECHARGE, 0), (2, REFRESH, 0)],
}


@pytest.mark.parametrize("name", SETUPS)
def test_it_must_be_set_up(tmp_path: Path, name: str) -> None:
    out = printed(tmp_path, SETUPS[name])
    assert "FATAL" in out
    assert name in out
