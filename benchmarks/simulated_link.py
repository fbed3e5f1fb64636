"""Measure what a board's link carries of the bytes that its report promises: a small network on the simulated board.

    .venv/bin/python benchmarks/simulated_link.py [--board orangecrab_25f] [--usb] [--widths 64,8,1] [--frames 2000]

Frames have as many bytes as the first and the last of ``--widths``. Times are the board's own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import hwflow
from hwflow.api.compiler import compile
from hwflow.toolchain.verilator import VERILATOR
from sim.simulated_board import SimulatedBoard
from tests.flow.networks import dense_network


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--board", default="orangecrab_25f")
    parser.add_argument("--usb", action="store_true")
    parser.add_argument("--widths", default="64,8,1")
    parser.add_argument("--frames", type=int, default=2000)
    arguments = parser.parse_args()
    widths = tuple(int(width) for width in arguments.widths.split(","))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        made = compile(dense_network(Path(folder) / "model.onnx", widths), arguments.board, usb=arguments.usb)
        report = made.write(out)
        link = report["link"]
        frames = np.random.default_rng(1).integers(0, 256, (arguments.frames, link["input_bytes"])).astype(np.uint8)
        found = VERILATOR.find()
        with (
            SimulatedBoard(out, command=found.command, environment=found.environment) as peer,
            hwflow.connect(out, peer.port, patience=600, clock=peer.seconds) as board,
        ):
            board.raw(frames[:20])
            begin = peer.seconds()
            board.raw(frames)
            rate = len(frames) / (peer.seconds() - begin)
            counted = board.statistics()
    most = link["frames_per_second"]
    print(
        f"{arguments.board}, {link['transport']}: {link['input_bytes']} bytes in, {link['output_bytes']} out a frame; "
        f"{rate:,.0f} frames per second of {most:,.0f}: {100 * rate / most:.1f} % "
        f"({rate * (link['input_bytes'] + link['output_bytes']):,.0f} bytes per second; {counted['resent']} sent again)"
    )


if __name__ == "__main__":
    main()
