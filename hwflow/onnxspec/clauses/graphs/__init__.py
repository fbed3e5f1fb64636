"""Clauses about graphs, nodes and names."""
