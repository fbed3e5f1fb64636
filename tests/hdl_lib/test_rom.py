"""Rom: the words arrive, when the docstring says; the Verilog of the file-based one agrees."""

import shutil
import subprocess

import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator

from hdl_lib.rom import VERILOG, Rom, Table, readmemh_text
from hwflow.toolchain.yosys import YOSYS

WORDS = [0x1A5, 0x000, 0x3FF, 0x200, 0x001, 0x155, 0x2AA]  # 7 words of 10 bits: depth is not a power of two


def reads(rom: Rom, addresses: list[int]) -> list[int]:
    """``data`` seen at each clock edge, while the addresses are applied cycle by cycle."""
    seen = []

    async def bench(ctx):
        for addr in addresses:
            ctx.set(rom.addr, addr)
            _, _, data = await ctx.tick().sample(rom.data)
            seen.append(data)

    simulator = Simulator(rom)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return seen


ADDRESSES = [0, 2, 2, 6, 1, 5, 4, 0, 3, 3]
ONE_LATER = [0x1A5, 0x3FF, 0x3FF, 0x2AA, 0x000, 0x155, 0x001, 0x1A5, 0x200]  # seen from the second edge on


def test_data_one_cycle_after_the_address():
    assert reads(Rom(10, 7, init=WORDS), ADDRESSES)[1:] == ONE_LATER


def test_output_register_adds_one_cycle():
    rom = Rom(10, 7, init=WORDS, output_register=True)
    assert rom.latency == 2
    assert reads(rom, ADDRESSES)[2:] == ONE_LATER[:-1]


@pytest.mark.parametrize("output_register", [False, True])
def test_one_word(output_register):
    rom = Rom(3, 1, init=[5], output_register=output_register)
    assert reads(rom, [0] * 4)[2:] == [5, 5]


def test_of_table():
    rom = Rom.of_table(Table.of_words(WORDS, 10))
    assert reads(rom, ADDRESSES)[1:] == ONE_LATER


MASK = "mask a negative number to its two's complement"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, None, 8, 2), "must have exactly one of words and file, not neither; pass None for the other one"),
        (([1, 2], "a.mem", 8, 2), "must have exactly one of words and file, not both; pass None for the other one"),
        (([1], None, 8, 2), "words must be 2 (depth), not 1; pad with words that are never read"),
        (([1, -1], None, 8, 2), f"word 1 must be in 0..2**8-1, not -1; {MASK}"),
        (([1, 256], None, 8, 2), f"word 1 must be in 0..2**8-1, not 256; {MASK}"),
        (([], None, 8, 0), "depth must be at least 1 word, not 0; leave out an empty table"),
        (([0], None, 0, 1), "width must be at least 1 bit, not 0; leave out a table without bits"),
    ],
)
def test_messages(arguments, message):
    with pytest.raises(ValueError) as caught:
        Table(*arguments)
    assert str(caught.value) == f"Table {message}"


def test_readmemh_text():
    assert readmemh_text([0, 0x1FF, 0xA], 9) == "000\n1ff\n00a\n"


BENCH = """
module bench;
    reg clk = 0;
    reg [2:0] addr = 0;
    wire [9:0] a, b;
    integer k;
    reg [2:0] addresses [0:{last}];
    from_words words_rom (.clk(clk), .addr(addr), .data(a));
    from_file file_rom (.clk(clk), .addr(addr), .data(b));
    initial begin
        {fill}
        for (k = 0; k <= {last}; k = k + 1) begin
            addr = addresses[k];
            #1 $display("%h %h", a, b);
            clk = 1;
            #1 clk = 0;
        end
    end
endmodule
"""


@pytest.mark.parametrize("output_register", [False, True])
def test_verilog_of_file_agrees_with_words(tmp_path, output_register):
    """Both forms, emitted the way designs are, side by side in Icarus."""
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "table.mem").write_text(readmemh_text(WORDS, 10))
    roms = {
        "from_words": Rom(10, 7, init=WORDS, output_register=output_register),
        "from_file": Rom(10, 7, file="weights/table.mem", output_register=output_register),
    }
    for name, rom in roms.items():
        (tmp_path / f"{name}.il").write_text(rtlil.convert(rom, name=name))
    script = "".join(
        f"read_rtlil {name}.il; proc; memory_collect; write_verilog -noattr {name}.v; design -reset\n" for name in roms
    )
    (tmp_path / "emit.ys").write_text(script)
    subprocess.run([*YOSYS.find().command, "-q", "-s", "emit.ys"], cwd=tmp_path, check=True)
    shutil.copy(VERILOG, tmp_path)
    fill = " ".join(f"addresses[{k}] = {addr};" for k, addr in enumerate(ADDRESSES))
    (tmp_path / "bench.v").write_text(BENCH.format(last=len(ADDRESSES) - 1, fill=fill))
    sources = ["bench.v", "from_words.v", "from_file.v", VERILOG.name]
    subprocess.run(["iverilog", "-g2005", "-Wall", "-o", "bench", *sources], cwd=tmp_path, check=True)
    printed = subprocess.run(["vvp", "-n", "bench"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    pairs = [line.split() for line in printed.splitlines()]
    latency = 2 if output_register else 1
    assert [int(a, 16) for a, _ in pairs[latency:]] == ONE_LATER[: len(ADDRESSES) - latency]
    assert [a for a, _ in pairs[latency:]] == [b for _, b in pairs[latency:]]
