"""Resolve a model to plain nodes with all shapes known and all constants computed."""
