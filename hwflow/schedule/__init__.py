"""Folding search, FIFO sizing and exact timing of a dataflow graph."""
