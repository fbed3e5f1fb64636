"""Train, quantize and export the digits example.

``python train.py`` writes ``model.onnx`` and ``inputs.npz`` beside itself and prints the accuracy on the test split.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from dataset import Split, load_splits
from export import export_model, float_logits, reference_logits
from network import DigitsNetwork, train
from numpy.typing import NDArray

SEED = 1
FLOAT_EPOCHS, FLOAT_LEARNING_RATE = 150, 1e-2
QUANTIZED_EPOCHS, QUANTIZED_LEARNING_RATE = 40, 1e-3


def accuracy(logits: NDArray[np.float32], split: Split) -> float:
    """Return the share, 0..1, of frames whose largest logit is at the label; ``logits`` is [frames, 10]."""
    return float(np.mean(logits.argmax(axis=1) == split.label))


def print_progress(epoch: int, loss: float) -> None:
    """Print every tenth epoch's mean loss, in nats."""
    if epoch % 10 == 0:
        print(f"  epoch {epoch:3d}: loss {loss:.4f}", flush=True)


def main() -> None:
    """Run the whole example; the result depends only on the constants above and on the versions of the packages."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(SEED)
    generator = torch.Generator().manual_seed(SEED)

    train_split, test_split = load_splits()
    images, labels = torch.from_numpy(train_split.image), torch.from_numpy(train_split.label)
    network = DigitsNetwork()

    print("training in float")
    train(
        network,
        images,
        labels,
        epochs=FLOAT_EPOCHS,
        learning_rate=FLOAT_LEARNING_RATE,
        generator=generator,
        report=print_progress,
    )
    float_accuracy = accuracy(float_logits(network, test_split.image), test_split)

    network.calibrate(images)
    calibrated_accuracy = accuracy(float_logits(network, test_split.image), test_split)
    print("training with fake quantization")
    train(
        network,
        images,
        labels,
        epochs=QUANTIZED_EPOCHS,
        learning_rate=QUANTIZED_LEARNING_RATE,
        generator=generator,
        report=print_progress,
    )

    model = export_model(network)
    folder = Path(__file__).resolve().parent
    onnx.save(model, folder / "model.onnx")
    np.savez_compressed(folder / "inputs.npz", input=test_split.image, label=test_split.label)

    for name, parameters in network.quantization.items():
        print(f"{name}: scale {parameters.scale:.9g}, zero point {parameters.zero_point}")
    quantized_accuracy = accuracy(reference_logits(model, test_split.image), test_split)
    print(f"float accuracy:                     {float_accuracy:.4f}")
    print(f"accuracy after calibration only:    {calibrated_accuracy:.4f}")
    print(f"quantized accuracy, ONNX reference: {quantized_accuracy:.4f}")


if __name__ == "__main__":
    main()
