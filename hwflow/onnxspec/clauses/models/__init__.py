"""Clauses about models, operator sets and functions."""
