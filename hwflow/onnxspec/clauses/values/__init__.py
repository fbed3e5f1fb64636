"""Clauses about tensors, types and shapes."""
