"""``run``: frames through a board, or a simulated one, compared with the golden model bit for bit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hwflow.api.connection import connect
from hwflow.api.patching.other_weights import with_weights
from hwflow.errors import ToolError, UsageError
from hwflow.host.results import check_output_file, write_results
from hwflow.host.runtime.board_session import Board
from hwflow.host.runtime.frame_coder import Integers
from hwflow.host.runtime.host_design import read_design
from hwflow.host.runtime.run_command import BoardRun, read_frames, run_frames
from hwflow.sim.sim_errors import ManifestError, SimError, SimulatorFailed
from hwflow.toolchain.verilator import VERILATOR
from hwflow.verify import golden
from hwflow.verify.compiled_folder import compiled_model

if TYPE_CHECKING:
    from hwflow.api.scheduled import Progress
    from hwflow.loaded_model import Model

_SIMULATED_PATIENCE = 60.0  # seconds of the simulated board


def run(
    out: str | os.PathLike[str], port: str | None = None, *, baud: int | None = None,
    inputs: str | os.PathLike[str] | None = None, frames: int | None = None,
    output: str | os.PathLike[str] | None = None, verify: bool = True, simulated: bool = False, faults: float = 0.0,
    seed: int = 0, progress: Progress | None = None, weights: str | os.PathLike[str] | None = None,
) -> BoardRun:
    """Run frames on the board that holds the design in an output folder of ``synth``.

    ``inputs``: an .npz by model input name (default: the folder's frames), ``frames`` of them (repeated if there are
    fewer); ``output``: an .npz for the model's outputs; ``verify``: compare with the golden model; ``simulated``: on
    the board's top in Verilator, where a share ``faults`` of the bytes or datagrams, drawn by ``seed``, is lost, added,
    changed, delayed or repeated; ``weights``: a model whose weights are loaded first, and whose
    the frames are. Raises :class:`~hwflow.host.runtime.host_errors.HostError`, and what ``sim`` raises; a wrong answer
    raises nothing.
    """
    say = progress or (lambda line: None)
    if simulated and port is not None:
        raise UsageError.of("simulated-port", "option --port", "must not be given with --simulated", "leave it out")
    if not simulated and faults:
        raise UsageError.of("faults", "option --faults", "must be given with --simulated only", "leave it out")
    if not 0 <= faults <= 1:
        message = f"must be from 0 to 1, not {faults:g}"
        raise UsageError.of("faults", "option --faults", message, "choose one such as 0.01")
    if output is not None:
        check_output_file(Path(output))
    with nullcontext(Path(out)) if weights is None else with_weights(Path(out), weights, say) as folder:
        chosen = read_frames(read_design(folder), None if inputs is None else Path(inputs), frames)
        expected = _golden(compiled_model(folder)) if verify else None
        with _board(Path(out), port, baud, simulated, faults, seed, say) as board:
            if weights is not None:
                say("loading weights")
                board.load(folder)
            say(f"running frames at {board.port}")
            done = run_frames(board, chosen, expected, bench=False)
    if output is not None:
        write_results(Path(output), done.outputs)
    return done


def _golden(model: Model) -> Callable[[Integers], Mapping[str, npt.NDArray[Any]]]:
    graph = model.quantized
    return lambda sent: golden.evaluate(graph, {name: array.astype(np.int64) for name, array in sent.items()})


@contextmanager
def _board(
    out: Path, port: str | None, baud: int | None, simulated: bool, faults: float, seed: int, say: Progress
) -> Iterator[Board]:
    if not simulated:
        say("looking for the board")
        with connect(out, port, baud=baud) as board:
            yield board
        return
    from hwflow.sim.simulated_board import SimulatedBoard

    verilator = VERILATOR.find()
    say("building the simulated board")
    try:
        with (
            SimulatedBoard(
                out, command=verilator.command, environment=verilator.environment, faults=faults, seed=seed
            ) as peer,
            connect(out, peer.port, patience=_SIMULATED_PATIENCE, clock=peer.seconds) as board,
        ):
            yield board
    except SimulatorFailed as error:
        raise ToolError.of(
            "simulator-run", error.step, f"must succeed, not fail (log: {error.log})", "read the log",
            output=tuple(error.tail.splitlines()),
        ) from None
    except (ManifestError, SimError) as error:
        raise UsageError.of("simulated-board", f"folder {out}", str(error), "run 'hwflow synth' again") from None
