"""Building, reusing, failing, waveforms; cocotb on Verilator."""

import json

import numpy as np
import pytest

from hwflow.toolchain.verilator import VERILATOR
from sim.cocotb_run import run_cocotb
from sim.sim_errors import SimulatorFailed
from sim.vectors import Vectors
from tests.sim.test_compression import hierarchy


def test_the_program_is_built_once_and_follows_the_sources(verilator, plus, copy_of):
    design, vectors, set_weights = plus
    verilator(design, vectors)
    programs = list((design.directory / "testbench" / "build" / "verilator").glob("*/harness"))
    assert len(programs) == 1
    built = programs[0].stat().st_mtime_ns
    set_weights("addend.mem", "02\n")
    assert not verilator(design, vectors).ok
    assert programs[0].stat().st_mtime_ns == built

    out = copy_of(design)
    (out / "weights" / "addend.mem").write_text("01\n")
    text = (out / "design.v").read_text()
    (out / "design.v").write_text(text.replace("s_axis_tdata + addend", "s_axis_tdata - addend"))
    result = verilator(out, vectors, build_folder=design.directory / "testbench" / "build" / "verilator")
    assert result.mismatches == 16
    assert programs[0].stat().st_mtime_ns == built


def test_frames_are_counted_while_they_run(verilator, plus):
    design, _, _ = plus
    x = np.arange(4 * 20_000).reshape(20_000, 4, 1) % 256
    counts = []
    vectors = Vectors.of(design, {"x": x}, {"y": (x + 1) % 256})
    assert verilator(design, vectors, on_frames=counts.append).cycles == 7 * 20_000
    # After 65,536 cycles and twice as many: frame f's last beat leaves in cycle 7 f + 6.
    assert counts == [65_536 // 7, 131_072 // 7]


def test_verilog_that_does_not_compile_is_a_failure_of_the_simulator(verilator, icarus, plus, copy_of):
    design, vectors, _ = plus
    out = copy_of(design)
    (out / "design.v").write_text((out / "design.v").read_text().replace("endmodule", "endmodul"))
    with pytest.raises(
        SimulatorFailed, match=r"verilate the design: failed \(log: .*build.log\)\n.*design.v:"
    ) as caught:
        verilator(out, vectors)
    assert caught.value.log.is_file()
    with pytest.raises(
        SimulatorFailed, match=r"build the design with cocotb on icarus: failed \(log: .*build.log\)\n.*syntax error"
    ):
        icarus(out, vectors)


def test_a_port_of_another_width_is_named(verilator, icarus, plus, copy_of):
    design, vectors, _ = plus
    out = copy_of(design)
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["inputs"][0]["element_bytes"] = 2
    (out / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(SimulatorFailed, match="s_axis_tdata must be 16 bits wide"):
        verilator(out, vectors)
    with pytest.raises(SimulatorFailed, match="s_axis_tdata must be 16 bits wide, not 8"):
        icarus(out, vectors)


def test_a_weight_file_that_is_no_hex_is_a_failure_of_the_simulator(verilator, plus):
    design, vectors, set_weights = plus
    set_weights("addend.mem", "gg\n")
    with pytest.raises(SimulatorFailed, match=r"run the Verilator harness: failed .*\n(.*\n)*.*addend.mem"):
        verilator(design, vectors)


def test_waveforms(verilator, icarus, plus, tmp_path):
    design, vectors, _ = plus
    assert icarus(design, vectors, wave=tmp_path / "b" / "i.vcd").ok
    assert "m_axis_tvalid" in (tmp_path / "b" / "i.vcd").read_text()
    assert icarus(design, vectors, wave=tmp_path / "i.fst").ok
    assert (tmp_path / "i.fst").stat().st_size > 0
    assert verilator(design, vectors, wave=tmp_path / "v.fst").ok
    assert b"m_axis_tvalid\0" in hierarchy((tmp_path / "v.fst").read_bytes())
    with pytest.raises(ValueError, match=r"a waveform file must end in .vcd or .fst, not 'v.txt'"):
        verilator(design, vectors, wave=tmp_path / "v.txt")


def test_cocotb_on_verilator_sees_what_it_sees_on_icarus(icarus, plus):
    design, vectors, set_weights = plus
    found = VERILATOR.find()

    def on_verilator(**options):
        return run_cocotb(
            design, vectors, simulator="verilator", command=found.command, environment=found.environment, **options
        )

    result = on_verilator()
    assert result.ok
    assert (result.latency, result.initiation_interval, result.cycles) == (3, 7, 28)
    assert on_verilator(stall=0.4, seed=5).streams == icarus(design, vectors, stall=0.4, seed=5).streams
    set_weights("defect.mem", "01\n")
    assert on_verilator().first_mismatch == icarus(design, vectors).first_mismatch
