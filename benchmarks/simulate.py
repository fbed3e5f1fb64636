"""How fast `hwflow sim` runs: design cycles per second of Verilator on the digits example.

    python benchmarks/simulate.py [MODEL.onnx] [--frames 20000] [--board ulx3s_85f] [--fps N] [--threads N]

Frames are random. Printed are the cycles of the run, the seconds it took (building the program apart) and their ratio;
the target is 300,000 cycles per second on two cores.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from hwflow.api.compiler import compile as compile_model
from hwflow.host.random_inputs import random_inputs
from hwflow.verify.simulation import simulate

DIGITS = Path(__file__).parent.parent / "examples" / "digits" / "model.onnx"


def main() -> None:
    parser = argparse.ArgumentParser(description="Design cycles per second of the bulk simulation.")
    parser.add_argument("model", nargs="?", type=Path, default=DIGITS)
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--board", default="ulx3s_85f")
    parser.add_argument("--fps", type=float)
    parser.add_argument("--threads", type=int, default=1, help="shares of the frames that run side by side")
    arguments = parser.parse_args()
    design = compile_model(arguments.model, arguments.board, fps=arguments.fps)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        design.write(out)
        inputs = Path(folder) / "inputs.npz"
        np.savez(inputs, **random_inputs(design.model, arguments.frames, np.random.default_rng(1)))
        result = simulate(out, inputs=inputs, threads=arguments.threads).result
    print("| model | interval | frames | cycles | build seconds | run seconds | cycles per second |")
    print("|---|---|---|---|---|---|---|")
    rate = result.cycles / result.run_seconds
    cells = (arguments.model.stem, result.initiation_interval, result.frames, result.cycles)
    print(f"| {' | '.join(map(str, cells))} | {result.build_seconds:.1f} | {result.run_seconds:.2f} | {rate:,.0f} |")


if __name__ == "__main__":
    main()
