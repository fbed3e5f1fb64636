"""The network: a decoder of one block with a causal mask, float32."""

from __future__ import annotations

import torch
from numbers_in_words import LENGTH, LETTERS
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 32
"""Elements of a token."""
HEADS = 2
HIDDEN = 64
"""Elements of a token between the two layers of the perceptron."""


class Block(nn.Module):
    """Attention of each token to those up to it, then a perceptron, each behind a norm, its result added."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.key, self.value, self.mix = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.expand, self.contract = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map float32 [frames, tokens, WIDTH] to the same shape."""
        read = self.norm1(tokens)
        query, key, value = (
            layer(read).unflatten(2, (HEADS, WIDTH // HEADS)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        tokens = tokens + self.mix(mixed.transpose(1, 2).flatten(2))
        return tokens + self.contract(functional.gelu(self.expand(self.norm2(tokens))))


class Decoder(nn.Module):
    """An embedding of the letters, positions added, a block, a norm, a dense layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(LETTERS), WIDTH)
        self.positions = nn.Parameter(torch.randn(1, LENGTH, WIDTH) * 0.1)
        self.block = Block()
        self.norm = nn.LayerNorm(WIDTH)
        self.classify = nn.Linear(WIDTH, len(LETTERS))

    def forward(self, letters: Tensor) -> Tensor:
        """Map letters, int64 [frames, LENGTH], to logits of the letter behind each, [frames, LENGTH, letters]."""
        return self.classify(self.norm(self.block(self.embed(letters) + self.positions)))
