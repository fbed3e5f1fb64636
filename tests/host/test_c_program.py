"""The example in C speaks the protocol: it is compiled, and talks to a board in software."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from hwflow.toolchain.system import CXX
from tests.host.link_peer import Peer, Pipes, identity
from tests.test_project import ROOT

SOURCE = ROOT / "examples" / "c" / "frames.c"


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("c") / "frames"
    compiler = CXX.find().command[0]
    language = ["-x", "c", "-std=c11", "-D_DEFAULT_SOURCE"]
    subprocess.run([compiler, *language, "-O2", "-Wall", "-Wextra", "-Werror", "-o", made, SOURCE], check=True)
    return made


def pipes() -> Pipes:
    """Frames of 2 * 4 + 3 bytes; the answer is two sums."""
    def compute(frames):
        total = frames.astype(np.int64) @ np.arange(1, 12)
        return np.stack([total >> 8 & 255, total & 255], axis=1)

    return Pipes(identity([(2, 4), (3, 1)], [(1, 2)], most=256), 11, 2, compute, most=256)


@pytest.mark.parametrize("rate", [0.0, 0.006])
def test_answers(program, rate):
    frames = np.random.default_rng(1).integers(0, 256, (700, 11), dtype=np.uint8)
    frames[::2] &= 1  # many zeros
    frames[100:150] = 255  # and none for a while
    with Peer(pipes(), rate=rate, seed=4) as peer:
        ran = subprocess.run([program, peer.port], input=frames.tobytes() + b"half", capture_output=True, timeout=100)
        assert (ran.returncode, ran.stderr) == (0, b"")
        assert peer.pipes.frames == 700
        assert rate == 0 or min(faults.count for faults in peer.faults) > 0
    assert ran.stdout == peer.pipes.compute(frames).astype(np.uint8).tobytes()


def test_no_board(program, tmp_path):
    ran = subprocess.run([program, tmp_path / "none"], input=b"", capture_output=True)
    assert (ran.returncode, ran.stderr) == (2, b"usage: frames DEVICE < frames > answers\n")
    with Peer(Pipes(identity([(1, 1)], [(1, 1)], version=7), 1, 1, lambda frames: frames)) as peer:
        ran = subprocess.run([program, peer.port], input=b"", capture_output=True, timeout=100)
        assert (ran.returncode, ran.stderr) == (3, b"the protocol must be version 1, not 7\n")
