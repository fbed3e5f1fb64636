"""The network: a vision transformer for 8x8 images, float32."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

TOKENS = 16
"""Patches of 2x2 pixels, row by row."""
WIDTH = 32
"""Elements of a token."""
HEADS = 2
HIDDEN = 64
"""Elements of a token between the two layers of a block's perceptron."""
BLOCKS = 2
CLASSES = 10


class Block(nn.Module):
    """Attention of all tokens to all, then a perceptron for each token, each behind a norm, its result added."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.expand, self.contract = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map float32 [frames, TOKENS, WIDTH] to the same shape."""
        read = self.norm1(tokens)
        query, key, value = (self._heads(layer(read)) for layer in (self.query, self.key, self.value))
        shares = torch.softmax(query @ key.transpose(2, 3) * (WIDTH // HEADS) ** -0.5, dim=-1)
        mixed = (shares @ value).transpose(1, 2).reshape(tokens.shape)
        tokens = tokens + self.mix(mixed)
        return tokens + self.contract(functional.gelu(self.expand(self.norm2(tokens))))

    @staticmethod
    def _heads(tokens: Tensor) -> Tensor:
        """Part [frames, TOKENS, WIDTH] into [frames, HEADS, TOKENS, WIDTH / HEADS]."""
        return tokens.reshape(len(tokens), TOKENS, HEADS, WIDTH // HEADS).transpose(1, 2)


class VisionTransformer(nn.Module):
    """Patches as tokens, positions added, blocks, a norm, the tokens' mean, a dense layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(1, WIDTH, kernel_size=2, stride=2)
        self.positions = nn.Parameter(torch.randn(1, TOKENS, WIDTH) * 0.1)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm = nn.LayerNorm(WIDTH)
        self.classify = nn.Linear(WIDTH, CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        """Map normalised images, float32 [frames, 1, 8, 8], to logits, float32 [frames, CLASSES]."""
        tokens = self.embed(image).flatten(2).transpose(1, 2) + self.positions
        for block in self.blocks:
            tokens = block(tokens)
        return self.classify(self.norm(tokens).mean(dim=1))
