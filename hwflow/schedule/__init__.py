"""Folding, queues and exact timing of a dataflow graph."""
