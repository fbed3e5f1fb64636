"""State: outputs that are inputs of later frames."""
