"""Train the conformer in float and export it.

``python train.py`` writes ``float.onnx``, ``calibration.npz`` and ``inputs.npz`` beside itself and prints the accuracy
on the test split. Frames and training are those of ``../spoken_digits``.
"""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.append(str(FOLDER.parent / "spoken_digits"))

from block import Conformer  # noqa: E402  # what it imports is found by that path
from training import make  # noqa: E402  # found by that path

if __name__ == "__main__":
    make(Conformer, FOLDER)
