"""Runs the design on a PYNQ board, with hwflow.bit and hwflow.hwh beside this file, in the whole output folder.

    python3 overlay.py          checks the test bench's frames

or, from Python there:

    from overlay import Accelerator
    outputs = Accelerator().run({"image": images})      # the model's own arrays, frames first

Needs the pynq package, which PYNQ's images have, and onnxruntime where there is a prefix.onnx or suffix.onnx.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
MOST = 1 << 22  # bytes of a transfer


class Accelerator:
    """The core behind its DMA engine, whose overlay it loads. ``prefix``, ``suffix``: functions that compute what is
    left to the host, from arrays to arrays by name, in onnxruntime's place."""

    def __init__(
        self, folder: Path = HERE, prefix: Callable[..., Any] | None = None, suffix: Callable[..., Any] | None = None
    ) -> None:
        from pynq import Overlay

        sys.path.insert(0, str(folder.parent / "host"))
        from hwflow_host.frame_coder import FrameCoder  # type: ignore[import-not-found]
        from hwflow_host.host_design import read_design  # type: ignore[import-not-found]

        self.design = read_design(folder.parent)
        self.coder = FrameCoder(self.design, prefix, suffix)
        host = json.loads((folder / "board.json").read_text())["host"]
        self._input_beat, self._output_beat = host["input_beat"], host["output_beat"]
        self.dma = Overlay(str(folder / "hwflow.bit")).dma

    def run(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Return the model's outputs by name for its inputs by name, both [frames, *shape], of any number of frames."""
        given = self.coder.check(arrays)
        if not len(next(iter(given.values()))):
            nothing: dict[str, Any] = self.coder.own(self.coder.nothing())
            return nothing
        received = self.coder.decode(self.raw(self.coder.encode(self.coder.integers(given))))
        outputs: dict[str, Any] = self.coder.own(self.coder.outputs(received, given))
        return outputs

    def raw(self, frames: Any) -> Any:
        """Exchange bytes: uint8[frames, bytes of a frame of all inputs] in, the same of the outputs out."""
        step = max(1, MOST // (self._input_beat * sum(beats for _, beats in self.design.input_shapes)))
        return np.concatenate([self._transfer(frames[n : n + step]) for n in range(0, len(frames), step)])

    def _transfer(self, frames: Any) -> Any:
        """Transfer once each way, in beats as wide as the DMA engine's streams, a frame of each stream in turn."""
        from pynq import allocate

        into, outof = self.design.input_shapes, self.design.output_shapes
        sent = allocate((len(frames), sum(beats for _, beats in into), self._input_beat), dtype=np.uint8)
        got = allocate((len(frames), sum(beats for _, beats in outof), self._output_beat), dtype=np.uint8)
        try:
            sent[:] = 0
            byte = beat = 0
            for size, beats in into:
                part = frames[:, byte : byte + size * beats].reshape(len(frames), beats, size)
                sent[:, beat : beat + beats, :size] = part
                byte, beat = byte + size * beats, beat + beats
            self.dma.recvchannel.transfer(got)
            self.dma.sendchannel.transfer(sent)
            self.dma.sendchannel.wait()
            self.dma.recvchannel.wait()
            answers, beat = [], 0
            for size, beats in outof:
                answers.append(np.array(got[:, beat : beat + beats, :size]).reshape(len(frames), -1))
                beat += beats
            return np.concatenate(answers, axis=1)
        finally:
            sent.freebuffer()
            got.freebuffer()


def main() -> int:
    """Run the test bench's frames; 0 if the answers are equal, 1 if not."""
    accelerator = Accelerator()
    from hwflow_host.run_command import run_bench  # type: ignore[import-not-found]

    frames, different, first = run_bench(accelerator)
    print(f"{frames} frames, {different} differ: {f'DIFFERENT, first {first}' if different else 'equal'}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
