"""Exact arithmetic of quantized networks: rounding, staircases, requantizers, accumulators.

Plain ints and :class:`fractions.Fraction` in the interfaces; no float anywhere.
"""
