"""The search for foldings, and lower bounds before it."""
