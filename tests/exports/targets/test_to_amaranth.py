"""The component of Amaranth: converted to Verilog by Amaranth, it runs with the core's files."""

from __future__ import annotations

import importlib.util

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

import hwflow
from tests.exports.cores import FPS, run_icarus
from tests.formal.prover import yosys


def imported(folder, name):
    """The exported Python module."""
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Around(wiring.Component):
    """The component behind plain signals with the names that the golden test bench has."""

    def __init__(self, core, sizes):
        self.core = core
        self.sizes = sizes
        members = {"error": Out(1)}
        for port, size in sizes.items():
            way, back = (In, Out) if port.startswith("s") else (Out, In)
            members |= {f"{port}_tdata": way(8 * size), f"{port}_tkeep": way(size), f"{port}_tlast": way(1)}
            members |= {f"{port}_tvalid": way(1), f"{port}_tready": back(1)}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = self.core
        m.d.comb += self.error.eq(core.error)
        for port in self.sizes:
            member = getattr(core, port)
            data_, keep, last, valid, ready = (
                getattr(self, f"{port}_t{pin}") for pin in ("data", "keep", "last", "valid", "ready")
            )
            payload = member.payload
            pairs = [(payload.data, data_), (payload.keep, keep), (payload.last, last), (member.valid, valid)]
            pairs = pairs if port.startswith("s") else [(b, a) for a, b in pairs]
            pairs.append((ready, member.ready) if port.startswith("s") else (member.ready, ready))
            m.d.comb += [a.eq(b) for a, b in pairs]
        return m


@pytest.mark.parametrize("name", FPS)
def test_it_runs_as_verilog(name, outs, tmp_path):
    done = hwflow.export(outs[name], "amaranth", tmp_path / "amaranth")
    bench = hwflow.export(outs[name], "verilog", tmp_path / "bench")
    core = getattr(imported(done.folder, name), name.capitalize())()
    assert core.s_axis.signature.flip() == stream.Signature(core.s_axis.payload.shape())
    sizes = {port: len(getattr(core, port).payload.keep) for port in ("s_axis", "m_axis")}
    assert isinstance(core.m_axis.payload.shape(), data.StructLayout)
    text = rtlil.convert(Around(core, sizes), name=f"{name}_around", emit_src=False)
    (tmp_path / "around.il").write_text(text)
    yosys(tmp_path, "read_rtlil around.il; proc; write_verilog -noattr around.v")
    benched = (bench.folder / f"sim/{name}_tb.v").read_text().replace(f"    {name} dut (", f"    {name}_around dut (")
    (tmp_path / "bench.v").write_text(benched)
    files = [done.folder / "rtl" / f"{name}.v", done.folder / "rtl" / f"{name}_design.v"]
    ran = run_icarus(bench.folder, f"{name}_tb", [tmp_path / "bench.v", tmp_path / "around.v", *files], "+stall=20")
    assert ran.returncode == 0 and ran.stdout.startswith("PASS"), ran.stdout


def test_a_platforms_build_gets_the_files(outs, tmp_path):
    done = hwflow.export(outs["wide"], "amaranth", tmp_path / "amaranth")
    added = {}

    class Platform:
        def add_file(self, name, content):
            added[name] = content

    imported(done.folder, "wide").Wide().elaborate(Platform())
    assert set(added) == {"rtl/wide.v", "rtl/wide_design.v", *(f for f in done.files if f.startswith("weights/"))}
    assert all((done.folder / name).read_bytes() == content for name, content in added.items())
