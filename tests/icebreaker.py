"""A small dense network with its bitstream for the iCEBreaker, made once for all workers of a session."""

from __future__ import annotations

from pathlib import Path

from hwflow.cli import main
from tests.flow.networks import dense_network
from tests.shared import locked, shared_folder

OPTIONS = ("--board", "icebreaker", "--fps", "link", "--clock", "36")  # which the first placement reaches


def with_bitstream(base: Path) -> Path:
    """Return a folder with ``m.onnx`` and ``out``, made in two goes: Verilog, then the bitstream. Tests that write take
    a copy. ``base``: pytest's folder of this worker."""
    folder = shared_folder(base) / "icebreaker"
    folder.mkdir(exist_ok=True)
    with locked(folder):
        if not (folder / "whole").is_file():
            model = dense_network(folder / "m.onnx")
            for until in ("verilog", "bitstream"):
                assert main(["synth", str(model), *OPTIONS, "--until", until, "-o", str(folder / "out")]) == 0
            (folder / "whole").touch()
    return folder
