"""Measure the noise of roundings, and choose widths by it."""
