"""Requantizers."""
