# amaranth: UnusedElaboratable=no
"""Frames a second over every board's links, each measured on a simulated board: one Markdown row a board and carrier.

    python benchmarks/link_speed.py [--board B ...] [--carrier serial|udp|usb] [--bytes 64 --bytes 3072]

The design is a Relu, of as many bytes out as in, as fast as its link. The limit is the link's payload in long packets,
after framing (``frames_per_second`` of board.json). What is measured are the frames between the answers
to the first tenth and the last one, in the board's time. A serial line does not depend on the design's clock, so slow
ones are simulated with 32 cycles a bit. Links that are equal are measured once. The exit status is 1 where 64-byte
frames reach less than 95 % of the limit, or an answer is wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import hwflow
from hwflow.api.compiler import compile as compile_model
from hwflow.boards import Board, all_boards, find_board
from hwflow.codegen.board.carriers import SerialCarrier
from hwflow.codegen.board.clock_plan import plan_clock
from hwflow.codegen.board.identity import Buffers
from hwflow.sim.simulated_board import SimulatedBoard
from hwflow.toolchain.verilator import VERILATOR

ADDRESS = "192.168.1.50"
TARGET = 0.95
CYCLES = {"serial": 12_000_000, "udp": 1_500_000, "usb": 12_000_000}  # of a measurement, about
BIT = 32  # cycles, where the clock may be chosen


@dataclass(frozen=True)
class Link:
    """What decides how fast a link is. ``rate``: bits a second; ``clock_mhz``: of the simulation."""

    carrier: str
    rate: int
    clock_mhz: Fraction
    buffers: Buffers

    def title(self) -> str:
        rate = f"{self.rate / 1e6:g} M" if self.rate >= 1_000_000 else f"{self.rate / 1e3:g} k"
        return {"serial": f"serial, {rate}baud", "udp": "UDP, 1 Gbit/s", "usb": "USB, 12 Mbit/s"}[self.carrier]


@dataclass(frozen=True)
class Speed:
    """Frames a second, measured and at the most."""

    measured: float
    most: float

    def text(self) -> str:
        return f"{self.measured:,.0f} of {self.most:,.0f} ({self.measured / self.most:.1%})"


def links(board: Board) -> Iterator[Link]:
    """Return the links of a board that can be simulated."""
    if board.zynq is not None:
        return
    default, buffers = plan_clock(board).frequency_hz, Buffers.of(board.part)
    baud = SerialCarrier(board, default).baud
    clock = min(default, max(Fraction(12_000_000), Fraction(BIT * baud)))
    yield Link("serial", baud, clock / 1_000_000, buffers)
    if board.ethernet is not None:
        yield Link("udp", 1_000_000_000, default / 1_000_000, buffers)
    if board.usb is not None:
        yield Link("usb", 12_000_000, default / 1_000_000, buffers)


def relu(path: Path, size: int) -> Path:
    """Return a model of one Relu, int8 to int8."""
    constants = [numpy_helper.from_array(np.float32(1), "scale"), numpy_helper.from_array(np.int8(0), "zero")]
    steps = (
        ("QuantizeLinear", "x", "q"), ("DequantizeLinear", "q", "d"), ("Relu", "d", "r"),
        ("QuantizeLinear", "r", "p"), ("DequantizeLinear", "p", "y"),
    )
    nodes = [
        helper.make_node(op, [source] if op == "Relu" else [source, "scale", "zero"], [result])
        for op, source, result in steps
    ]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", size]) for name in "xy"]
    graph = helper.make_graph(nodes, "relu", ports[:1], ports[1:], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9), path)
    return path


@cache
def speed(board: str, link: Link, size: int) -> Speed:
    """Measure frames of ``size`` bytes."""
    verilator = VERILATOR.find()
    options: dict[str, Any] = {"clock_mhz": link.clock_mhz}
    options |= {"serial": {"baud": link.rate}, "udp": {"ethernet": ADDRESS}, "usb": {"usb": True}}[link.carrier]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        compile_model(relu(Path(folder) / "relu.onnx", size), board, fps="link", **options).write(out)
        with (
            SimulatedBoard(out, command=verilator.command, environment=verilator.environment) as peer,
            hwflow.connect(out, peer.port, patience=60, clock=peer.seconds) as host,
        ):
            most = host.design.link["frames_per_second"]
            count = max(10, int(CYCLES[link.carrier] * most / float(link.clock_mhz * 1_000_000)))
            frames = np.random.default_rng(1).integers(0, 256, (count, size), np.uint8)
            host.raw(frames[:1])  # round trips are known
            got = host.raw(frames)
            if not np.array_equal(got, np.where(frames < 128, frames, 0)) or host.link.link.resent:
                sys.exit(f"{board}, {link.title()}: wrong answers, or some that were lost on a good line")
            times = host.link.link.arrival_times
            positions, end = [moment.position for moment in times], times[-1]
            first = times[bisect_left(positions, end.position // 10)]
            return Speed((end.position - first.position) / size / (end.time - first.time), most)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--board", action="append", help="this one (default: all)")
    parser.add_argument("--carrier", choices=CYCLES, help="this one (default: all)")
    parser.add_argument("--bytes", type=int, action="append", help="of a frame, each way (default: 64 and 3072)")
    arguments = parser.parse_args()
    sizes = arguments.bytes or [64, 3072]
    boards = [find_board(name) for name in arguments.board] if arguments.board else all_boards()
    print("| board | link | " + " | ".join(f"frames of {size:,} bytes a second" for size in sizes) + " |")
    print("|---" * (2 + len(sizes)) + "|")
    known: dict[Link, str] = {}
    slow = False
    for board in boards:
        for link in links(board):
            if arguments.carrier in (None, link.carrier):
                found = [speed(known.setdefault(link, board.name), link, size) for size in sizes]
                print(f"| {board.name} | {link.title()} | {' | '.join(each.text() for each in found)} |", flush=True)
                slow |= any(e.measured < TARGET * e.most for e, size in zip(found, sizes, strict=True) if size == 64)
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
