"""Operators that move, repeat, join or select elements."""
