"""Frames of the models, from the words of ../spoken_digits, and how many words a model's outputs tell right.

``make FOLDER`` writes ``word_calibration.npz``, ``word_inputs.npz`` and, with all words in a row, a spectrum a frame,
``stream_calibration.npz`` and ``stream_inputs.npz``. ``count STEPS Y.npz`` reads the logits, STEPS of each word, that
``hwflow sim --output`` wrote; ``evaluate MODEL.onnx`` computes them with onnxruntime. A word is told by its last ones.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

WORDS = Path(__file__).resolve().parent.parent / "spoken_digits"
Array = NDArray[np.float32]


def tested_words() -> tuple[Array, NDArray[np.int64]]:
    """Return the test split in another order, so that words follow each other at random: [words, spectra, bands]."""
    with np.load(WORDS / "inputs.npz") as arrays:
        order = np.random.default_rng(1).permutation(len(arrays["label"]))
        return arrays["features"][order], arrays["label"][order]


def make(folder: Path) -> None:
    """Write the four files."""
    features, label = tested_words()
    with np.load(WORDS / "calibration.npz") as arrays:
        calibration = arrays["features"]
    np.savez_compressed(folder / "word_calibration.npz", features=calibration)
    np.savez_compressed(folder / "word_inputs.npz", features=features, label=label)
    bands = features.shape[2]
    np.savez_compressed(folder / "stream_calibration.npz", features=calibration.reshape(-1, bands))
    np.savez_compressed(folder / "stream_inputs.npz", features=features.reshape(-1, bands))


def count(logits: Array, steps: int) -> str:
    """Say how many words are told right by ``logits``, ``steps`` of each word, from the first word on."""
    _, label = tested_words()
    ends = logits.reshape(len(logits), -1)[steps - 1 :: steps]
    right = int((ends.argmax(axis=1) == label[: len(ends)]).sum())
    return f"{right} of {len(ends)} words right ({100 * right / len(ends):.2f} %)"


def evaluate(path: Path) -> Array:
    """Return the logits of all words, with each state handed on if the model has some."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options)
    first, *states = session.get_inputs()
    names = [output.name for output in session.get_outputs()]
    features, _ = tested_words()
    frames = features if len(first.shape) == 3 else features.reshape(-1, features.shape[2])
    held, rows = {state.name: np.zeros(state.shape, np.float32) for state in states}, []
    for frame in frames:
        found = dict(zip(names, session.run(None, {first.name: frame[None], **held}), strict=True))
        held = {name: found[f"{name}_next"] for name in held}
        rows.append(found["logits"])
    return np.concatenate(rows)


if __name__ == "__main__":
    verb, *others, path = sys.argv[1:]
    if verb == "make":
        make(Path(path))
    elif verb == "evaluate":
        logits = evaluate(Path(path))
        print(f"{path}: {count(logits, len(logits) // len(tested_words()[1]))}")
    else:
        with np.load(path) as arrays:
            print(f"{path}: {count(arrays['logits'], int(others[0]))}")
