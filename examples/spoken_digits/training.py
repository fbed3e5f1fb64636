"""Train a classifier of spoken digits, write it as torch's exporter does, and the frames beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from speech import MELS, STEPS, Split, augment, load_splits, rounded
from torch import nn
from torch.nn import functional

SEED = 1
EPOCHS, BATCH, LEARNING_RATE, WEIGHT_DECAY = 40, 32, 3e-3, 0.05
CALIBRATION_FRAMES = 256
OPSET = 20
"""The first with Gelu."""


def train(network: nn.Module, split: Split) -> None:
    """Train in place with AdamW, a short warm-up, a cosine learning rate and augmented features."""
    labels, random = torch.from_numpy(split.label), np.random.default_rng(SEED)
    steps = EPOCHS * -(-len(labels) // BATCH)
    optimiser = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LEARNING_RATE, total_steps=steps, pct_start=0.1)
    network.train()
    for epoch in range(1, EPOCHS + 1):
        total, order = 0.0, random.permutation(len(labels))
        for chosen in np.split(order, range(BATCH, len(order), BATCH)):
            loss = functional.cross_entropy(
                network(torch.from_numpy(augment(split.features[chosen], random))), labels[chosen], label_smoothing=0.05
            )
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
            schedule.step()
            total += loss.item() * len(chosen)
        if epoch % 5 == 0:
            print(f"  epoch {epoch:3d}: loss {total / len(labels):.4f}", flush=True)
    network.eval()


def accuracy(network: nn.Module, split: Split) -> float:
    """Return the share of a split's frames that are told right."""
    with torch.no_grad():
        logits = network(torch.from_numpy(split.features)).numpy()
    return float(np.mean(logits.argmax(axis=1) == split.label))


def export(network: nn.Module, folder: Path) -> None:
    """Write ``float.onnx``: ``features`` [1, STEPS, MELS] to ``logits`` [1, 10]."""
    torch.onnx.export(
        network, (torch.zeros(1, STEPS, MELS),), folder / "float.onnx", input_names=["features"],
        output_names=["logits"], opset_version=OPSET, dynamo=True, external_data=False,
    )


def save_frames(trained: Split, tested: Split, folder: Path) -> None:
    """Write ``calibration.npz`` and ``inputs.npz``. Calibration frames are augmented as those of the training are: with
    the voices as they are, ranges would be too narrow for others."""
    random = np.random.default_rng(SEED)
    some = augment(trained.features[random.permutation(len(trained.label))[:CALIBRATION_FRAMES]], random)
    np.savez_compressed(folder / "calibration.npz", features=rounded(some))
    np.savez_compressed(folder / "inputs.npz", features=tested.features, label=tested.label)


def make(kind: Callable[[], nn.Module], folder: Path) -> None:
    """Do all of it; the result depends only on the constants and on the versions of the packages and of espeak-ng."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(SEED)
    trained, tested = load_splits()
    network = kind()
    print(f"training {sum(p.numel() for p in network.parameters())} parameters on {len(trained.label)} frames")
    train(network, trained)
    print(f"accuracy on the test split, {len(tested.label)} frames: {accuracy(network, tested):.4f}")
    export(network, folder)
    save_frames(trained, tested, folder)
