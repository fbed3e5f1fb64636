"""Parts of the interface that whole runs seldom reach."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from boards import find_board
from hwflow.api import checking, output_folder
from hwflow.api.link_rate import ZYNQ_BYTES, _bytes, link_rate
from hwflow.api.making import _Later
from hwflow.cores.verilog_names import MOST_CHARACTERS, identifier
from hwflow.errors import UsageError
from hwflow.frontend.honoured_attributes import _same
from hwflow.frontend.host_work import HostWork
from hwflow.host.random_inputs import float_dtype
from tests.models import Builder


def test_the_link_of_a_zynq(tmp_path: Path) -> None:
    """Its memory port takes 8 bytes a cycle each way; of 12 and 3 bytes a frame the longer side counts."""
    b = Builder()
    x = b.requantize(b.input("x", ["N", 3, 4]), 0.5, 3)
    b.output(b.quantize(b.node("Slice", x, *(b.constant([v], "int64") for v in (0, 1, 2))), 0.5, 3))
    graph = b.load(tmp_path).quantized
    assert (_bytes(graph.inputs), _bytes(graph.outputs)) == (12, 3)
    clock = SimpleNamespace(frequency_hz=Fraction(100_000_000))
    request: Any = SimpleNamespace(board=find_board("pynq_z2"), clock=clock)
    assert link_rate(request, graph) == pytest.approx(100e6 * ZYNQ_BYTES / 12)


def test_a_design_that_was_written_before_is_compiled_once() -> None:
    made = []

    def compiled() -> Any:
        made.append(1)
        return SimpleNamespace(schedule="schedule", smaller=lambda executor: executor)

    later = _Later(None, compiled)  # type: ignore[arg-type]
    assert not made
    assert (later.schedule, later.smaller("e"), made) == ("schedule", "e", [1])  # type: ignore[arg-type, comparison-overlap]


def test_long_names() -> None:
    """They lose their middle."""
    name = identifier("first_" + "x" * 200 + "_last")
    assert name.startswith("first_x") and name.endswith("x_last")
    assert MOST_CHARACTERS - 1 <= len(name) <= MOST_CHARACTERS


def test_attributes_that_are_tensors() -> None:
    assert _same(np.array([1, 2]), np.array([1, 2])) and not _same(np.array([1, 2]), np.array([1, 3]))
    assert not _same(1, 2)


def test_no_work_for_the_host() -> None:
    assert HostWork((), 1).line() == "left to the host: nothing"


def test_types_that_numpy_lacks() -> None:
    assert (float_dtype("float16"), float_dtype("float8e4m3fn")) == (np.float16, np.float32)


def test_a_model_that_does_not_fit_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr("hwflow.loaded_model.quantized_of", none_left)
    b = Builder(19, 9)
    b.output(b.quantize(b.node("Relu", b.requantize(b.input("x", ["N", 3]), 0.5)), 0.5))
    (finding,) = checking.check(b.save(tmp_path))
    assert finding.rule == "memory" and "must fit into memory, but it does not: out of memory" in finding.message


def test_folders_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The root of a file system; one that the system refuses."""
    monkeypatch.setattr(output_folder.os.path, "ismount", lambda path: True)
    with pytest.raises(UsageError, match="it is the root of a file system, which cannot be replaced"):
        output_folder.check_writable(tmp_path)
    monkeypatch.undo()

    def full(*arguments: object, **named: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(output_folder, "_lock_in", full)
    with (
        pytest.raises(UsageError, match="the system says: No space left on device"),
        output_folder.claimed(tmp_path / "out"),
    ):
        pass
