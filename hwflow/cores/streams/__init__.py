"""Elementwise operators on streams, concatenation and reordering."""
