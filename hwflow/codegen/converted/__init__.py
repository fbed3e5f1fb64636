"""Cores as RTLIL: each converted by itself, equal ones once, what they share once."""
