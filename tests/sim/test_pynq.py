"""The script for a PYNQ board, with a stand-in for the pynq package that answers as tests/boards/plus_one.v does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from boards import find_board
from hwflow.codegen.board.board_files import write_board
from sim.testbench import write_overlay_host, write_testbench
from sim.vectors import Vectors
from tests.codegen.plus_one import emit

PYNQ = """
import numpy
class Buffer(numpy.ndarray):
    def freebuffer(self): print("freed", self.shape)
def allocate(shape, dtype): return numpy.full(shape, 99, dtype).view(Buffer)
class Channel:
    def __init__(self, dma): self.dma = dma
    def transfer(self, buffer): self.buffer = buffer
    def wait(self): self.dma.answer()
class Dma:
    def __init__(self): self.sendchannel, self.recvchannel = Channel(self), Channel(self)
    def answer(self): self.recvchannel.buffer[:] = self.sendchannel.buffer + 1
class Overlay:
    def __init__(self, path): print("loads", path.rpartition("/")[2]); self.dma = Dma()
"""


@pytest.fixture
def out(tmp_path) -> Path:
    out = emit(tmp_path / "out")
    (tmp_path / "pynq.py").write_text(PYNQ)
    write_board(out, find_board("pynq_z2"))
    write_overlay_host(out)
    return out


def run(out: Path, code: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(out.parent)}
    return subprocess.run(
        [sys.executable, *code], cwd=out / "board", env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("wrong", "verdict"), [(0, "3 frames, 0 differ: equal"), (1, "3 frames, 1 differ: DIFFERENT")])
def test_the_test_benchs_frames_are_checked(out, wrong, verdict):
    frames = np.arange(12, dtype=np.int64).reshape(3, 4, 1)
    expected = frames + 1
    expected[1, 2, 0] += wrong
    write_testbench(out, Vectors({"s_axis": frames}, {"m_axis": expected}))
    ran = run(out, ["overlay.py"])
    assert (ran.returncode, ran.stderr) == (wrong, "")
    assert ran.stdout.splitlines() == ["loads hwflow.bit", "freed (3, 4, 1)", "freed (3, 4, 1)", verdict]


def test_frames_of_another_shape_are_refused(out):
    code = "import numpy, overlay; overlay.Accelerator().run(numpy.zeros((2, 5, 1)))"
    ran = run(out, ["-c", code])
    assert ran.stderr.splitlines()[-1] == "ValueError: frames must have shape [1 or more, 4, 1], not [2, 5, 1]"
