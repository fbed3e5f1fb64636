"""Products with constant matrices."""
