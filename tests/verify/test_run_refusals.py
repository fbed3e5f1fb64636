"""What `sim` and `run` cannot be asked for, files that cannot be written, and what goes wrong while they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hwflow.errors import ToolError, UsageError
from hwflow.host.results import check_output_file, write_results
from hwflow.sim.result import Hang, RunResult, Violation, Waiting
from hwflow.sim.sim_errors import SimulatorFailed
from hwflow.verify import board_run, simulation

GOOD = RunResult(2, 0, 0, None, 0, None, None, False, None, 9, 4, 5, {})


@pytest.mark.parametrize("call, message", [
    (lambda out: simulation.simulate(out, simulator="modelsim"), "must be one of verilator, icarus, not 'modelsim'"),
    (lambda out: simulation.simulate(out, seed=-1), "option --seed: must be at least 0, not -1"),
    (lambda out: board_run.run(out, port="p", simulated=True), "option --port: must not be given with --simulated"),
    (lambda out: board_run.run(out, faults=0.1), "option --faults: must be given with --simulated only"),
    (lambda out: board_run.run(out, simulated=True, faults=2), "option --faults: must be from 0 to 1, not 2"),
])
def test_refused(call: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        call(tmp_path)
    (finding,) = refused.value.findings
    assert message in str(finding)


@pytest.mark.parametrize("change, rule, message", [
    ({"hang": Hang(99, 50, (Waiting("y", 1, 2),))}, "no-deadlock", "no handshake for 50 cycles (at cycle 99): y waits"),
    (
        {"violations": 3, "first_violation": Violation("surplus", "y", 1, 2, 7, "a beat too many")},
        "stream-protocol", "3 violations of the stream protocol; the first: ",
    ),
    ({"error": True, "error_cycle": 7}, "error-output", "'error' must stay 0, not rise at cycle 7"),
    ({"latency": 6}, "exact-timing", "6"),
])
def test_findings(change: dict[str, Any], rule: str, message: str) -> None:
    assert simulation._findings(GOOD, 4, 5, 0.0) == []
    (finding,) = simulation._findings(replace(GOOD, **change), 4, 5, 0.0)
    assert finding.rule == rule and message in finding.message


def failing(*arguments: object, **named: object) -> Any:
    raise SimulatorFailed("build", Path("build.log"), "first\nlast")


def test_the_simulator_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a tool's error, with what the tool printed."""
    monkeypatch.setattr("hwflow.sim.simulated_board.SimulatedBoard.__init__", failing)
    with pytest.raises(ToolError) as refused, board_run._board(tmp_path, None, None, True, 0.0, 0, lambda line: None):
        pass
    (finding,) = refused.value.findings
    assert (finding.where, finding.output) == ("build", ("first", "last"))
    monkeypatch.undo()
    with pytest.raises(UsageError, match="run 'hwflow synth' again"), board_run._board(  # an empty folder
        tmp_path, None, None, True, 0.0, 0, lambda line: None
    ):
        pass


def test_files_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left beside them."""
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(UsageError, match="must be a file, not a folder"):
        check_output_file(tmp_path / "folder.npz")

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(UsageError, match="must be a file that can be written, but: No space left on device"):
        write_results(tmp_path / "y.npz", {"y": np.zeros(3)})
    assert [path.name for path in tmp_path.iterdir()] == ["folder.npz"]
