"""The LiteX module in a LiteX design: streams by a converter of LiteX, registers on its CSR bus."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import hwflow
from hwflow.sim.manifest import load_design
from hwflow.sim.testbench import VECTORS
from hwflow.sim.vectors import load_vectors, pack
from tests.exports.cores import run_icarus

DESIGN = '''\
import sys

from litex.gen import LiteXModule
from litex.gen.fhdl import verilog
from litex.soc.interconnect import csr_bus, stream
from migen import ClockDomain, Record, Signal

sys.path.insert(0, sys.argv[1])
import narrow


class Platform:
    sources = []
    def add_source(self, file):
        self.sources.append(file)


class Design(LiteXModule):
    """The core with a FIFO of LiteX on each side, and its CSRs on a bus."""
    def __init__(self):
        self.cd_sys = ClockDomain()
        self.core = core = narrow.Narrow(Platform())
        self.before = stream.SyncFIFO(core.sink.description, 4)
        self.behind = stream.SyncFIFO(core.source.description, 4, buffered=True)
        self.comb += [self.before.source.connect(core.sink), core.source.connect(self.behind.sink)]
        self.bus = csr_bus.Interface(data_width=32, address_width=14)
        # a bank has one page of the address space; its registers are in the order of the module's CSRs
        self.bank = csr_bus.CSRBank(core.get_csrs(), 0, self.bus)


design = Design()
sink, source, bus = design.before.sink, design.behind.source, design.bus
ios = {design.cd_sys.clk, design.cd_sys.rst, *bus.flatten()}
for endpoint in (sink, source):
    ios |= {endpoint.valid, endpoint.ready, endpoint.last, endpoint.first, endpoint.data, endpoint.keep}
names = {"clk": design.cd_sys.clk, "rst": design.cd_sys.rst}
names |= {f"s_{n}": getattr(sink, n) for n in ("valid", "ready", "last", "first", "data", "keep")}
names |= {f"m_{n}": getattr(source, n) for n in ("valid", "ready", "last", "first", "data", "keep")}
names |= {f"bus_{n}": getattr(bus, n) for n in ("adr", "we", "re", "dat_w", "dat_r") }
for name, signal in names.items():
    signal.name_override = name
verilog.convert(design, ios, name="litex_top").write("litex_top.v")
print(*[file.rsplit("/", 1)[1] for file in Platform.sources])
print(*[csr.name for csr in design.core.get_csrs()])
'''

BENCH = """\
module bench;
  reg clk = 0, rst = 1;
  always #5 clk = !clk;
  initial #42 rst = 0;
  reg [36:0] rows [0:{beats}];  // keep, last, data
  reg [7:0] expected [0:{results}];
  initial begin
{inputs}
{outputs}
  end
  integer at = 0, got = 0, wrong = 0;
  reg go = 0, take = 0;
  always @(negedge clk) begin go = $random; take = $random; end
  reg valid = 0, m_ready = 0;
  wire ready, m_valid, m_last;
  wire [7:0] m_data;
  wire taken = valid && ready;
  reg [13:0] adr = 0;
  reg we = 0, re = 0;
  reg [31:0] dat_w = 0;
  wire [31:0] dat_r;
  litex_top dut (
    .clk(clk), .rst(rst), .s_valid(valid), .s_ready(ready), .s_first(1'b0), .s_last(rows[at][32]),
    .s_data(rows[at][31:0]), .s_keep(rows[at][36:33]), .m_valid(m_valid), .m_ready(m_ready), .m_last(m_last),
    .m_first(), .m_data(m_data), .m_keep(),
    .bus_adr(adr), .bus_we(we), .bus_re(re), .bus_dat_w(dat_w), .bus_dat_r(dat_r)
  );
  always @(posedge clk) if (!rst) begin
    if (taken) at <= at + 1;
    if (taken || !valid) valid <= go && at + taken < {beats};
    m_ready <= take;
    if (m_valid && m_ready) begin
      if (m_data !== expected[got] || m_last !== (got % 5 == 4)) wrong <= wrong + 1;
      got <= got + 1;
    end
  end
  task read(input [13:0] where);
    begin
      @(posedge clk) adr <= where; re <= 1;
      @(posedge clk) re <= 0;
      @(posedge clk) ;
      @(negedge clk) $write("%0d ", dat_r);
    end
  endtask
  task status; begin read(1); read(2); read(3); $display("wrong %0d", wrong); end endtask
  initial begin
    wait (got == {results}) ;
    repeat (3) @(posedge clk) ;
    status;
    @(posedge clk) adr <= 0; we <= 1; dat_w <= 1;
    @(posedge clk) we <= 0; dat_w <= 0;
    @(posedge clk) ;
    status;
    $finish;
  end
  initial #200000 begin $display("too late"); $finish; end
endmodule
"""


@pytest.fixture(scope="module")
def litex(outs, tmp_path_factory):
    """(the export, the folder with what LiteX made of it)."""
    folder = tmp_path_factory.mktemp("litex")
    done = hwflow.export(outs["narrow"], "litex", folder / "narrow")
    (folder / "design.py").write_text(DESIGN)
    made = subprocess.run(
        [sys.executable, "design.py", done.folder], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert made.returncode == 0, made.stderr
    return done, folder, made.stdout.splitlines()


def test_streams_and_registers(outs, litex):
    """Golden frames through it; then frames_in, frames_out and status, before and after a reset by control."""
    done, folder, printed = litex
    assert printed[0] == "narrow.v narrow_design.v"
    assert printed[1].split() == ["control", "status", "frames_in", "frames_out"]
    design = load_design(outs["narrow"])
    vectors = load_vectors(outs["narrow"] / VECTORS)
    (stream,), (sink,) = design.inputs, design.outputs
    words = [int.from_bytes(b.tobytes(), "little") for b in pack(stream, vectors["s_axis"]).reshape(-1, 4)]
    keeps = [0b1111 if k % 2 == 0 else 0b0111 for k in range(len(words))]
    rows = [keep << 33 | (k % 2) << 32 | w for k, (w, keep) in enumerate(zip(words, keeps, strict=True))]
    results = pack(sink, vectors["m_axis"]).reshape(-1).tolist()
    text = BENCH.format(
        beats=len(rows), results=len(results),
        inputs="\n".join(f"    rows[{k}] = 37'd{row};" for k, row in enumerate(rows)),
        outputs="\n".join(f"    expected[{k}] = 8'd{value};" for k, value in enumerate(results)),
    )
    (folder / "bench.v").write_text(text)
    assert len(rows) == 8 and len(results) == 20
    files = ["bench.v", "litex_top.v", *(done.folder / "rtl" / name for name in printed[0].split())]
    ran = run_icarus(folder, "bench", files)
    assert ran.stdout.splitlines() == ["0 4 4 wrong 0", "0 0 0 wrong 0"], ran.stdout
