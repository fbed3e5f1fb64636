"""Loops whose body is hardware once."""
