"""Requantizers: a step function per channel."""
