"""Train the keyword transformer in float and export it.

``python train.py`` writes ``float.onnx``, ``calibration.npz`` and ``inputs.npz`` beside itself and prints the accuracy
on the test split.
"""

from __future__ import annotations

from pathlib import Path

from keyword_transformer import KeywordTransformer
from training import make

if __name__ == "__main__":
    make(KeywordTransformer, Path(__file__).resolve().parent)
