"""The verbs as functions: options in, an output folder out."""
