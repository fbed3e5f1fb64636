"""``hwflow.connect``: a board as a function of arrays, where hwflow is installed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hwflow.host.runtime import board_session
from hwflow.host.runtime.board_session import Board
from hwflow.host.runtime.float_parts import Arrays, Evaluate, runtime_part
from hwflow.host.runtime.frame_coder import FrameCoder
from hwflow.host.runtime.host_design import HostPart, read_design
from hwflow.host.runtime.host_errors import HostError
from hwflow.host.runtime.link_thread import PATIENCE
from hwflow.host.runtime.tensors.levels import numpy_type

if TYPE_CHECKING:
    from hwflow.onnxspec.reference.evaluation import RegionEvaluator


def connect(
    out: str | os.PathLike[str], port: str | None = None, *, baud: int | None = None, patience: float = PATIENCE,
    clock: Callable[[], float] = time.monotonic,
) -> Board:
    """Return the board that holds the design in an output folder of ``synth``, a context manager:

        with hwflow.connect("build/digits") as board:
            outputs = board.run({"image": frames})

    :meth:`Board.run` takes batches of any size, :meth:`Board.stream` an iterable of batches. What is left to the host
    runs with onnxruntime, or, where that is missing or cannot, with the reference evaluator. ``port``: a serial device,
    or "udp:HOST[:PORT]" (default: the one where the board answers); ``baud``: of a serial port (default: the design's);
    ``patience``: seconds after which a board that says nothing is given up; ``clock``: of all timers. Raises
    :class:`HostError` where there is no such board, or another network in it.

    A loadable design (``synth --loadable``) gets another model's weights by ``board.load("new.onnx")``.
    """
    design = read_design(Path(out))
    prefix, suffix = _evaluate(design.prefix), _evaluate(design.suffix)
    board = board_session.connect(
        design, port, baud=baud, patience=patience, clock=clock, prefix=prefix, suffix=suffix
    )
    board.weights_in = partial(_weights_in, Path(out))
    return board


@contextmanager
def _weights_in(out: Path, weights: Path) -> Iterator[FrameCoder]:
    """Yield the coder of what the hardware in ``out`` is with the weights of an ONNX file, or of an output folder."""
    from hwflow.api.patching.other_weights import with_weights

    with nullcontext(weights) if weights.is_dir() else with_weights(out, weights) as folder:
        design = read_design(folder)
        yield FrameCoder(design, _evaluate(design.prefix), _evaluate(design.suffix))


def _evaluate(part: HostPart | None) -> Evaluate | None:
    try:
        return None if part is None else runtime_part(part)
    except HostError:
        assert part is not None, "nothing to run never fails"
        return reference_part(part)


def reference_part(part: HostPart) -> Evaluate:
    """Return what runs ``part`` with the reference evaluator."""
    from hwflow.loaded_model import load
    from hwflow.onnxspec.reading.numpy_tensors import native, plain
    from hwflow.onnxspec.reference.evaluation import RegionEvaluator

    evaluator: RegionEvaluator = RegionEvaluator(load(part.file).flat)

    def evaluate(arrays: Arrays) -> Mapping[str, npt.NDArray[Any]]:
        given = {tensor.name: native(np.asarray(arrays[tensor.name]), tensor.type) for tensor in part.inputs}
        names = [tensor.name for tensor in part.outputs]
        made = evaluator.run(names, given)
        found = {tensor.name: plain(np.asarray(made[tensor.name]), tensor.type)[0] for tensor in part.outputs}
        return {t.name: found[t.name].astype(numpy_type(t.type), copy=False) for t in part.outputs}

    return evaluate
