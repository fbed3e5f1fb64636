"""The network, in float and with fake quantization, and its two-stage training."""

from __future__ import annotations

from collections.abc import Callable

import torch
from dataset import augment
from quantization import (
    ActivationParameters,
    fake_quantize_activation,
    fake_quantize_bias,
    fake_quantize_weight,
    weight_scale,
)
from torch import Tensor, nn
from torch.nn import functional

ACTIVATIONS = ("image", "relu1", "relu2", "logits")
"""The tensors with quantization parameters of their own; pooling and flattening keep those of their input."""


class DigitsNetwork(nn.Module):
    """conv1 - relu1 - pool1 - conv2 - relu2 - pool2 - flatten - dense, 1898 parameters.

    Attributes:
        quantization: parameters per name of ``ACTIVATIONS``. Empty: the network computes in float.
            Filled by ``calibrate``: forward passes compute with fake-quantized weights, biases, activations.
    """

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, kernel_size=3, padding=1)
        self.dense = nn.Linear(64, 10)
        self.quantization: dict[str, ActivationParameters] = {}

    def forward(self, image: Tensor) -> Tensor:
        """Map normalised images, float32 [frames, 1, 8, 8], to logits, float32 [frames, 10]."""
        return self.activations(image)["logits"]

    def activations(self, image: Tensor) -> dict[str, Tensor]:
        """Return the tensors named by ``ACTIVATIONS`` of one forward pass over [frames, 1, 8, 8]."""
        image = self._activation("image", image)
        weight, bias = self._parameters_of(self.conv1, "image")
        relu1 = self._activation("relu1", torch.relu(functional.conv2d(image, weight, bias, padding=1)))
        pool1 = functional.max_pool2d(relu1, 2)
        weight, bias = self._parameters_of(self.conv2, "relu1")
        relu2 = self._activation("relu2", torch.relu(functional.conv2d(pool1, weight, bias, padding=1)))
        pool2 = functional.max_pool2d(relu2, 2)
        weight, bias = self._parameters_of(self.dense, "relu2")
        logits = self._activation("logits", functional.linear(pool2.flatten(1), weight, bias))
        return {"image": image, "relu1": relu1, "relu2": relu2, "logits": logits}

    def calibrate(self, images: Tensor) -> None:
        """Set ``quantization`` from the ranges that float forward passes over ``images`` show.

        The input and the logits keep their full range. After Relu, values above the 99.95th percentile saturate.

        Args:
            images: normalised training images, float32, shape [frames, 1, 8, 8].
        """
        self.quantization = {}
        with torch.no_grad():
            seen = self.activations(images)
        parameters = {}
        for name in ACTIVATIONS:
            low, high = seen[name].min().item(), seen[name].max().item()
            if name.startswith("relu"):
                high = torch.quantile(seen[name].flatten(), 0.9995).item()
            parameters[name] = ActivationParameters.from_range(low, high)
        self.quantization = parameters

    def _activation(self, name: str, values: Tensor) -> Tensor:
        if not self.quantization:
            return values
        return fake_quantize_activation(values, self.quantization[name])

    def _parameters_of(self, layer: nn.Conv2d | nn.Linear, input_name: str) -> tuple[Tensor, Tensor]:
        assert layer.bias is not None
        if not self.quantization:
            return layer.weight, layer.bias
        bias_scale = self.quantization[input_name].scale * weight_scale(layer.weight)
        return fake_quantize_weight(layer.weight), fake_quantize_bias(layer.bias, bias_scale)


def train(
    network: DigitsNetwork,
    images: Tensor,
    labels: Tensor,
    *,
    epochs: int,
    learning_rate: float,
    generator: torch.Generator,
    report: Callable[[int, float], None],
) -> None:
    """Train in place with AdamW, a cosine learning rate, and augmented images; the last epoch's weights stay.

    Args:
        network: float, or calibrated for quantization-aware training.
        images: normalised training images, float32, shape [frames, 1, 8, 8].
        labels: int64, shape [frames], digits 0..9.
        epochs: passes over the images.
        learning_rate: of the first step; decays to zero.
        generator: source of the order and of the augmentation.
        report: called after every epoch with its number, from 1, and its mean loss in nats.
    """
    batch_size = 32
    batches = -(-len(images) // batch_size)
    optimiser = torch.optim.AdamW(network.parameters(), lr=learning_rate, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs * batches)
    network.train()
    for epoch in range(1, epochs + 1):
        total = 0.0
        order = torch.randperm(len(images), generator=generator)
        for start in range(0, len(images), batch_size):
            chosen = order[start : start + batch_size]
            loss = functional.cross_entropy(network(augment(images[chosen], generator)), labels[chosen])
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
            schedule.step()
            total += loss.item() * len(chosen)
        report(epoch, total / len(images))
    network.eval()
