"""Types and sizes of all values: inferred, solved, compared with what the model says."""
