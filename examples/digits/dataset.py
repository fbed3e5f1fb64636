"""The 8x8 digits data set: a fixed train/test split, the normalisation, and the training augmentation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor
from torch.nn import functional

PIXEL_FULL_SCALE = 16.0
"""Largest pixel value of the data set (ink count of a 4x4 block)."""
PIXEL_MEAN = 0.305
"""Mean of ``pixel / 16`` over the training split, rounded; unitless."""
PIXEL_DEVIATION = 0.376
"""Standard deviation of ``pixel / 16`` over the training split, rounded; unitless."""

TEST_FRAMES = 360
SPLIT_SEED = 2024


@dataclass(frozen=True)
class Split:
    """One part of the data set.

    Attributes:
        image: float32, shape [frames, 1, 8, 8], normalised pixels in about [-0.81, 1.85].
        label: int64, shape [frames], digits 0..9.
    """

    image: NDArray[np.float32]
    label: NDArray[np.int64]


def normalise(pixels: NDArray[np.float64]) -> NDArray[np.float32]:
    """Turn raw pixels into the terms of the model's input.

    Args:
        pixels: shape [frames, 64] or [frames, 8, 8], values 0..16.

    Returns:
        float32, shape [frames, 1, 8, 8]: ``(pixel / 16 - PIXEL_MEAN) / PIXEL_DEVIATION``.
    """
    images = pixels.reshape(-1, 1, 8, 8)
    return ((images / PIXEL_FULL_SCALE - PIXEL_MEAN) / PIXEL_DEVIATION).astype(np.float32)


def load_splits() -> tuple[Split, Split]:
    """Return the training split (1437 frames) and the test split (360 frames), stratified by digit."""
    pixels, labels = load_digits(return_X_y=True)
    train_pixels, test_pixels, train_labels, test_labels = train_test_split(
        pixels, labels, test_size=TEST_FRAMES, stratify=labels, random_state=SPLIT_SEED
    )
    train = Split(normalise(train_pixels), np.asarray(train_labels, dtype=np.int64))
    test = Split(normalise(test_pixels), np.asarray(test_labels, dtype=np.int64))
    return train, test


def augment(images: Tensor, generator: torch.Generator) -> Tensor:
    """Rotate, scale, shear and shift every image at random by a little, with bilinear resampling.

    Args:
        images: float32, shape [frames, 1, 8, 8], normalised.
        generator: source of the random numbers.

    Returns:
        Same shape, terms and value range. What enters from outside a frame is background (pixel value 0).
    """
    frames = images.shape[0]

    def uniform(limit: float) -> Tensor:
        return (torch.rand(frames, generator=generator) * 2 - 1) * limit

    angle, shear = uniform(math.radians(12)), uniform(0.15)
    zoom_x, zoom_y = 1 + uniform(0.10), 1 + uniform(0.10)
    shift_x, shift_y = uniform(0.75 * 2 / 8), uniform(0.5 * 2 / 8)  # in half frame widths: 2 / 8 is one pixel
    cos, sin = torch.cos(angle), torch.sin(angle)
    row_x = torch.stack([zoom_x * cos, shear - sin, shift_x], dim=1)
    row_y = torch.stack([sin, zoom_y * cos, shift_y], dim=1)
    grid = functional.affine_grid(torch.stack([row_x, row_y], dim=1), list(images.shape), align_corners=False)
    background = -PIXEL_MEAN / PIXEL_DEVIATION
    # grid_sample fills with zeros: move the background to zero for the resampling.
    return functional.grid_sample(images - background, grid, align_corners=False) + background
