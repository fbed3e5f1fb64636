"""The streams of a weight memory beside the model of its memory, in Icarus Verilog."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from pathlib import Path

from amaranth.back import rtlil

from hdl_lib.external.fetch_plan import FetchPlan
from hdl_lib.external.sdram import SdramChip
from hdl_lib.external.spi_flash import SpiFlashChip, SpiFlashTiming
from hdl_lib.external.spram import SpramChip, SpramTiming
from hdl_lib.external.weight_memory import WeightMemory, image_words
from hwflow.toolchain.yosys import YOSYS

MODELS = [Path(__file__).resolve().parents[3] / f"sim/verilog/{name}.v" for name in ("sdram", "spram", "flash")]

# Small, and so slow that tREF comes often: 8 us between refreshes.
CHIP = SdramChip(
    "bench", banks=4, rows=16, columns=32, width=16, rcd=20, rp=20, ras=45, rc=70, wr=20, rfc=70, refresh=4000,
    two_mhz=100, source="made up", power_up=2000,
)

RAM = SpramChip("bench", width=16, words=4096)

FLASH = SpiFlashChip("bench", size=1 << 22, source="made up", power_up=2000)


def beside(plan: FetchPlan, file: str) -> tuple[str, str]:
    """Return the Verilog of the memory, and what connects the core to it."""
    chip, width = plan.timing.chip, plan.timing.chip.width
    model = parameters(plan, plan.pages, file)
    if isinstance(plan.timing, SpramTiming):
        pins = {"en": 1, "we": 1, "a": (chip.words - 1).bit_length(), "dq_o": width, "dq_i": width}
        memory = f"""
    hwflow_spram #({model}) memory(.clk(clk), .en(en), .we(we), .a(a), .dq_i(dq_o), .dq_o(dq_i));"""
    elif isinstance(plan.timing, SpiFlashTiming):
        pins = {"cs_n": 1, "dq_o": 1, "dq_oe": 1, "hold": 1, "dq_i": 4}
        memory = f"""
    reg selected_n = 1, sent = 0, drives = 0, holds = 0;
    wire [3:0] data;
    reg [3:0] taken;
    assign dq_i = taken;
    always @(posedge clk) begin
        selected_n <= cs_n; sent <= dq_o; drives <= dq_oe; holds <= hold;
        taken <= data;
    end
    hwflow_flash #({model}) memory(
        .clk(~clk), .cs_n(selected_n), .dq_i({{holds, holds, 1'b0, sent}}), .dq_oe({{holds, holds, 1'b0, drives}}),
        .dq_o(data), .sends());"""
    else:
        pins = dict.fromkeys(("cke", "cs_n", "ras_n", "cas_n", "we_n", "dq_oe"), 1)
        pins |= {"ba": (chip.banks - 1).bit_length(), "a": max(11, (chip.rows - 1).bit_length()), "dqm": width // 8}
        pins |= {"dq_o": width, "dq_i": width}
        memory = f"""
    wire [{width - 1}:0] data;
    reg [{width - 1}:0] taken;
    assign dq_i = taken;
    always @(negedge clk) taken <= data;
    hwflow_sdram #({model}) memory(
        .clk(~clk), .cke(cke), .cs_n(cs_n), .ras_n(ras_n), .cas_n(cas_n), .we_n(we_n), .ba(ba), .a(a), .dqm(dqm),
        .dq_i(dq_o), .dq_oe(dq_oe), .dq_o(data));"""
    wires = "".join(f"\n    wire [{bits - 1}:0] {pin};" for pin, bits in pins.items())
    return wires + memory, "".join(f", .pins__{pin}({pin})" for pin in pins)


def parameters(plan: FetchPlan, pages: int, file: str = "") -> str:
    """Return the model's parameters."""
    chip, timing = plan.timing.chip, plan.timing
    if isinstance(timing, SpramTiming):
        return f'.WIDTH({chip.width}), .WORDS({chip.words}), .IMAGE({image_words(plan)}), .FILE("{file}")'
    if isinstance(timing, SpiFlashTiming):
        return (
            f".WORDS({image_words(plan)}), .OFFSET({chip.offset}), .T_RES1({round(1000 * chip.wake)}), "
            f'.T_CSH({round(1000 * chip.deselect)}), .CLOCK_PS({ceil(10**12 / timing.clock_hz)}), .FILE("{file}")'
        )
    times = {
        "RCD": chip.rcd, "RP": chip.rp, "RAS": chip.ras, "RC": chip.rc, "WR": chip.wr, "RFC": chip.rfc,
        "REFRESH": chip.refresh, "POWER_UP": chip.power_up,
    }
    numbers = {
        "BANKS": chip.banks, "ROWS": chip.rows, "COLUMNS": chip.columns, "WIDTH": chip.width, "PAGES": pages,
        "CAS": timing.cas, "CLOCK_PS": ceil(Fraction(10**12) / timing.clock_hz),
        **{f"T_{name}": round(1000 * value) for name, value in times.items()},
    }
    return ", ".join([*(f".{name}({value})" for name, value in numbers.items()), f'.FILE("{file}")'])


def run(folder: Path, bench: str, *sources: str) -> str:
    """Simulate module ``bench`` (its text) with Verilog ``sources``; return what it prints."""
    (folder / "bench.v").write_text(bench)
    for number, text in enumerate(sources):
        (folder / f"source{number}.v").write_text(text)
    files = ["bench.v", *(f"source{number}.v" for number in range(len(sources))), *map(str, MODELS)]
    command = ["iverilog", "-g2012", "-s", "bench", "-o", "bench.vvp", *files]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    made = subprocess.run(["vvp", "bench.vvp"], cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    return made.stdout + made.stderr


def memory_verilog(folder: Path, memory: WeightMemory) -> str:
    """Return the core as Verilog."""
    (folder / "memory.il").write_text(rtlil.convert(memory, name="weight_memory"))
    script = "read_rtlil memory.il; proc; memory_collect; write_verilog -noattr memory.v"
    subprocess.run([*YOSYS.find().command, "-q", "-p", script], cwd=folder, check=True, capture_output=True)
    return (folder / "memory.v").read_text()


def queue_word(number: int) -> int:
    """Return what is sent to a queue as its word ``number``."""
    return number * 40503 & 0xFFFF


def streams_bench(
    plan: FetchPlan, stalls: Sequence[int], beats: int, *, filled: bool = True, words: Sequence[int] = (),
    gaps: Sequence[int] = (), resets: Sequence[int] = (),
) -> str:
    """Return a bench that takes ``beats`` of each stream, at most one in 256 / (256 - stall) cycles on average, and
    prints "stream value cycle" of each; unless ``filled`` it loads ``words`` first; a flash has its file in any case.
    ``gaps``: of what it sends to each queue, whose outputs are the last streams; word k is :func:`queue_word`.
    ``resets``: cycles in which there is one, which prints "reset": all that is sent begins anew, and so does what is
    counted."""
    regions, count, width = len(plan.regions), len(plan.regions) + len(plan.queues), plan.timing.chip.width
    ports = "".join(
        f", .{name}__payload(data{k}), .{name}__valid(valid{k}), .{name}__ready(ready{k})"
        for k, name in enumerate([f"o{k}" for k in range(regions)] + [f"memory_o{k}" for k in range(count - regions)])
    )
    ports += "".join(
        f", .memory_i{k}__payload(sent{k} * 16'd40503), .memory_i{k}__valid(send{k}), .memory_i{k}__ready(taken{k})"
        for k in range(count - regions)
    )
    sending = "".join(
        f"""
    reg [15:0] sent{k}; reg send{k}; wire taken{k};
    initial begin sent{k} = 0; send{k} = 0; end
    always @(posedge clk) begin
        if (send{k} && taken{k}) begin $display("s{k} %0d %0d", sent{k}, cycle); sent{k} <= sent{k} + 1; end
        if (!send{k} || taken{k}) send{k} <= !rst && ($urandom & 255) >= {gap};
        if (rst) begin sent{k} <= 0; send{k} <= 0; end
    end""" for k, gap in enumerate(gaps)
    )
    streams = "".join(
        f"""
    wire [{width - 1}:0] data{k}; wire valid{k}; reg ready{k}; integer got{k};
    initial begin got{k} = 0; ready{k} = 0; end
    always @(posedge clk) begin
        if (valid{k} && ready{k} && !rst) begin
            $display("{k} %0d %0d", data{k}, cycle);
            got{k} <= got{k} + 1;
        end
        if (rst) got{k} <= 0;
        ready{k} <= ($urandom & 255) >= {stall};
    end""" for k, stall in enumerate(stalls)
    )
    again = "".join(
        f"\n        if (cycle == {cycle}) rst <= 1; if (cycle == {cycle + 1}) begin rst <= 0; $display(\"reset\"); end"
        for cycle in resets
    )
    done = " && ".join(f"got{k} >= {beats}" for k in range(count))
    memory, pins = beside(plan, "image.mem" if filled or plan.timing.read_only else "")
    feed = "\n".join(f"        image[{n}] = {word};" for n, word in enumerate(words))
    return f"""
module bench;
    reg clk = 0, rst = 1;
    integer cycle = 0;
    always #5 clk = ~clk;
    always @(posedge clk) begin
        cycle <= cycle + 1;
        if (cycle == 2) rst <= 0;{again}
        if (cycle > 400000) $fatal(1, "hung");
        if ({done}) begin $display("done"); $finish; end
    end
    {streams}
    {sending}
    wire error, load_ready;{memory}
    reg [{width - 1}:0] image [0:{max(1, len(words)) - 1}];
    integer next = 0;
    initial begin
{feed}
    end
    reg pause = 0;
    wire load_valid = next < {len(words)} && !pause && !rst;
    always @(posedge clk) begin
        pause <= $urandom;
        if (load_valid && load_ready) next <= next + 1;
        if (error) begin $display("error"); $finish; end
    end
    weight_memory dut(.clk(clk), .rst(rst){ports}{pins}, .pins__filled(1'd{int(filled)}),
        .pins__load(image[next]), .pins__load_valid(load_valid), .pins__load_ready(load_ready), .error(error));
endmodule
"""
