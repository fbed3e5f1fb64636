"""Train the vision transformer in float and export it.

``python train.py`` writes ``float.onnx``, ``calibration.npz`` and ``inputs.npz`` beside itself and prints the accuracy
on the test split.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from torch.nn import functional

FOLDER = Path(__file__).resolve().parent
sys.path.append(str(FOLDER.parent / "digits"))

from dataset import Split, augment, load_splits  # noqa: E402  # found by that path
from export import export_model  # noqa: E402  # found by that path
from vit import VisionTransformer  # noqa: E402  # found by that path

SEED = 1
EPOCHS, BATCH, LEARNING_RATE, WEIGHT_DECAY = 200, 32, 2e-3, 0.02
CALIBRATION_FRAMES = 128


def train(network: VisionTransformer, split: Split, generator: torch.Generator) -> None:
    """Train in place with AdamW, a short warm-up, a cosine learning rate and augmented images."""
    images, labels = torch.from_numpy(split.image), torch.from_numpy(split.label)
    steps = EPOCHS * -(-len(images) // BATCH)
    optimiser = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LEARNING_RATE, total_steps=steps, pct_start=0.05)
    network.train()
    for epoch in range(1, EPOCHS + 1):
        total = 0.0
        for chosen in torch.randperm(len(images), generator=generator).split(BATCH):
            loss = functional.cross_entropy(network(augment(images[chosen], generator)), labels[chosen])
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
            schedule.step()
            total += loss.item() * len(chosen)
        if epoch % 20 == 0:
            print(f"  epoch {epoch:3d}: loss {total / len(images):.4f}", flush=True)
    network.eval()


def main() -> None:
    """Run it all; the result depends only on the constants above and on the versions of the packages."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(SEED)
    train_split, test_split = load_splits()
    network = VisionTransformer()
    print(f"training {sum(p.numel() for p in network.parameters())} parameters in float")
    train(network, train_split, torch.Generator().manual_seed(SEED))
    with torch.no_grad():
        logits = network(torch.from_numpy(test_split.image)).numpy()
    print(f"accuracy on the test split: {np.mean(logits.argmax(axis=1) == test_split.label):.4f}")
    onnx.save(export_model(network), FOLDER / "float.onnx")
    np.savez_compressed(FOLDER / "calibration.npz", image=train_split.image[:CALIBRATION_FRAMES])
    np.savez_compressed(FOLDER / "inputs.npz", image=test_split.image, label=test_split.label)


if __name__ == "__main__":
    main()
