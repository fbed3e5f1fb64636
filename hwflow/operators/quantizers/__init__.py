"""Quantizers and quantized operators of every dialect."""
