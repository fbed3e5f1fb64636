"""Elementwise arithmetic, comparisons and functions."""
