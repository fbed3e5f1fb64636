"""The folding search, and lower bounds before it."""
