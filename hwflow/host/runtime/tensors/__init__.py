"""Tensors of the model as integers, bytes and maps."""
