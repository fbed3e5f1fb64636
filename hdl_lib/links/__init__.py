"""Byte links between board and host."""
