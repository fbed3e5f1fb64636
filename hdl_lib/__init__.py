"""Amaranth cores for streaming neural networks. Ints and shapes in, a Component out; imports amaranth only."""
