"""``compare``: the golden model against ONNX's reference evaluator, value by value, and end to end.

:mod:`hwflow.verify.evaluators.value_comparison` has how values are compared, and when a mismatch is explained.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hwflow.api.patching.other_weights import with_weights
from hwflow.api.scheduled import Progress
from hwflow.display import cell, show
from hwflow.errors import Finding, UsageError
from hwflow.frontend.input_types import Declarations
from hwflow.frontend.states.ties import STATELESS, States
from hwflow.host.inputs import Inputs, choose_inputs, require_file
from hwflow.loaded_model import Model, load
from hwflow.onnxspec import TrainingModel
from hwflow.onnxspec.reading.bound_inputs import InputConstants
from hwflow.onnxspec.reading.external_loading import Folders
from hwflow.report.folder_page import COMPARISON, refreshed
from hwflow.verify.compared_layers import ComparedLayers, Row
from hwflow.verify.compiled_folder import compiled_model, require_own
from hwflow.verify.evaluators.explanation import NOT_FINITE
from hwflow.verify.evaluators.runtime_judge import RuntimeJudge
from hwflow.verify.evaluators.value_comparison import Comparer, Drift

BATCH_ELEMENTS = 1 << 21
"""Batch size: about how many elements of all values are held at once."""


@dataclass(frozen=True)
class Comparison:
    """The verdict: ``ok`` iff nothing is unexplained. ``layers``: the rows in the model's order, with the first frame
    and element that differ. ``runtime``: what onnxruntime says, of models that it judges, too."""

    rows: tuple[Row, ...]
    drift: Drift
    inputs: Inputs
    layers: ComparedLayers
    runtime: RuntimeJudge | None = None

    @property
    def mismatches(self) -> int:
        return sum(row.mismatches for row in self.rows)

    @property
    def unexplained(self) -> int:
        return sum(row.unexplained for row in self.rows)

    @property
    def ok(self) -> bool:
        return not self.findings

    @property
    def findings(self) -> tuple[Finding, ...]:
        """A finding per value with unexplained mismatches, and per output that onnxruntime has otherwise."""
        found = [self.finding(row) for row in self.rows]
        found += [] if self.runtime is None else [row.finding for row in self.runtime.rows.values()]
        return tuple(finding for finding in found if finding is not None)

    def finding(self, row: Row) -> Finding | None:
        """Return what is wrong with a value, or None."""
        return _unexplained(row) if row.unexplained else None

    def table(self) -> dict[str, Any]:
        """Return what ``compare --format json`` prints; ``accuracy`` and ``reference_accuracy`` are shares of frames,
        null without labels."""
        keys = ("name", "elements", "mismatches", "unexplained", "max_lsb")
        drift = self.drift
        return {
            "values": [{key: getattr(row, key) for key in keys} for row in self.rows],
            "mismatches": self.mismatches,
            "unexplained": self.unexplained,
            "verdict": "equal" if self.ok else "different",
            "frames": self.inputs.frames,
            "inputs": self.inputs.origin,
            "differing_frames": None if drift.failed else drift.differing,
            "accuracy": None if drift.right is None else drift.right / drift.frames,
            "reference_accuracy": None if drift.reference_right is None else drift.reference_right / drift.frames,
            "onnxruntime": None if self.runtime is None else self.runtime.table(),
            "findings": [finding.table() for finding in self.findings],
        }

    @property
    def ranges(self) -> list[dict[str, Any]]:
        """The least and the greatest integer of each value that has integers."""
        return [
            {"name": row.name, "least": row.least, "greatest": row.greatest} for row in self.rows
            if row.least is not None
        ]  # fmt: skip

    def lines(self) -> Iterator[str]:
        """Yield the text below the rows: the drift."""
        for name in sorted({name for row in self.rows for name in row.defects}):
            where = ", ".join(cell(row.name) for row in self.rows if name in row.defects)
            yield f"known defect of the reference evaluator, worked around: {name} ({where})"
        drift = self.drift
        if self.runtime is not None:
            yield from self.runtime.lines()
        if drift.failed:
            yield f"end to end: no reference: {drift.failed}"
            return
        yield (
            f"end to end: the outputs of {drift.differing} of {drift.frames} frames differ from the reference "
            f"evaluator's, by at most {drift.max_lsb} lsb"
        )
        own = {row.name for row in self.rows}
        for name, apart in drift.outputs.items():
            if apart and name in own:
                yield f"end to end, output {show(name)}: the greatest difference is {apart:.6g}"
        if drift.right is not None and drift.reference_right is not None:
            share, reference = (100 * n / drift.frames for n in (drift.right, drift.reference_right))
            yield f"accuracy against the labels: {share:.2f} % (reference evaluator: {reference:.2f} %)"


def compare(
    model: Model | TrainingModel | str | os.PathLike[str],
    *,
    inputs: str | os.PathLike[str] | None = None,
    frames: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    dimensions: Mapping[str, int] | None = None,
    trusted: Folders = (),
    input_types: Declarations | None = None,
    constants: InputConstants | None = None,
    states: States = STATELESS,
    weights: str | os.PathLike[str] | None = None,
) -> Comparison:
    """Compare ``model`` (as :func:`hwflow.load` takes it, or loaded) on ``inputs``, else on ``inputs.npz`` beside it,
    else on random frames; ``dimensions``, ``trusted``, ``input_types``, ``constants`` and ``states``: as there. An
    output folder of ``synth`` stands for the model that was compiled; it keeps the result, and its page shows it.
    ``weights``: of an output folder: compare this model, if its weights can be loaded into the folder's hardware.

    Raises :class:`ModelRefused` (also where the evaluator cannot compute a value), :class:`UsageError`; a mismatch
    raises nothing: it is a finding of the result.
    """
    say = progress or (lambda line: None)
    require_file(inputs)
    folder = None if isinstance(model, Model | TrainingModel) or not os.path.isdir(model) else Path(model)
    if weights is not None:
        if folder is None:
            raise UsageError.of(
                "weights-folder", "option --weights", "must be given for an output folder of synth, not for a model",
                "name the folder of the design that is loaded",
            )
        with with_weights(folder, weights, say) as other:
            return compare(compiled_model(other), inputs=inputs, frames=frames, seed=seed, progress=progress)
    if folder is not None:
        require_own(folder, dimensions, input_types, constants, states)
        say("reading the model")
        model = compiled_model(folder)
    elif not isinstance(model, Model):
        say("reading the model")
        model = load(
            model, dimensions, trusted=trusted, input_types=input_types, constants=constants, states=states
        )
    graph = model.quantized
    chosen = choose_inputs(model, model.path, inputs, frames, np.random.default_rng(seed))
    comparer, judge = Comparer(model), RuntimeJudge.of(model)
    per_frame = sum(int(np.prod(value.typed.shape, dtype=np.int64)) for value in graph.values())
    batch = max(1, BATCH_ELEMENTS // max(1, per_frame))
    for start in range(0, chosen.frames, batch):
        stop = min(start + batch, chosen.frames)
        say(f"comparing frames {start + 1} to {stop} of {chosen.frames}")
        arrays = {name: array[start:stop] for name, array in chosen.arrays.items()}
        comparer.add(start, arrays, None if chosen.labels is None else chosen.labels[start:stop])
        if judge is not None and comparer.outputs is not None:
            judge.add(start, arrays, comparer.outputs)
    layers = ComparedLayers.of(model.resolved, comparer.rows)
    comparison = Comparison(tuple(comparer.rows.values()), comparer.drift, chosen, layers, judge)
    if folder is not None:
        refreshed(folder, COMPARISON, comparison.table() | {"ranges": comparison.ranges})
    return comparison


def _unexplained(row: Row) -> Finding:
    where = f"value {show(row.name)}"
    if row.failed:
        remedy = "compare a model that ends before the node that makes it: what follows has nothing to compare with"
        return Finding("reference-evaluator", where, row.failed, remedy)
    overflow = row.first.endswith(NOT_FINITE)
    return Finding(
        "golden-equals-reference", where,
        f"the golden model must equal the reference evaluator except for its float rounding, not differ in "
        f"{row.unexplained} of {row.elements} elements; the first: {row.first}",
        "choose scales and constants with which the model's own floats do not overflow"
        if overflow else "report this model as a defect of hwflow",
    )
