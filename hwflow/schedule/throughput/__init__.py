"""Exact timing, and which depths sustain an interval."""
