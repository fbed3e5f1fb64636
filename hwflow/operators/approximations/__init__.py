"""Reals that no integers carry exactly, in fixed point."""
