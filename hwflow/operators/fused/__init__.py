"""Operators that onnxruntime fuses of others, by their definitions."""
