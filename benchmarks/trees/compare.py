"""hwflow's designs of the ensembles of train.py beside conifer's: a Markdown table.

    python benchmarks/trees/compare.py FOLDER [NAME ...] [--until bitstream] [--compare] [-- OPTIONS OF hwflow synth]

``FOLDER`` has the files of ``train.py``. Every design takes a sample each cycle. LUT is LUT4 + 2 CCU2C (and four a
distributed RAM), of the design without the board's link, as yosys maps it; conifer's figures are those of
``conifer.csv`` (variant ``default``, the smaller of its two; see ``conifer_designs.py``). Errors are predicted
classes of the test split that differ from scikit-learn's. ``--compare``: values that ``hwflow compare`` cannot explain
by the reference evaluator's rounding, which is another measure: where classes tie, its class may be another one.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
OPTIONS = (
    "--board", "ulx3s_85f", "--clock", "150", "--fps", "150e6", "--budget", "lut=80%,ff=80%,dsp=100%,bram=100%",
)
COLUMNS = (
    "ensemble", "nodes", "thresholds", "conifer LUT", "FF", "latency", "MHz", "errors",
    "hwflow LUT", "FF", "BRAM", "interval", "latency", "MHz", "unexplained", "LUT of conifer's",
)


def conifer_rows(variant: str) -> dict[str, dict[str, str]]:
    """Return the rows of ``conifer.csv`` of a variant, by ensemble."""
    with open(HERE / "conifer.csv", newline="") as file:
        return {row["ensemble"]: row for row in csv.DictReader(file) if row["variant"] == variant}


def conifer_luts(row: dict[str, str]) -> int:
    """Return the look-up tables of a row, the fewer of its two."""
    pairs = [(row["lut4"], row["ccu2c"]), (row["lut4_area"], row["ccu2c_area"])]
    return min(int(luts) + 2 * int(carries) for luts, carries in pairs if luts)


def hwflow(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of hwflow. Raises :class:`RuntimeError` with what it said, if it fails."""
    done = subprocess.run([sys.executable, "-m", "hwflow.cli", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or done.stdout.strip())
    return done


def cells(name: str, conifer: dict[str, str], report: dict[str, Any] | None, unexplained: str) -> tuple[str, ...]:
    """Return the row of an ensemble; ``report``: of hwflow's design, None if there is none."""
    theirs = conifer_luts(conifer)
    first = (
        name, conifer["nodes"], conifer["thresholds"], f"{theirs:,}", f"{int(conifer['ff']):,}", conifer["latency"],
        conifer["mhz"] or "-", f"{conifer['errors']} of {conifer['samples']}",
    )
    if report is None:
        return (*first, *"-" * (len(COLUMNS) - len(first)))
    timing, resources, clock = report["timing"], report["resources"], report["clock"]["fmax_mhz"]
    luts = resources["lut"]["synthesized"]
    return (
        *first, f"{luts:,}", *(f"{resources[kind]['synthesized']:,}" for kind in ("ff", "bram")),
        str(timing["initiation_interval"]), str(timing["latency"]), "-" if clock is None else f"{clock:.1f}",
        unexplained, f"{luts / theirs:.2f}",
    )


def main() -> None:
    words = sys.argv[1:]
    place = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(description="hwflow's designs of tree ensembles beside conifer's.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="ensembles (default: all of conifer.csv)")
    parser.add_argument("--until", choices=("netlist", "bitstream"), default="netlist")
    parser.add_argument("--compare", action="store_true", help="run hwflow compare on the test split")
    parser.add_argument("--keep", type=Path, help="leave the output folders there (default: FOLDER/designs)")
    arguments = parser.parse_args(words[:place])
    rows = conifer_rows("default")
    unknown = [name for name in arguments.names if name not in rows]
    if unknown:
        parser.error(f"NAME must be one of {', '.join(rows)}, not {', '.join(unknown)}")
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS))
    for name in arguments.names or rows:
        model, inputs = arguments.folder / f"{name}.onnx", arguments.folder / f"{name}.npz"
        out = (arguments.keep or arguments.folder / "designs") / name
        report, unexplained = None, "-"
        try:
            options = words[place + 1 :] or OPTIONS
            hwflow("synth", str(model), *options, "--until", arguments.until, "-o", str(out))
            report = json.loads((out / "report.json").read_text())
            if arguments.compare:
                frames = rows[name]["samples"]
                hwflow("compare", str(model), "--input", str(inputs), "--frames", frames)  # fails if one is unexplained
                unexplained = f"0 of {frames}"
        except RuntimeError as error:
            print(f"{name}: {error}", file=sys.stderr)
        print("| " + " | ".join(cells(name, rows[name], report, unexplained)) + " |", flush=True)


if __name__ == "__main__":
    main()
