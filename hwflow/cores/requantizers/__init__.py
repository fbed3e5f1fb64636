"""Step functions in hardware."""
