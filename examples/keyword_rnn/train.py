"""Train a GRU and an LSTM on words in a row, and export both as one step of a stream and over a whole word.

``python train.py`` writes ``gru_stream_float.onnx``, ``gru_word_float.onnx`` and those of the LSTM beside itself, and
prints the accuracy on the test split. The words and their features are those of ``../spoken_digits``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from network import HIDDEN, KINDS, MELS, STATES, Keyword, Step, Word
from numpy.typing import NDArray
from torch.nn import functional

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "spoken_digits"))

from speech import STEPS, Split, augment, load_splits  # noqa: E402  # found by that path

SEED = 1
EPOCHS, ROWS, LEARNING_RATE, WEIGHT_DECAY = 30, 32, 1e-2, 0.02
IN_A_ROW = 6
"""Words that follow each other in training, with no reset between them."""
HEARD = 4
"""Spectra at a word's end where it is to be known; the last of them counts in the test."""
OPSET = 20


def rows(split: Split, random: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Return all words, augmented, IN_A_ROW after each other: float32 [rows, spectra, MELS], int64 [rows, IN_A_ROW]."""
    order = random.permutation(len(split.label) // IN_A_ROW * IN_A_ROW)
    features = augment(split.features[order], random)
    return (
        torch.from_numpy(features).reshape(-1, IN_A_ROW * STEPS, features.shape[2]),
        torch.from_numpy(split.label[order]).reshape(-1, IN_A_ROW),
    )


def at_the_ends(logits: torch.Tensor) -> torch.Tensor:
    """Return the logits of the last HEARD spectra of each word: [rows, words, HEARD, classes]."""
    return logits.unflatten(1, (-1, STEPS))[:, :, -HEARD:]


def train(network: Keyword, split: Split) -> None:
    """Train in place with AdamW and a cosine learning rate."""
    random = np.random.default_rng(SEED)
    batches = -(-(len(split.label) // IN_A_ROW) // ROWS)
    optimiser = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, LEARNING_RATE, total_steps=EPOCHS * batches, pct_start=0.1
    )
    network.train()
    for epoch in range(1, EPOCHS + 1):
        total = 0.0
        for features, labels in zip(*(each.split(ROWS) for each in rows(split, random)), strict=True):
            ends = at_the_ends(network(features))
            wanted = labels[:, :, None].expand(-1, -1, HEARD)
            loss = functional.cross_entropy(ends.flatten(0, 2), wanted.flatten(), label_smoothing=0.05)
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total += loss.item() / batches
        if epoch % 10 == 0:
            print(f"  epoch {epoch:3d}: loss {total:.4f}", flush=True)
    network.eval()


def accuracy(network: Keyword, features: NDArray[np.float32], label: NDArray[np.int64]) -> float:
    """Return the share of words told right, all in a row."""
    with torch.no_grad():
        logits = network(torch.from_numpy(features).flatten(0, 1)[None])
    return float(np.mean(at_the_ends(logits)[0, :, -1].argmax(dim=1).numpy() == label))


def export(network: Keyword, kind: str) -> None:
    """Write the network's two models, with the operators GRU and LSTM."""
    states = STATES[kind]
    for name, module, inputs in (
        ("word", Word(network), {"features": torch.zeros(1, STEPS, MELS)}),
        ("stream", Step(network), {"features": torch.zeros(1, MELS)} | {s: torch.zeros(1, HIDDEN) for s in states}),
    ):
        outputs = ["logits", *(f"{state}_next" for state in states if state in inputs)]
        torch.onnx.export(
            module.eval(), tuple(inputs.values()), HERE / f"{kind}_{name}_float.onnx", input_names=list(inputs),
            output_names=outputs, opset_version=OPSET, dynamo=True, external_data=False,
        )


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    trained, tested = load_splits()
    shuffled = np.random.default_rng(SEED).permutation(len(tested.label))
    for kind in KINDS:
        torch.manual_seed(SEED)
        network = Keyword(kind)
        print(f"{kind}: {sum(p.numel() for p in network.parameters())} parameters, {len(trained.label)} words")
        train(network, trained)
        right = accuracy(network, tested.features[shuffled], tested.label[shuffled])
        print(f"{kind}: accuracy on {len(tested.label)} words of the test split, all in a row: {right:.4f}")
        export(network, kind)
