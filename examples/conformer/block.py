"""The network: a conformer block between a dense layer for each spectrum and one for the classes, float32.

Source of the block: A. Gulati et al., "Conformer: Convolution-augmented Transformer for Speech Recognition",
Interspeech 2020, figure 1; learned positions are added to the spectra instead of relative ones to the scores.
"""

from __future__ import annotations

import torch
from keyword_transformer import WIDTH, Attention
from speech import MELS, STEPS, WORDS
from torch import Tensor, nn
from torch.nn import functional

HIDDEN = 64
"""Elements of a token between the two layers of a feed-forward module."""
TAPS = 7
"""Of the depthwise convolution along time."""


class FeedForward(nn.Module):
    """Norm, a wider layer, Swish, and back."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.expand, self.contract = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map float32 [frames, tokens, WIDTH] to the same shape."""
        return self.contract(functional.silu(self.expand(self.norm(tokens))))


class Convolution(nn.Module):
    """Norm, pointwise convolution with a gate (GLU), depthwise convolution, norm, Swish, pointwise convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.gated = nn.Conv1d(WIDTH, 2 * WIDTH, 1)
        self.along = nn.Conv1d(WIDTH, WIDTH, TAPS, padding=TAPS // 2, groups=WIDTH)
        self.batch = nn.BatchNorm1d(WIDTH)
        self.mix = nn.Conv1d(WIDTH, WIDTH, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map float32 [frames, tokens, WIDTH] to the same shape."""
        channels = functional.glu(self.gated(self.norm(tokens).transpose(1, 2)), dim=1)
        return self.mix(functional.silu(self.batch(self.along(channels)))).transpose(1, 2)


class Conformer(nn.Module):
    """One block: half a feed-forward module, attention, convolution, the other half, norm; each but that one added."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(MELS, WIDTH)
        self.positions = nn.Parameter(torch.randn(1, STEPS, WIDTH) * 0.1)
        self.first, self.second = FeedForward(), FeedForward()
        self.norm, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.convolution = Convolution()
        self.last = nn.LayerNorm(WIDTH)
        self.classify = nn.Linear(WIDTH, len(WORDS))

    def forward(self, features: Tensor) -> Tensor:
        """Map features, float32 [frames, STEPS, MELS], to logits, float32 [frames, 10]."""
        tokens = self.embed(features) + self.positions
        tokens = tokens + 0.5 * self.first(tokens)
        tokens = tokens + self.attention(self.norm(tokens))
        tokens = tokens + self.convolution(tokens)
        tokens = tokens + 0.5 * self.second(tokens)
        return self.classify(self.last(tokens).mean(dim=1))
