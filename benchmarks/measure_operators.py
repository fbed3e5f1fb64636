"""What every operator costs in each of the harness's cases, and how far the resource models are from it.

    python benchmarks/measure_operators.py measure ecp5                synthesizes all, writes samples_ecp5.csv
    python benchmarks/measure_operators.py measure ecp5 --only mvu     one operator's rows anew, the others are kept
    python benchmarks/measure_operators.py measure ecp5 --new          cases that have no row yet
    python benchmarks/measure_operators.py fit ecp5                    least squares of the measured constants
    python benchmarks/measure_operators.py errors ecp5                 the table of errors, each operator's worst

The samples lie beside the models, in ``hwflow/cores/costs/``; a row is a case of ``tests/cores/cases/all_cases.py`` at
one of its foldings, with queues of ``tests.cores.samples.DEPTHS`` entries.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the cases are the tests'

import numpy as np
from rich.console import Console
from rich.table import Table

from hwflow.cores.costs.windows import sliding_windows
from hwflow.cores.windows import sliding_window
from hwflow.errors import ToolError
from tests.cores import samples
from tests.cores.samples import FAMILIES, KINDS, Key, Row

BATCH = 20  # cores in a run of yosys: the start of one takes as long as a few small cores


def measure(family: str, only: Sequence[str], new: bool) -> None:
    """Rows of the operators ``only`` (all: none named) are measured anew and written; with ``new`` those alone that
    have no sample yet."""
    old = {row.key: row for row in samples.read(family)} if samples.path(family).exists() else {}
    wanted = samples.all_keys(family)
    found = {key: old[key] for key in wanted if key in old and (new or (only and key.op not in only))}
    todo = [key for key in wanted if key not in found and (not only or key.op in only)]
    for start in range(0, len(todo), BATCH):
        for row in _batch(family, todo[start : start + BATCH]):
            found[row.key] = row
        print(f"{min(start + BATCH, len(todo))} of {len(todo)}", flush=True)
    samples.write(family, [found[key] for key in wanted if key in found])


def _batch(family: str, keys: Sequence[Key]) -> list[Row]:
    """Do one run; the halves on their own where yosys dies, a core of which it does so alone under other names."""
    try:
        with tempfile.TemporaryDirectory() as name:
            return samples.synthesize(family, keys, Path(name), renames=len(keys) == 1)
    except ToolError:
        if len(keys) == 1:
            raise
        half = len(keys) // 2
        return _batch(family, keys[:half]) + _batch(family, keys[half:])


def errors(family: str, only: Sequence[str], worst: int) -> None:
    """Print for each operator: rows, how many are outside of the bounds, sums, and its worst rows."""
    console = Console(width=150)
    table = Table("operator", "rows", "off", *(f"{kind} {what}" for kind in KINDS for what in ("model", "found")))
    details = Table("operator", "case", "folding", *KINDS)
    rows = [row for row in samples.read(family) if not only or row.key.op in only]
    for op in dict.fromkeys(row.key.op for row in rows):
        compared = [(row, samples.predicted(family, row.key)) for row in rows if row.key.op == op]
        off = [pair for pair in compared if samples.deviations(*pair)]
        sums = [
            str(sum(getattr(what, kind) for what in side)) for kind in KINDS
            for side in ([model for _, model in compared], [row.cells for row, _ in compared])
        ]
        table.add_row(op, str(len(compared)), str(len(off)), *sums)
        off.sort(key=lambda pair: -samples.error(*pair))
        for row, model in off[:worst]:
            cells = [f"{getattr(model, kind)} for {getattr(row.cells, kind)}" for kind in KINDS]
            details.add_row(op, row.key.case, row.key.folding_text, *cells)
    console.print(table)
    console.print(details)


def fit(family: str) -> None:
    """Print the constants that are measured and not derived, by least squares of the relative errors: look-up tables
    per bit of a serial sliding window's position registers."""
    shares, wanted = [], []
    for row in samples.read(family):
        case, folding, _ = row.key.bench
        node = case.node()
        if row.key.op != "sliding_window" or not sliding_window.is_serial(node, folding):
            continue
        geometry, blocks = node.attributes.geometry, -(-case.source.shape[1] // folding.input_lanes)
        words = sliding_window.line_buffer_rows(node, case.decision(folding, 1)) * geometry.width * blocks
        kinds = *sliding_windows.reader_registers(geometry, blocks, words), 1
        known = sum(share * number for share, number in zip(sliding_windows.SERIAL_READER_LUTS, kinds, strict=True))
        weight = 1 / max(row.cells.lut, 100)
        shares.append([number * weight for number in kinds])
        wanted.append((row.cells.lut - samples.predicted(family, row.key).lut + known) * weight)
    found, *_ = np.linalg.lstsq(np.array(shares), np.array(wanted), rcond=None)
    print("SERIAL_READER_LUTS", sliding_windows.SERIAL_READER_LUTS, "->", tuple(found.round(2).tolist()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("measure", "errors", "fit"))
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--only", action="append", default=[], help="an operator; may be repeated")
    parser.add_argument("--new", action="store_true", help="measure cases without a sample only")
    parser.add_argument("--worst", type=int, default=5, help="rows of each operator in the table of errors")
    arguments = parser.parse_args()
    if arguments.command == "measure":
        measure(arguments.family, arguments.only, arguments.new)
    elif arguments.command == "fit":
        fit(arguments.family)
    else:
        errors(arguments.family, arguments.only, arguments.worst)


if __name__ == "__main__":
    main()
