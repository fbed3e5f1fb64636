"""Mapped netlists, with the options of a board's synthesis, compute what the golden model computes.

In Icarus Verilog, where an unconnected input or an uninitialised register shows as unknown. Simulating the emitted
Verilog proves nothing about synthesis: yosys' ice40_dsp miscompiles sums of registered products unless these registers
have the attribute ``keep`` (without it `dense, slower` ends with an unknown output here).
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import Design as Compiled
from hwflow.api.compiler import compile as compile_model
from hwflow.host.boundary_models import port_inputs
from hwflow.host.inputs import choose_inputs
from hwflow.sim.icarus_run import run_icarus
from hwflow.sim.manifest import Design
from hwflow.toolchain.icarus import ICARUS
from hwflow.verify.golden_vectors import golden_vectors
from tests.flow.networks import conv_network, dense_network, integer_network, requantizer_network
from tests.flow.sizes.netlists import FAMILIES, models, netlist_of, synthesize

# board, network, its options, frames per second, cells that must be there for the case to be worth its time
CASES = {
    "dense, slower": ("icebreaker", dense_network, {}, 500_000, {"SB_MAC16", "SB_RAM40_4K"}),
    "convolution, ice40": (
        "icebreaker", conv_network, {"side": 4, "channels": 3, "outputs": 3}, 20_000, {"SB_MAC16", "SB_RAM40_4K"},
    ),
    "convolution, ecp5": (
        "ulx3s_85f", conv_network, {"side": 4, "channels": 4, "outputs": 16}, 300_000,
        {"MULT18X18D", "DP16KD", "TRELLIS_DPR16X4", "CCU2C", "PFUMX"},
    ),
    "requantizers": ("ulx3s_85f", requantizer_network, {}, 400_000, {"MULT18X18D", "DP16KD", "PFUMX"}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_netlist_computes(tmp_path, case):
    """Two frames at full rate, two others with gaps and stalls."""
    board, network, options, fps, needed = CASES[case]
    path = network(tmp_path / "model.onnx", **options)
    compiled = compile_model(path, board, fps=fps)
    out = tmp_path / "out"
    compiled.write(out, "verilog")
    design, cells = netlist_of(out, FAMILIES[board])
    assert needed <= set(cells)
    run_netlist(compiled, path, out, design)


def run_netlist(compiled: Compiled, path: Path, out: Path, design: Design) -> None:
    icarus = ICARUS.find()
    for stall in (0.0, 0.3):
        inputs = choose_inputs(compiled.model, path, None, 2, np.random.default_rng(int(10 * stall)))
        vectors = golden_vectors(compiled.model, out, port_inputs(compiled.model, inputs.arrays))
        assert all(len(np.unique(expected)) > 3 for expected in vectors.expected.values())  # not just saturated
        options = {"command": icarus.command, "environment": icarus.environment}
        result = run_icarus(design, vectors, stall=stall, seed=1, **options)
        assert result.complaints() == []
        if not stall:
            assert result.latency == design.latency


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_sixteen_multipliers_in_the_eight_blocks_of_an_up5k(tmp_path, kind):
    """The least interval, with too few look-up tables for more multipliers, takes 16 products per cycle: 96 products of
    a frame in 6 cycles."""
    path = integer_network(tmp_path / "model.onnx", kind)
    compiled = compile_model(path, "icebreaker", budget={"lut": 1600})
    out = tmp_path / "out"
    compiled.write(out, "verilog")
    report = json.loads((out / "report.json").read_text())
    assert (report["multipliers"]["block"]["multipliers"], report["timing"]["initiation_interval"]) == (16, 6)
    assert report["resources"]["dsp"]["predicted"] == report["resources"]["dsp"]["available"] == 8
    design, cells = netlist_of(out, "ice40")
    packed = json.loads((out / "packed.json").read_text())["modules"][design.top]
    left = [cell for cell in packed["cells"].values() if cell["type"] == "SB_MAC16"]
    assert (cells["SB_MAC16"], len(left)) == (16, 8) and "SB_CARRY" in cells
    run_netlist(compiled, path, out, design)


# With an output register that waits, apart from reading, or without one.
MEMORY = """
module {name}_{width} (
    input clk, input we, input re, input rst, input take, input [13:0] wa, input [13:0] ra, input [{top}:0] d,
    output [{top}:0] o
);
    reg [{top}:0] q = 0, r = 0;
    assign o = {output};
    always @(posedge clk) if (take) r <= q;
    (* ram_style = "block", no_rw_check *) reg [{top}:0] words [0:{last}];
    integer i;
    initial for (i = 0; i < 512; i = i + 1) words[i] = i * 40503 + (i << 21);
    always @(posedge clk) begin
        if (we) words[wa[{address}:0]] <= d;
        if (rst) q <= 0; else if (re) q <= words[ra[{address}:0]];
    end
endmodule
"""
SINGLE_PORT = """
module {name} (
    input clk, input we, input [1:0] lanes, input re, input [9:0] a, input [17:0] d, output reg [17:0] q
);
    (* ram_style = "block" *) reg [17:0] words [0:1023];
    integer i;
    initial for (i = 0; i < 512; i = i + 1) words[i] = 18'd0;
    initial q = 0;
    always @(posedge clk) {body}
endmodule
"""
SINGLE_PORTS = {
    "read_first": """if (re) begin
        q <= words[a];
        if (we && lanes[0]) words[a][8:0] <= d[8:0];
        if (we && lanes[1]) words[a][17:9] <= d[17:9];
    end""",
    "no_change": "if (re) begin if (we) words[a] <= d; else q <= words[a]; end",
    "write_through": "if (re) begin q <= words[a]; if (we) begin words[a] <= d; q <= d; end end",
}
WIDTHS = {1: 16384, 2: 8192, 4: 4096, 9: 2048, 18: 1024, 36: 512}
DELAYED = (4, 36)


def blocks(widths: dict[int, int]) -> tuple[str, dict[str, int]]:
    """A module with a memory of each width, the single-port memories, and products; the widths of its outputs, each of
    which is a port: simulators go through a whole word for each of its bits that changes."""
    modules, instances, outputs = [], [], {}
    for width, depth in widths.items():
        address = depth.bit_length() - 2
        delayed = (("delayed", "r", "1'b0"),) if width in DELAYED else ()
        for kind, output, reset in (("memory", "q", "rst"), *delayed):
            sizes = {"width": width, "top": width - 1, "last": depth - 1, "address": address}
            modules.append(MEMORY.format(name=kind, output=output, **sizes))
            pins = f"clk, we, re, {reset}, take, wa, ra, d[{width - 1}:0], {kind}_q{width}"
            instances.append(f"wire [{width - 1}:0] {kind}_q{width};")
            instances.append(f"{kind}_{width} {kind}_{width}_0 ({pins});")
            outputs[f"{kind}_q{width}"] = width
    for name, body in SINGLE_PORTS.items():
        modules.append(SINGLE_PORT.format(name=name, body=body))
        instances.append(f"wire [17:0] {name}_q;")
        instances.append(f"{name} {name}_0 (clk, we, lanes, re, ra[9:0], d[17:0], {name}_q);")
        outputs[f"{name}_q"] = 18
    instances += [
        "wire [35:0] unsigned_product = d[17:0] * d[35:18];",
        "wire signed [35:0] signed_product = $signed(d[17:0]) * $signed(d[35:18]);",
        "wire signed [35:0] mixed_product = $signed({1'b0, d[16:0]}) * $signed(d[35:18]);",
        "reg signed [17:0] a = 0, b = 0, c = 0; reg signed [35:0] ab = 0, ac = 0, ac_later = 0;",
        "always @(posedge clk) begin",
        "    a <= d[17:0]; b <= d[35:18]; if (take) c <= d[26:9];",
        "    ab <= a * b; ac <= a * c; if (re) ac_later <= ac;",
        "end",
    ]
    outputs |= {"unsigned_product": 36, "signed_product": 36, "mixed_product": 36, "ab": 36, "ac_later": 36, "c": 18}
    ports = [f"output [{width - 1}:0] out_{name}" for name, width in outputs.items()]
    instances += [f"assign out_{name} = {name};" for name in outputs]
    whole = (
        "module blocks (input clk, input we, input re, input rst, input take, input [1:0] lanes, input [13:0] wa,\n"
        f"    input [13:0] ra, input [35:0] d, {', '.join(ports)});\n"
        + "".join(f"    {line}\n" for line in instances)
        + "endmodule\n"
    )
    return "".join(modules) + whole, outputs


def bench(outputs: dict[str, int]) -> str:
    """Random steps of both modules, whose outputs must be the same."""
    wires = "".join(f"    wire [{width - 1}:0] q_{name}, mapped_{name};\n" for name, width in outputs.items())
    ports = {
        f"{word}_ports": ", ".join(f".out_{name}({word}_{name})" for name in outputs) for word in ("q", "mapped")
    }
    words = {word: f"{{{', '.join(f'{word}_{name}' for name in outputs)}}}" for word in ("q", "mapped")}
    return BENCH.format(wires=wires, top=sum(outputs.values()) - 1, **ports, **words)


# Few addresses, so that what was written is read again; never both at one address in one cycle.
BENCH = """
module bench;
    reg clk = 0, we = 0, re = 0, rst = 0, take = 0;
    reg [1:0] lanes = 0;
    reg [13:0] wa = 0, ra = 0;
    reg [35:0] d = 0;
{wires}    integer cycle, wrong = 0, changes = 0;
    reg [{top}:0] last;
    blocks rtl (
        .clk(clk), .we(we), .re(re), .rst(rst), .take(take), .lanes(lanes), .wa(wa), .ra(ra), .d(d), {q_ports}
    );
    blocks_netlist netlist (
        .clk(clk), .we(we), .re(re), .rst(rst), .take(take), .lanes(lanes), .wa(wa), .ra(ra), .d(d), {mapped_ports}
    );
    initial begin
        for (cycle = 0; cycle < 800; cycle = cycle + 1) begin
            we = $random; re = $random; take = $random; lanes = $random; rst = ($random & 15) == 0;
            wa = {{$random}} & 14'h013f; ra = {{$random}} & 14'h013f; d = {{$random, $random}};
            if (wa == ra && cycle % 2) ra = ra ^ 14'h0008;
            if (wa[8:0] == ra[8:0]) wa = wa ^ 14'h0001;
            #1;
            last = {q};
            if ({q} !== {mapped}) begin
                if (wrong < 5) $display("cycle %0d: %h must be %h", cycle, {mapped}, {q});
                wrong = wrong + 1;
            end
            clk = 1; #1 clk = 0; #1;
            if ({q} !== last) changes = changes + 1;
        end
        $display("wrong %0d, enough changes %0d", wrong, changes > 400);
    end
endmodule
"""


def test_models_of_ecp5_blocks(tmp_path, capsys):
    """Ours of DP16KD and MULT18X18D, with and without registers, against what they were mapped from."""
    text, outputs = blocks(WIDTHS)
    (tmp_path / "blocks.v").write_text(text)
    (tmp_path / "bench.v").write_text(bench(outputs))
    (tmp_path / "models.v").write_text(models("ecp5"))
    cells = synthesize(tmp_path, "blocks.v", "blocks", "ecp5", name="blocks_netlist")
    assert cells["DP16KD"] == len(WIDTHS) + len(DELAYED) + len(SINGLE_PORTS) and cells["MULT18X18D"] == 5
    text = (tmp_path / "netlist.v").read_text()
    assert {f".DATA_WIDTH_B(32'd{width})" in text for width in WIDTHS} == {True}
    assert text.count('REGMODE_B("OUTREG")') == len(DELAYED) and text.count('REGMODE_A("OUTREG")') == 1  # of 36 bits
    for stage, count in {"INPUTA": 2, "INPUTB": 2, "PIPELINE": 1, "OUTPUT": 2}.items():
        assert text.count(f'.REG_{stage}_CLK("CLK0")') == count
    # by hand: 4 + 36; a, b, ab, ac and ac_later, while c is an output too, stays, and is copied
    assert "184 flip-flops absorbed: 40 into 11 block RAMs, 144 into 5 multipliers" in capsys.readouterr().out
    for mode in ("NORMAL", "READBEFOREWRITE", "WRITETHROUGH"):
        assert f'.WRITEMODE_A("{mode}")' in text
    command = ["iverilog", "-g2005", "-o", "bench", "bench.v", "blocks.v", "netlist.v", "models.v"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    printed = subprocess.run(["vvp", "-n", "bench"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert printed == "wrong 0, enough changes 1\n"
