"""8-bit affine quantization: parameters, and fake quantization with straight-through gradients.

A real value ``r`` and its integer code ``q`` relate as in ONNX QuantizeLinear and DequantizeLinear:
``q = clamp(round_half_even(r / scale) + zero_point)`` and ``r = (q - zero_point) * scale``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

ACTIVATION_MAX = 255
"""Activations are uint8, codes 0..255, one scale and zero point per tensor."""
WEIGHT_MAX = 127
"""Weights are int8, codes -127..127, zero point 0, one scale per output channel."""


@dataclass(frozen=True)
class ActivationParameters:
    """Quantization of one activation tensor.

    Attributes:
        scale: real value of one code step, > 0; representable in float32.
        zero_point: code of real zero, 0..255.
    """

    scale: float
    zero_point: int

    @classmethod
    def from_range(cls, low: float, high: float) -> ActivationParameters:
        """Cover the real range [low, high], widened so that it contains zero."""
        low, high = min(low, 0.0), max(high, 0.0)
        scale = torch.tensor((high - low) / ACTIVATION_MAX, dtype=torch.float32).item()
        return cls(scale, round(-low / scale))


def _straight_through(exact: Tensor, approximation: Tensor) -> Tensor:
    """Return ``approximation`` in the forward pass with the gradient of ``exact``."""
    return exact + (approximation - exact).detach()


def fake_quantize_activation(values: Tensor, parameters: ActivationParameters) -> Tensor:
    """Quantize to uint8 and back.

    Args:
        values: float32, any shape.
        parameters: scale and zero point of the tensor.

    Returns:
        Same shape. The gradient is passed on inside of the representable range and is zero outside of it.
    """
    scale, zero_point = parameters.scale, parameters.zero_point
    codes = torch.clamp(torch.round(values / scale) + zero_point, 0, ACTIVATION_MAX)
    clamped = torch.clamp(values, -zero_point * scale, (ACTIVATION_MAX - zero_point) * scale)
    return _straight_through(clamped, (codes - zero_point) * scale)


def weight_scale(weight: Tensor) -> Tensor:
    """Return the scale of every output channel: float32, shape [channels], > 0; ``weight`` has channels on axis 0."""
    return (weight.detach().abs().flatten(1).amax(dim=1) / WEIGHT_MAX).clamp_min(1e-8)


def quantize_weight(weight: Tensor, scale: Tensor) -> Tensor:
    """Return the codes -127..127 of ``weight`` (float32, channels on axis 0) by the scale of each channel."""
    per_channel = scale.reshape(-1, *[1] * (weight.dim() - 1))
    return torch.clamp(torch.round(weight / per_channel), -WEIGHT_MAX, WEIGHT_MAX)


def fake_quantize_weight(weight: Tensor) -> Tensor:
    """Quantize a weight tensor (channels on axis 0) to int8 per channel and back, straight-through."""
    scale = weight_scale(weight)
    per_channel = scale.reshape(-1, *[1] * (weight.dim() - 1))
    return _straight_through(weight, quantize_weight(weight, scale) * per_channel)


def fake_quantize_bias(bias: Tensor, scale: Tensor) -> Tensor:
    """Round a bias (float32, shape [channels]) to multiples of its accumulator's scale, straight-through."""
    return _straight_through(bias, torch.round(bias / scale) * scale)
