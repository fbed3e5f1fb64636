"""Convolutions, matrix products, pools and reductions."""
