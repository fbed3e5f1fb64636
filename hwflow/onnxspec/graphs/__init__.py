"""A model's graphs, nodes and types in plain Python."""
