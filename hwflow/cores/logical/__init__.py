"""Operators of the quantized graph, which passes lower to hardware operators."""
