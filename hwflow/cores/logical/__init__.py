"""Operators of the quantized graph, which the passes make hardware of."""
