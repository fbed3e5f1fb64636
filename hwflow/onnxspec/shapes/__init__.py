"""Types and sizes of all values: inferred, solved, and compared with the model's own statements."""
