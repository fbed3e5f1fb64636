"""Runs the design on a PYNQ board, with hwflow.bit and hwflow.hwh beside this file.

    python3 overlay.py          checks the test bench's frames (from the folder above: manifest.json, testbench/)

or, from Python there: ``Accelerator().run(beats)``. Needs the pynq package, which PYNQ's images have.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent


class Accelerator:
    """The core behind its DMA engine, whose overlay it loads. ``host``: bytes and beats of a frame (board.json)."""

    def __init__(self, folder: Path = HERE) -> None:
        from pynq import Overlay

        self.host: dict[str, int] = json.loads((folder / "board.json").read_text())["host"]
        self.dma = Overlay(str(folder / "hwflow.bit")).dma

    def run(self, frames: Any) -> Any:
        """uint8[frames, beats, bytes of a beat] in, the same of the outputs out; one transfer each way."""
        from pynq import allocate

        host = self.host
        want = (host["input_beats"], host["input_bytes"])
        frames = np.asarray(frames, dtype=np.uint8)
        if frames.ndim != 3 or frames.shape[1:] != want or not len(frames):
            raise ValueError(f"frames must have shape [1 or more, {want[0]}, {want[1]}], not {list(frames.shape)}")
        sent = allocate((len(frames), host["input_beats"], host["input_beat"]), dtype=np.uint8)
        got = allocate((len(frames), host["output_beats"], host["output_beat"]), dtype=np.uint8)
        try:
            # beats are made as wide as the DMA's stream, with zeros
            sent[:] = np.pad(frames, ((0, 0), (0, 0), (0, host["input_beat"] - want[1])))
            self.dma.recvchannel.transfer(got)
            self.dma.sendchannel.transfer(sent)
            self.dma.sendchannel.wait()
            self.dma.recvchannel.wait()
            return np.array(got[:, :, : host["output_bytes"]])
        finally:
            sent.freebuffer()
            got.freebuffer()


def main() -> int:
    """Run the test bench's frames; 0 if the answers are equal, 1 if not."""
    out = HERE.parent
    sys.path.insert(0, str(out / "testbench"))
    from hwflow_testbench.manifest import load_design  # type: ignore[import-not-found]
    from hwflow_testbench.vectors import load_vectors, pack  # type: ignore[import-not-found]

    design, vectors = load_design(out), load_vectors(out / "testbench" / "vectors.npz")
    (source,), (sink,) = design.inputs, design.outputs
    answer = Accelerator().run(pack(source, vectors.inputs[source.port]))
    expected = pack(sink, vectors.expected[sink.port])
    meant = np.repeat(sink.mask, sink.element_bytes, axis=1)  # lanes beyond the channels hold anything
    different = int(((answer != expected) & meant).any(axis=(1, 2)).sum())
    print(f"{len(expected)} frames, {different} differ: {'DIFFERENT' if different else 'equal'}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
