"""The verbs of the command line: each takes its parsed arguments, prints, and returns the exit code."""
