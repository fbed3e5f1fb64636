"""Functions of reals, and the exact step functions that quantizers turn them into."""
