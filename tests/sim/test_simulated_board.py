"""A simulated board behind a terminal: a handwritten top that sends back what it gets, plus one."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from hwflow.toolchain.verilator import VERILATOR
from sim.sim_errors import ManifestError, SimError, SimulatorFailed
from sim.simulated_board import SimulatedBoard, write_simulation

# 16 cycles a bit; bytes wait in a queue of 16. Resets itself for 4 cycles. `first` is sent before the first answer.
ECHO = """
module board_simulation (input wire clk, input wire uart_rx, output wire uart_tx);
  wire pin, rx;
  assign pin = uart_rx;
  IB buffer (.I(pin), .O(rx));
  reg [2:0] started = 0;
  reg [3:0] rx_bit = 0, tx_bit = 0;
  reg [4:0] rx_count = 0, tx_count = 0;
  reg [7:0] rx_byte = 0, tx_byte = 0;
  reg [7:0] queue [0:15];
  reg [4:0] written = 0, read = 0;
  reg tx = 1, first = 1, synchronised = 1;
  assign uart_tx = tx;
  always @(posedge clk) begin
    synchronised <= rx;
    if (!started[2]) started <= started + 1;
    else begin
      if (rx_bit == 0) begin
        if (!synchronised) begin rx_bit <= 1; rx_count <= 23; end
      end else if (rx_count != 0) rx_count <= rx_count - 1;
      else begin
        rx_count <= 15;
        if (rx_bit == 9) begin
          rx_bit <= 0;
          queue[written[3:0]] <= rx_byte + 8'd1;
          written <= written + 1;
        end else begin rx_byte <= {synchronised, rx_byte[7:1]}; rx_bit <= rx_bit + 1; end
      end
      if (tx_count != 0) tx_count <= tx_count - 1;
      else if (tx_bit == 0) begin
        if (written != read) begin
          tx <= 0; tx_bit <= 1; tx_count <= 15;
          tx_byte <= first ? 8'd100 : queue[read[3:0]];
          if (!first) read <= read + 1;
          first <= 0;
        end
      end else begin
        tx_count <= tx_bit == 10 ? 0 : tx_bit == 9 ? 12 : 15;  // a short stop bit: no byte may wait longer and longer
        tx <= tx_bit < 9 ? tx_byte[tx_bit[2:0] - 3'd1] : 1'b1;
        tx_bit <= tx_bit == 10 ? 0 : tx_bit + 1;
      end
    end
  end
endmodule
"""


def emit_echo(out: Path, baud: float = 1e6, verilog: str = ECHO) -> Path:
    """What `synth` leaves of a board's simulation, at 16 MHz."""
    folder = out / "board" / "simulation"
    folder.mkdir(parents=True)
    description = {
        "part": {"family": "ecp5"}, "sources": ["design.v"], "clock": {"design_mhz": 16.0},
        "simulation": {"top": "board_simulation", "source": "board/simulation.v"}, "link": {"carrier": "serial"},
    }
    (out / "board" / "board.json").write_text(json.dumps(description))
    (out / "board" / "simulation.v").write_text(verilog)
    (out / "board" / "top.v").write_text("module unused; endmodule\n")
    (out / "design.v").write_text("module unused_design; endmodule\n")
    (folder / "settings.h").write_text(
        f"#define CLOCK_HZ 16e6\n#define BAUD {baud}\n#define STARTUP_CYCLES 8\n#define QUIET_CYCLES 2000\n"
    )
    write_simulation(out)
    return out


@pytest.fixture(scope="module")
def simulated():
    """simulated(out, **options): a :class:`SimulatedBoard` with Verilator as it is found."""
    found = VERILATOR.find()
    return partial(SimulatedBoard, command=found.command, environment=found.environment)


@pytest.fixture(scope="module")
def echo(tmp_path_factory):
    return emit_echo(tmp_path_factory.mktemp("echo") / "out")


class Host:
    """The other end of the terminal."""

    def __init__(self, board):
        self.terminal = os.open(board.port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)

    def exchange(self, data, count):
        """Send ``data``; return the ``count`` bytes that come back."""
        return self.send(data, lambda got: len(got) >= count)

    def send(self, data, done):
        """Send ``data``; return what has come back when ``done`` says of it that it is all."""
        got, last = b"", time.monotonic()
        while not done(got):
            assert time.monotonic() - last < 30, f"nothing more comes after {len(got)} bytes"
            readable, writable, _ = select.select([self.terminal], [self.terminal] if data else [], [], 0.01)
            if writable:
                data = data[os.write(self.terminal, data[:200]) :]
            if readable:
                got += os.read(self.terminal, 4096)
                last = time.monotonic()
        return got


def plus_one(data: bytes) -> bytes:
    return bytes((byte + 1) % 256 for byte in data)


DATA = bytes(i * i * 7 % 256 for i in range(3000))


def test_bytes_pass_and_time_is_the_boards(echo, simulated):
    with simulated(echo) as board:
        host = Host(board)
        assert host.exchange(DATA, 3001) == b"d" + plus_one(DATA)
        passed = board.counters()
        assert board.seconds() >= 0.03  # 3000 bytes of 10 us each
        # silence: the board sleeps, its time goes on, and it wakes
        asleep = board.seconds()
        while board.seconds() < asleep + 0.1:
            time.sleep(0.01)
        assert host.exchange(b"\xff\x00", 2) == b"\x00\x01"
    expected = {"to_board": 3000, "to_host": 3001, "framing": 0, "resets": 0}
    assert {name: passed[name] for name in expected} == expected
    assert not any(passed[name] for name in ("lost", "added", "flipped", "delayed", "duplicated"))


def test_faults_are_the_same_for_the_same_seed(echo, simulated):
    def run(seed):
        with simulated(echo, faults=0.05, seed=seed) as board:
            def whole(got):
                c = board.counters()
                return c["to_board"] == 3000 and len(got) == 3001 - c["lost"] + c["added"] + c["duplicated"]

            got = Host(board).send(DATA, whole)
            counters = board.counters()
            counters.pop("cycles")  # the host is never as fast
            return got, counters

    got, counters = run(1)
    assert run(1) == (got, counters)
    assert run(2)[0] != got
    # 6000 bytes pass a line; each fault has a probability of 1 %: 60, and a deviation of 8
    for name in ("lost", "added", "flipped", "delayed", "duplicated"):
        assert 20 < counters[name] < 100, name
    assert counters["framing"] == 0


def test_a_reset_board_begins_anew(echo, simulated):
    with simulated(echo) as board:
        host = Host(board)
        assert host.exchange(b"ab", 3) == b"dbc"
        board.reset()
        while not board.counters()["resets"]:
            time.sleep(0.01)
        assert host.exchange(b"ab", 3) == b"dbc"  # `first` is as at the beginning


def test_a_host_may_come_back(echo, simulated):
    with simulated(echo) as board:
        host = Host(board)
        assert host.exchange(b"a", 2) == b"db"
        os.close(host.terminal)
        assert Host(board).exchange(b"b", 1) == b"c"


def test_a_line_at_another_speed_gives_framing_errors(tmp_path, simulated):
    with simulated(emit_echo(tmp_path / "out", baud=2e6)) as board:
        Host(board).send(b"\x00" * 20, lambda got: board.counters()["framing"] > 0)


def test_nothing_is_left_of_it(echo, simulated):
    with simulated(echo) as board:
        process, port = board._program, board.port
    assert process.poll() is not None
    assert not Path(port).exists()


def test_an_end_of_its_own_is_an_error(echo, simulated):
    with pytest.raises(SimulatorFailed, match="simulate the board: failed"), simulated(echo) as board:
        board.seconds()  # nothing is wrong yet
        board._program.send_signal(signal.SIGKILL)
        board._program.wait()
        with pytest.raises(SimulatorFailed, match="simulate the board: failed"):
            board.seconds()


def test_it_does_not_build(tmp_path, simulated):
    out = emit_echo(tmp_path / "out", verilog="module board_simulation (input clk); wire x = y; endmodule\n")
    with pytest.raises(SimulatorFailed, match="verilate the design: failed") as error, simulated(out):
        pass
    assert "%Error" in str(error.value) and len(str(error.value).splitlines()) < 20
    (out / "board" / "simulation" / "serial.cpp").unlink()
    with pytest.raises(ManifestError, match=r"serial.cpp: must be present to simulate the board, not missing"):
        simulated(out).__enter__()
    with pytest.raises(SimError, match=r"faults must be from 0 to 1, not 2"):
        simulated(out, faults=2)


def test_it_builds_without_hwflow(tmp_path):
    """The emitted folder's own script, and the program's own messages."""
    found = VERILATOR.find()
    echo = emit_echo(tmp_path / "out")
    program = tmp_path / "bin" / "verilator"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {" ".join(found.command)} "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, **found.environment, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    script = echo / "board" / "simulation" / "build.sh"
    built = subprocess.run(["sh", script], env=environment | {"CXXFLAGS": "-O0"}, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    board = echo / "board" / "simulation" / "build" / "board"
    for arguments, message in (
        (["--faults", "1.5"], "--faults must be from 0 to 1\n"),
        (["--seed", "x"], "--seed must be a number, not x\n"),
        (["--speed", "1"], "unknown option --speed\n"),
        (["--seed"], "usage: board [--faults RATE] [--seed NUMBER] [--status FILE]\n"),
    ):
        ran = subprocess.run([board, *arguments], capture_output=True, text=True)
        assert (ran.returncode, ran.stderr) == (1, message)
