"""Find the frames of a model whose inputs have fixed first sizes, and transform operators along that axis."""
