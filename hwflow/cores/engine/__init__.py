"""Layers that are computed one after the other on the same multipliers, with weights from memory outside."""
