"""Every network to its bitstream, as `hwflow synth` makes it without options: one Markdown row a network.

    python benchmarks/bitstreams.py [--shared ../shared] [--board B ...] [--held-out | --tuned-with] [NAME ...]
    python benchmarks/bitstreams.py --model MODEL.onnx --model ... [--synth="--clock 150"]

``--synth``: with these options all the same. "Critical path" has the kinds of cores that it passes. ``seconds`` are of
the whole command. "Smaller design" says how many cycles per frame the design had that place and
route did not bring to an end; "other clocks" are a carrier's. One network in five (``--held-out``) is left out while
ways to place and route are tuned.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from networks import BENCHMARKS, BOARD, HERE, Benchmark, quantized

from hwflow.report.critical_path import critical_path
from hwflow.toolchain.build import REPORT

DEFAULT = [benchmark for benchmark in BENCHMARKS if not benchmark.options]
HELD_OUT = DEFAULT[4::5]
COLUMNS = (
    "network", "interval", "LUT", "multiplier blocks", "asked for", "reached", "critical path", "other clocks",
    "seconds", "smaller design",
)


def row(name: str, report: dict[str, Any], out: Path, seconds: float) -> str:
    """Return the network's line of the table."""
    clock, larger, used = report["clock"], report["larger_design"], report["resources"]
    routed, layers = json.loads((out / REPORT).read_text()), report["layers"]
    others = sorted(
        f"{clock['achieved']:.1f} of {clock['constraint']:.1f}" for clock in routed["fmax"].values()
        if clock["achieved"] != report["clock"]["fmax_mhz"]
    )
    parts = critical_path(routed, clock["target_mhz"], "hwflow_top", [layer["instance"] for layer in layers])
    cores = dict.fromkeys(part["where"] if part["core"] is None else layers[part["core"]]["op"] for part in parts)
    cells = (
        name, f"{report['timing']['initiation_interval']:,}", f"{used['lut']['synthesized']:,}",
        str(used["dsp"]["synthesized"]), f"{clock['target_mhz']:g} MHz", f"{clock['fmax_mhz']:.1f} MHz",
        ", ".join(cores),
        ", ".join(others), f"{seconds:.0f}",
        "" if larger is None else f"instead of {larger['initiation_interval']:,}: {larger['reason']}",
    )
    return "| " + " | ".join(cells) + " |"


def run(benchmark: Benchmark, shared: Path, board: str, options: list[str], folder: Path) -> str:
    """Make the bitstream of one network; its line, or what went wrong."""
    model = shared.absolute() / benchmark.model
    out = folder / "out"
    try:
        if benchmark.calibration is not None:
            model = quantized(model, benchmark.calibration, folder)
        begin = time.monotonic()
        command = [sys.executable, "-m", "hwflow.cli", "synth", str(model), "--board", board, "-o", str(out)]
        command += options
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - begin
        if done.returncode:
            raise RuntimeError(done.stderr)
    except RuntimeError as error:
        print(f"{benchmark.name}: {error}", file=sys.stderr)
        return f"| {benchmark.name}, {board} |" + " - |" * (len(COLUMNS) - 1)
    return row(f"{benchmark.name}, {board}", json.loads((out / "report.json").read_text()), out, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="networks to run (default: all)")
    parser.add_argument("--shared", type=Path, default=HERE.parent.parent / "shared")
    parser.add_argument("--board", action="append", help=f"this one (default: {BOARD})")
    parser.add_argument("--synth", metavar="OPTIONS", default="", help="of `hwflow synth`, as one argument")
    parser.add_argument("--model", type=Path, action="append", default=[], help="this one, and no other")
    parser.add_argument("--held-out", action="store_true", help="one network in five")
    parser.add_argument("--tuned-with", action="store_true", help="the other four")
    arguments = parser.parse_args()
    known = {benchmark.name: benchmark for benchmark in DEFAULT}
    if unknown := [name for name in arguments.names if name not in known]:
        parser.error(f"NAME must be one of {', '.join(known)}, not {', '.join(unknown)}")
    chosen = [known[name] for name in arguments.names] or DEFAULT
    if arguments.held_out or arguments.tuned_with:
        chosen = [benchmark for benchmark in chosen if (benchmark in HELD_OUT) == arguments.held_out]
    if arguments.model:
        chosen = [Benchmark(model.stem, str(model.absolute())) for model in arguments.model]
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS))
    for benchmark, board in itertools.product(chosen, arguments.board or [BOARD]):
        with tempfile.TemporaryDirectory() as folder:
            print(run(benchmark, arguments.shared, board, shlex.split(arguments.synth), Path(folder)), flush=True)


if __name__ == "__main__":
    main()
