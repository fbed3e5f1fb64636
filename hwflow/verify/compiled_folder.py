"""The model in an output folder of ``synth``, as it was compiled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from hwflow.display import show_path
from hwflow.errors import Finding, Mismatch, UsageError
from hwflow.frontend.input_types import OPTION, Declarations
from hwflow.frontend.states.ties import OPTION as STATE_OPTION
from hwflow.frontend.states.ties import STATELESS, States
from hwflow.loaded_model import Model, load
from hwflow.onnxspec.reading.bound_inputs import InputConstants
from hwflow.sim.digests import changed_files
from hwflow.sim.sim_errors import ManifestError


def require_own(
    out: Path, dimensions: Mapping[str, int] | None, input_types: Declarations | None,
    constants: InputConstants | None, states: States,
) -> None:
    """Raise :class:`UsageError` where options are given that a folder's model has had when it was compiled."""
    given = (
        (dimensions, "dimension-option", "option --dim", "sizes are fixed"),
        (input_types, "input-type-option", OPTION, "inputs are fixed"),
        (constants, "const-option", "option --const", "inputs are fixed"),
        (states != STATELESS, "state-option", STATE_OPTION, "state is fixed"),
    )
    for value, rule, option, fixed in given:
        if value:
            message = f"must belong to a model, but {show_path(out)} is an output folder, whose {fixed}"
            raise UsageError.of(rule, option, message, "leave it out")


def compiled_model(out: Path) -> Model:
    """Return the model in an output folder of ``synth``, whose files must be as they were written. Raises
    :class:`UsageError`, :class:`Mismatch`."""
    try:
        table = json.loads((out / "manifest.json").read_text())
        dimensions = {str(name): int(size) for name, size in table["dimensions"].items()}
        input_types = {str(name): str(text) for name, text in table.get("input_types", {}).items()}
        states, interleave = States.of_manifest(table), int(table.get("interleave", 1))
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        reason = "it has no manifest.json" if isinstance(error, OSError) else "its manifest.json is damaged"
        raise UsageError.of(
            "output-folder", f"folder {show_path(out)}", f"must be an output folder of 'hwflow synth', but {reason}",
            "run 'hwflow synth' first",
        ) from None
    _refuse_changed(out)
    return load(out / "model.onnx", dimensions, input_types=input_types, states=states, interleave=interleave)


def _refuse_changed(out: Path) -> None:
    """Raise :class:`Mismatch` with a finding for each file that is not as ``synth`` wrote it."""
    try:
        changed = changed_files(out)
    except ManifestError as error:
        raise damaged(out, error) from None
    remedy = "restore it, or run 'hwflow synth' again"
    if changed:
        raise Mismatch(
            Finding("changed-file", f"file {show_path(out / file.file)}", str(file), remedy) for file in changed
        )


def damaged(out: Path, error: Exception) -> UsageError:
    """Return the finding that a folder is not as ``synth`` wrote it."""
    return UsageError.of("output-folder", f"folder {show_path(out)}", str(error), "run 'hwflow synth' again")
