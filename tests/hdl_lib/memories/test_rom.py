"""Rom: the words arrive, when the docstring says; the Verilog of the file-based one agrees."""

import random
import shutil
import subprocess

import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator

from hdl_lib.memories.rom import VERILOG, Rom, Table, banks_of, lies_in_block, readmemh_text
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


def test_rows_of_a_table_in_banks():
    lines = readmemh_text(range(1200), 36).splitlines()
    assert len(lines) == 512 and {len(line) for line in lines} == {27}
    assert lines[3] == f"{1027:09x}{515:09x}{3:09x}"
    assert lines[511] == f"{0:09x}{1023:09x}{511:09x}"


@pytest.mark.parametrize(
    ("width", "depth", "banks"),
    [
        (256, 1152, 3),  # 22 block RAMs; 29 of 2048 words of 9 bits
        (36, 1152, 3),  # 3; 4
        (36, 1024, 1),  # 2; 2 of 1024 words of 18
        (9, 2048, 1),  # 1; 1 of 2048 words of 9
        (256, 512, 1),
        (4, 5000, 1),  # 2 of 512 words of 36 (of ten words each); 2 of 8192 words of 2
        (1, 20000, 10),  # beyond the deepest block; 2 in 10 banks of 2048 words as in 40 of 512
        (96, 5504, 3),  # 32 of 2048 words of 9; 30 of 512 words of 36 would take 11 banks to choose from
        (54, 1376, 3),  # 5; 6 of 1024 or 2048, and synthesis would take the 5 for one bank of 2048 as well
        (10, 1280, 3),  # 1 of 512 words of 36; 2 of 1024 or 2048
        (8, 8192 * 2048, 8192),  # a row of 65,536 bits, the most there may be
        (8, 8192 * 2048 + 1, 1),
    ],
)
def test_banks_where_they_save_block_rams(width, depth, banks):
    assert banks_of(width, depth) == banks


def test_rows_of_many_banks():
    words = list(range(9 * 2048 - 5))
    lines = readmemh_text(words, 16).splitlines()
    assert (banks_of(16, len(words)), len(lines)) == (9, 2048)
    assert lines[1] == "".join(f"{bank * 2048 + 1:04x}" for bank in reversed(range(9)))
    assert lines[2047] == "0000" + "".join(f"{bank * 2048 + 2047:04x}" for bank in reversed(range(8)))


BENCH = """
module bench;
    reg clk = 0;
    reg [{top}:0] addr = 0;
    wire [{high}:0] a, b;
    integer k;
    reg [{top}:0] addresses [0:{last}];
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


def side_by_side(folder, words, width, output_register, addresses):
    """What a table written out and one in a file show for each address, both emitted the way designs are, in Icarus."""
    (folder / "weights").mkdir()
    (folder / "weights" / "table.mem").write_text(readmemh_text(words, width))
    roms = {
        "from_words": Rom(width, len(words), init=words, output_register=output_register),
        "from_file": Rom(width, len(words), file="weights/table.mem", output_register=output_register),
    }
    for name, rom in roms.items():
        (folder / f"{name}.il").write_text(rtlil.convert(rom, name=name))
    script = "".join(
        f"read_rtlil {name}.il; proc; memory_collect; write_verilog -noattr {name}.v; design -reset\n" for name in roms
    )
    (folder / "emit.ys").write_text(script)
    subprocess.run([*YOSYS.find().command, "-q", "-s", "emit.ys"], cwd=folder, check=True)
    shutil.copy(VERILOG, folder)
    fill = " ".join(f"addresses[{k}] = {addr};" for k, addr in enumerate(addresses))
    top, last = roms["from_file"].address_width - 1, len(addresses) - 1
    (folder / "bench.v").write_text(BENCH.format(last=last, fill=fill, top=top, high=width - 1))
    sources = ["bench.v", "from_words.v", "from_file.v", VERILOG.name]
    subprocess.run(["iverilog", "-g2005", "-Wall", "-o", "bench", *sources], cwd=folder, check=True)
    printed = subprocess.run(["vvp", "-n", "bench"], cwd=folder, check=True, capture_output=True, text=True).stdout
    latency = 2 if output_register else 1
    return [tuple(int(word, 16) for word in line.split()) for line in printed.splitlines()[latency:]]


@pytest.mark.parametrize("output_register", [False, True])
def test_verilog_of_file_agrees_with_words(tmp_path, output_register):
    shown = side_by_side(tmp_path, WORDS, 10, output_register, ADDRESSES)
    assert [a for a, _ in shown] == ONE_LATER[: len(shown)] and len(shown) >= len(ADDRESSES) - 2
    assert all(a == b for a, b in shown)


def test_a_file_of_deep_banks_has_rows_of_2048_words():
    lines = readmemh_text(range(5504), 96).splitlines()
    assert len(lines) == 2048
    assert lines[5] == f"{4101:024x}{2053:024x}{5:024x}" and lines[2047] == f"{0:024x}{4095:024x}{2047:024x}"


@pytest.mark.parametrize("output_register", [False, True])
def test_banks_show_the_words_in_order(tmp_path, output_register):
    """More words than four banks hold; the choice reaches further than one register does."""
    rng = random.Random(5)
    width, words = 40, [rng.getrandbits(40) for _ in range(2100)]
    assert banks_of(width, len(words)) == 5
    addresses = [0, 511, 512, 1023, 1024, 2047, 2048, 2099, 3, *(rng.randrange(2100) for _ in range(40))]
    shown = side_by_side(tmp_path, words, width, output_register, addresses)
    expected = [words[addr] for addr in addresses][: len(shown)]
    assert [b for _, b in shown] == expected and [a for a, _ in shown] == expected


@pytest.mark.parametrize(
    ("width", "depth", "block"),
    [
        (8, 256, False),  # 2048 bits in one block RAM
        (8, 257, True),
        (1, 2049, True),
        (96, 64, False),  # three block RAMs of 36 bits
        (96, 65, True),
        (200, 12, False),  # many bits in few words
        (18, 3000, True),
        (64, 1, False),
    ],
)
def test_tables_that_fill_an_eighth_of_their_block_rams_lie_there(width, depth, block):
    assert lies_in_block(width, depth) is block
