"""Operators of the quantized graph, lowered to hardware operators."""
