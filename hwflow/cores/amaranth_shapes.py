"""IR integer types as Amaranth shapes."""

from __future__ import annotations

from amaranth.hdl import Shape, signed, unsigned

from hwflow.types import IntType


def shape_of(element: IntType) -> Shape:
    """Return ``signed(bits)`` or ``unsigned(bits)``."""
    return signed(element.bits) if element.signed else unsigned(element.bits)
