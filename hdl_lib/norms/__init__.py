"""Functions of whole rows, bit by bit."""
