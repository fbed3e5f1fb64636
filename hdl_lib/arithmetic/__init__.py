"""Adders, multipliers, dividers."""
