"""Requantizers: step functions in hardware."""
