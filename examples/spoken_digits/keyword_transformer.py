"""The network: a keyword transformer, float32."""

from __future__ import annotations

import torch
from speech import MELS, STEPS, WORDS
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 32
"""Elements of a token."""
HEADS = 2
HIDDEN = 64
"""Elements of a token between the two layers of a block's perceptron."""
BLOCKS = 2


class Attention(nn.Module):
    """Attention of all tokens to all."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.mix = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, tokens: Tensor) -> Tensor:
        """Map float32 [frames, tokens, WIDTH] to the same shape."""
        query, key, value = (
            layer(tokens).unflatten(2, (HEADS, WIDTH // HEADS)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        mixed = functional.scaled_dot_product_attention(query, key, value)
        return self.mix(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention, then a perceptron for each token; its result added, then a norm, after each."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.expand, self.contract = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map float32 [frames, tokens, WIDTH] to the same shape."""
        tokens = self.norm1(tokens + self.attention(tokens))
        return self.norm2(tokens + self.contract(functional.gelu(self.expand(tokens))))


class KeywordTransformer(nn.Module):
    """A token for each spectrum, positions added, blocks, the tokens' mean, a dense layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(MELS, WIDTH)
        self.positions = nn.Parameter(torch.randn(1, STEPS, WIDTH) * 0.1)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.classify = nn.Linear(WIDTH, len(WORDS))

    def forward(self, features: Tensor) -> Tensor:
        """Map features, float32 [frames, STEPS, MELS], to logits, float32 [frames, 10]."""
        return self.classify(self.blocks(self.embed(features) + self.positions).mean(dim=1))
