"""A board's top behind gigabit Ethernet, in Icarus Verilog: cocotbext-eth at its RGMII pins."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from boards import find_board
from hwflow.codegen.board.board_files import write_board
from hwflow.codegen.board.carriers import LinkOptions
from hwflow.codegen.board.carriers.udp import CORE
from hwflow.errors import UsageError
from hwflow.toolchain.build import write_top_verilog
from hwflow.toolchain.ethernet.ethernet_core import write_ethernet_core
from hwflow.toolchain.yosys import YOSYS
from tests.codegen.plus_one import emit

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
pytest.importorskip("liteeth")
pytest.importorskip("cocotbext.eth")


def behind_ethernet(out: Path, board: str) -> dict:
    emit(out)
    return write_board(out, find_board(board), link=LinkOptions(ethernet="192.168.1.50"))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(output folder, board.json) of an ECPIX-5, with the core."""
    out = tmp_path_factory.mktemp("ethernet") / "out"
    board = behind_ethernet(out, "ecpix5_85f")
    write_top_verilog(out)
    return out, board


def test_arp_icmp_and_the_link(made, tmp_path):
    out, board = made
    # Icarus runs LiteEth's combinational processes for ever: they assign twice, without blocking
    script = f"read_verilog board/ethernet.v; hierarchy -top {CORE}; proc; opt_clean; write_verilog board/plain.v"
    found = YOSYS.find()
    subprocess.run([*found.command, "-q", "-p", script], cwd=out, check=True, env={**os.environ, **found.environment})
    settings = {
        "clock_ps": 8000, "startup_us": 30, "identity": board["link"]["identity"], "bytes": 120,
        "result": str(tmp_path / "result.json"),
    }
    (tmp_path / "bench.json").write_text(json.dumps(settings))
    sources = [HERE / "ethernet_bench.v", out / "board" / "simulation.v", out / "board" / "top.v", out / "design.v",
               out / "board" / "plain.v", ROOT / "sim" / "verilog" / "ecp5.v"]  # fmt: skip
    job = {
        "simulator": "icarus", "sources": [str(source) for source in sources], "top": "ethernet_bench",
        "module": "tests.toolchain.ethernet_peer", "build_folder": str(tmp_path / "build"), "run_folder": str(out),
        "build_log": str(tmp_path / "build.log"), "run_log": str(tmp_path / "run.log"),
        "results": str(tmp_path / "results.xml"),
        "environment": {"ETHERNET_BENCH": str(tmp_path / "bench.json"), "COCOTB_LOG_LEVEL": "WARNING"},
        "build_arguments": ["-g2012"], "run_arguments": [], "plusargs": [], "waves": False,
    }
    (tmp_path / "job.json").write_text(json.dumps(job))
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "-m", "sim.cocotb_launch", str(tmp_path / "job.json")], cwd=ROOT, env=environment, timeout=300,
        check=False, capture_output=True,
    )
    log = (tmp_path / "run.log").read_text() if (tmp_path / "run.log").is_file() else ""
    assert (tmp_path / "result.json").is_file(), log[-3000:]


def test_the_core_is_the_same_each_time_and_made_when_its_settings_change(made):
    out, board = made
    file = out / "board" / "ethernet.v"
    core, stamp = file.read_text(), file.stat().st_mtime_ns
    assert core.splitlines()[2] == f"module {CORE} ("  # behind the settings: no date
    write_ethernet_core(out, board)
    assert file.stat().st_mtime_ns == stamp
    file.write_text(core.replace("192.168.1.50", "192.168.1.51", 1))
    write_ethernet_core(out, board)
    assert file.read_text() == core


def test_what_is_written(tmp_path):
    table = behind_ethernet(tmp_path / "out", "colorlight_i9")
    assert table["sources"] == ["design.v", "board/ethernet.v"]
    link = table["link"]
    assert (link["carrier"], link["address"]) == ("udp", "192.168.1.50:18519")
    # by hand: 512 of 512 + 15 + 8 + 14 + 20 + 8 + 4 + 12 bytes of 125 million are payload, four a frame
    assert link["frames_per_second"] == pytest.approx(125e6 * 512 / 593 / 4)
    constraints = (tmp_path / "out" / "board" / "top.lpf").read_text()
    assert 'FREQUENCY PORT "eth_rgmii_0__rx_clk__io" 125000000.0 HZ' in constraints
    # a PLL makes the core's clock: a third of the design's 125 MHz
    top = (tmp_path / "out" / "board" / "top.il").read_text()
    dividers = dict(re.findall(r"parameter \\(CLKOP_DIV|CLKOS2_DIV) (\d+)", top))
    assert int(dividers["CLKOS2_DIV"]) == 3 * int(dividers["CLKOP_DIV"])


@pytest.mark.parametrize(
    "board, clock, address, message",
    [
        ("icebreaker", None, "192.168.1.50", "must have Ethernet that hwflow knows, not only another link"),
        ("colorlight_i5", None, "192.168.1", "must be an IPv4 address, not '192.168.1'"),
        ("colorlight_i5", 25, "192.168.1.50", "must be at least 40 MHz, not 25"),
    ],
)
def test_what_cannot_be(board, clock, address, message, tmp_path):
    emit(tmp_path / "out")
    with pytest.raises(UsageError) as error:
        write_board(tmp_path / "out", find_board(board), clock, link=LinkOptions(ethernet=address))
    assert message in str(error.value)
