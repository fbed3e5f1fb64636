"""Train the decoder in float and export it.

``python train.py`` writes ``float.onnx``, ``calibration.npz`` and ``inputs.npz`` beside itself and prints how many
letters of the test frames it foresees.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from decoder import Decoder
from numbers_in_words import LENGTH, frames, split
from torch.nn import functional

FOLDER = Path(__file__).resolve().parent
SEED = 1
STEPS, BATCH, LEARNING_RATE, WEIGHT_DECAY = 3000, 32, 4e-3, 0.02
CALIBRATION_FRAMES, TEST_FRAMES = 128, 200
OPSET = 20
"""The first with Gelu."""


def train(network: Decoder, text: torch.Tensor) -> None:
    """Train in place with AdamW, a short warm-up and a cosine learning rate."""
    optimiser = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LEARNING_RATE, total_steps=STEPS, pct_start=0.05)
    network.train()
    for step in range(1, STEPS + 1):
        chosen = text[torch.randint(len(text), (BATCH,))]
        loss = functional.cross_entropy(network(chosen[:, :-1]).flatten(0, 1), chosen[:, 1:].flatten())
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
        schedule.step()
        if step % 500 == 0:
            print(f"  step {step:4d}: loss {loss.item():.4f}", flush=True)
    network.eval()


def main() -> None:
    """Run it all; the result depends only on the constants above and on the versions of the packages."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(SEED)
    random = np.random.default_rng(SEED)
    trained, tested = split()
    network = Decoder()
    print(f"training {sum(p.numel() for p in network.parameters())} parameters in float")
    train(network, torch.from_numpy(frames(20_000, trained, random)))
    test = frames(TEST_FRAMES, tested, random)
    with torch.no_grad():
        foreseen = network(torch.from_numpy(test[:, :-1])).numpy().argmax(axis=2)
    print(f"letters foreseen: {np.mean(foreseen == test[:, 1:]):.4f}")
    torch.onnx.export(
        network, (torch.zeros(1, LENGTH, dtype=torch.int64),), FOLDER / "float.onnx", input_names=["letters"],
        output_names=["logits"], opset_version=OPSET, dynamo=True, external_data=False,
    )
    np.savez_compressed(FOLDER / "calibration.npz", letters=frames(CALIBRATION_FRAMES, trained, random)[:, :-1])
    np.savez_compressed(FOLDER / "inputs.npz", letters=test[:, :-1], next=test[:, 1:])


if __name__ == "__main__":
    main()
