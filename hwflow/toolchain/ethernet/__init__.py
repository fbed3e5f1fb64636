"""Ethernet cores that others generate."""
