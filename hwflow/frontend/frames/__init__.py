"""Where frames are in a model whose inputs' first axes are numbers, and what operators make of that axis."""
