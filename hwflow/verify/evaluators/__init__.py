"""The golden model against other evaluators, value by value and end to end."""
