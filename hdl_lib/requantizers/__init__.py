"""Step functions, a channel each."""
