"""Sessions of onnxruntime: models run frame by frame, and its errors as findings.

The only module that imports onnxruntime, which is an optional extra of the package; it does so when it is used.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from hwflow.display import show
from hwflow.errors import ModelRefused, ToolError
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.graphs.scopes import scopes

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class State:
    """What the output ``source`` is in one frame, the input ``target`` is ``frames`` later."""

    source: str
    target: str
    frames: int


INSTALL = "pip install 'hwflow[quantize]'"

MOST_IR_VERSION = 13  # what onnxruntime 1.31 reads
LEAST_IR_VERSION = 8

_ROWS_AS_FRAMES = "MatMulAddFusion"  # makes a Gemm whose rows are those of all frames

_SILENT = 4  # onnxruntime: fatal errors only


def require_onnxruntime() -> None:
    """Raise :class:`ToolError` saying how to install onnxruntime if it is not there or of no use."""
    imported("onnxruntime.quantization")


def imported(module: str) -> Any:
    """Import a module of onnxruntime now."""
    try:
        with quiet():
            return importlib.import_module(module)
    except ImportError as error:
        raise ToolError.of(
            "tool-present", "package 'onnxruntime'", f"must be installed with its quantizer, but: {error}", INSTALL
        ) from error


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep stdout, Python warnings and log records silent: what matters is said in findings."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


@contextlib.contextmanager
def refusing(model: onnx.ModelProto, must: str, remedy: str = "see what the reason names") -> Iterator[None]:
    """Turn whatever onnx and onnxruntime raise into a finding about ``model``."""
    try:
        with quiet():
            yield
    except (ModelRefused, MemoryError):
        raise
    except Exception as error:  # both raise many kinds
        reason = " ".join(str(error).split()) or type(error).__name__
        message = f"the model must {must}, but it says: {reason}"
        raise ModelRefused.of("onnxruntime", f"model {show(model.graph.name)}", message, remedy) from error


def open_session(model: onnx.ModelProto, optimized: Path | None = None) -> Any:
    """Open a session for ``model``: as written, or with basic optimizations, which go to the file ``optimized``."""
    runtime = imported("onnxruntime")
    levels = runtime.GraphOptimizationLevel
    options = runtime.SessionOptions()
    options.graph_optimization_level = levels.ORT_DISABLE_ALL if optimized is None else levels.ORT_ENABLE_BASIC
    options.log_severity_level = _SILENT
    options.intra_op_num_threads = 1  # the same sums in the same order on every machine
    disabled = []
    if optimized is not None:
        options.optimized_model_filepath = str(optimized)
        disabled = [_ROWS_AS_FRAMES]
    return runtime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"], disabled_optimizers=disabled
    )


def plain(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy that onnxruntime reads: its newest IR version at most; initializers are constants and no inputs;
    operators are in the domain that it has them in."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = min(max(copy.ir_version, LEAST_IR_VERSION), MOST_IR_VERSION)
    del copy.training_info[:]
    initializers = {i.name for i in copy.graph.initializer} | {s.values.name for s in copy.graph.sparse_initializer}
    inputs = [i for i in copy.graph.input if i.name not in initializers]
    del copy.graph.input[:]
    copy.graph.input.extend(inputs)
    for node in (node for scope in scopes(copy) for node in scope.nodes):
        if facts_of(node.domain, node.op_type).in_default_domain:
            node.proto.domain = ""
    return copy


def is_run(model: onnx.ModelProto) -> bool:
    """Tell whether onnxruntime has all operators of a model, in the forms that it uses."""
    try:
        with refusing(model, "run in onnxruntime"):
            open_session(plain(model))
    except ModelRefused:
        return False
    return True


def run_frames(
    model: onnx.ModelProto, frames: Sequence[Arrays], outputs: Sequence[str], states: Sequence[State] = ()
) -> dict[str, npt.NDArray[Any]]:
    """Return each of ``outputs`` for ``frames``, evaluated one by one without optimizations: shape [frames, elements].

    ``states``: which the first frames have, and those after them get of the model's own outputs.
    Raises :class:`ModelRefused` where onnxruntime cannot run the model.
    """
    names = list(dict.fromkeys([*outputs, *(state.source for state in states)]))
    places = {state: names.index(state.source) for state in states}
    with refusing(model, "run in onnxruntime"):
        session = open_session(plain(model))
        rows: list[list[npt.NDArray[Any]]] = []
        for number, frame in enumerate(frames):
            left = {t.target: rows[number - t.frames][place] for t, place in places.items() if number >= t.frames}
            rows.append(session.run(names, {**frame, **left}))
        return {
            name: np.stack([np.asarray(row[names.index(name)]).reshape(-1) for row in rows]) for name in outputs
        }
