"""Training models."""
