"""Exact timing, and the FIFO depths that sustain an initiation interval."""
